/* The file is read event by event, so that every message has the line it is about. */
#include "cli/config.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "cli/out.h"

#include <string.h>
#include <yaml.h>

static gn_arena texts; /* of the options that were set */

typedef struct reader {
    const gn_cli_command *command;
    const char *path;
    void *options;
    yaml_parser_t parser;
    char keys[2048]; /* those that came, each between newlines */
} reader;

static unsigned long line_of(const yaml_event_t *event)
{
    return (unsigned long)event->start_mark.line + 1;
}

static gn_status fail(const reader *r, unsigned long line, const char *found, const char *expected)
{
    return gn_base_fail(GN_E_FORMAT, "%s: line %lu: found %s, expected %s", r->path, line, found,
                        expected);
}

static const char *name_of(yaml_event_type_t type)
{
    switch (type) {
    case YAML_MAPPING_START_EVENT: return "a mapping";
    case YAML_SEQUENCE_START_EVENT: return "a list";
    case YAML_SCALAR_EVENT: return "a value";
    case YAML_ALIAS_EVENT: return "an alias";
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: return "the end";
    default: return "something else";
    }
}

/* The next event, to be deleted by the caller. */
static gn_status next(reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event) != 0) {
        return GN_OK;
    }
    if (r->parser.error == YAML_MEMORY_ERROR) {
        return gn_alloc_failed();
    }
    return gn_base_fail(GN_E_FORMAT, "%s: line %lu: %s", r->path,
                        (unsigned long)r->parser.problem_mark.line + 1,
                        r->parser.problem != NULL ? r->parser.problem : "no valid YAML");
}

static gn_status expect(reader *r, yaml_event_type_t type, const char *expected)
{
    yaml_event_t event;
    GN_TRY(next(r, &event));
    gn_status status =
        event.type == type ? GN_OK : fail(r, line_of(&event), name_of(event.type), expected);
    yaml_event_delete(&event);
    return status;
}

/* Set the option `key` to a scalar. */
static gn_status set(const reader *r, const char *key, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (strlen(value) != len) {
        return fail(r, line_of(event), "a NUL character", "text");
    }
    char *copy = gn_arena_strndup(&texts, value, len);
    if (copy == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = gn_cli_args_set(r->command, key, copy, r->options);
    return status == GN_E_ARG
               ? gn_base_fail_prefix(GN_E_FORMAT, "%s: line %lu: ", r->path, line_of(event))
               : status;
}

static bool is_list(const gn_cli_command *command, const char *key)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const gn_cli_option *o = &command->options[i];
        if (o->name != NULL && strcmp(o->name, key) == 0) {
            return o->kind == GN_CLI_LIST;
        }
    }
    return false;
}

static gn_status read_list(reader *r, const char *key)
{
    for (;;) {
        yaml_event_t event;
        GN_TRY(next(r, &event));
        bool ended = event.type == YAML_SEQUENCE_END_EVENT;
        gn_status status = GN_OK;
        if (event.type == YAML_SCALAR_EVENT) {
            status = set(r, key, &event);
        } else if (!ended) {
            status = fail(r, line_of(&event), name_of(event.type), "a value");
        }
        yaml_event_delete(&event);
        if (ended || status != GN_OK) {
            return status;
        }
    }
}

static gn_status read_value(reader *r, const char *key)
{
    yaml_event_t event;
    GN_TRY(next(r, &event));
    gn_status status;
    if (event.type == YAML_SCALAR_EVENT) {
        status = set(r, key, &event);
    } else if (event.type == YAML_SEQUENCE_START_EVENT && is_list(r->command, key)) {
        status = read_list(r, key);
    } else {
        status = fail(r, line_of(&event), name_of(event.type),
                      is_list(r->command, key) ? "a value or a list" : "a value");
    }
    yaml_event_delete(&event);
    return status;
}

/* Remember the key; twice is once too often. */
static gn_status note_key(reader *r, const yaml_event_t *event, const char *key)
{
    gn_buf line = {0};
    GN_TRY(gn_buf_printf(&line, "\n%s\n", key));
    size_t used = strlen(r->keys);
    gn_status status = GN_OK;
    if (strstr(r->keys, line.data) != NULL) {
        status = fail(r, line_of(event), "the key for the second time", "each key once");
    } else if (used + line.len >= sizeof r->keys || strcmp(key, "config") == 0) {
        status = fail(r, line_of(event), "this key", "options that a file may set");
    } else {
        memcpy(r->keys + used, line.data, line.len + 1);
    }
    gn_buf_fini(&line);
    return status;
}

static gn_status read_pairs(reader *r)
{
    for (;;) {
        yaml_event_t event;
        GN_TRY(next(r, &event));
        bool ended = event.type == YAML_MAPPING_END_EVENT;
        gn_status status = GN_OK;
        if (event.type == YAML_SCALAR_EVENT) {
            const char *key = (const char *)event.data.scalar.value;
            status = note_key(r, &event, key);
            if (status == GN_OK) {
                status = read_value(r, key);
            }
        } else if (!ended) {
            status = fail(r, line_of(&event), name_of(event.type), "the name of an option");
        }
        yaml_event_delete(&event);
        if (ended || status != GN_OK) {
            return status;
        }
    }
}

static gn_status read_document(reader *r)
{
    GN_TRY(expect(r, YAML_STREAM_START_EVENT, "YAML"));
    yaml_event_t event;
    GN_TRY(next(r, &event));
    bool empty = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    if (empty) {
        return GN_OK;
    }
    GN_TRY(expect(r, YAML_MAPPING_START_EVENT, "options and their values"));
    GN_TRY(read_pairs(r));
    GN_TRY(expect(r, YAML_DOCUMENT_END_EVENT, "the end"));
    return expect(r, YAML_STREAM_END_EVENT, "one document");
}

gn_status gn_cli_config_read(const gn_cli_command *command, const char *path, void *options)
{
    gn_buf text = {0};
    gn_status status = gn_cli_read(path, 1 << 20, &text);
    reader *r = gn_calloc(1, sizeof *r);
    if (status == GN_OK && (r == NULL || yaml_parser_initialize(&r->parser) == 0)) {
        status = gn_alloc_failed();
    } else if (status == GN_OK) {
        r->command = command;
        r->path = path;
        r->options = options;
        yaml_parser_set_input_string(
            &r->parser, (const unsigned char *)(text.data != NULL ? text.data : ""), text.len);
        status = read_document(r);
        yaml_parser_delete(&r->parser);
    }
    gn_free(r);
    gn_buf_fini(&text);
    return status;
}

void gn_cli_config_release(void)
{
    gn_arena_fini(&texts);
}
