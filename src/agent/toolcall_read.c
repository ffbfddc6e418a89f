/* From text to calls, byte by byte:
 *
 *     TEXT ──the trigger──▶ OPEN ──"{"──▶ CALL ──its "}"──▶ AFTER ──"{"──▶ CALL …
 *
 * An answer under gn_toolcall_grammar() has nothing in AFTER but what belongs to the format, which is dropped. In
 * OPEN anything but blanks and "[" shows that it was no call: then all of it is text. */
#include "agent/toolcall.h"
#include "base/alloc.h"

#include <string.h>

typedef enum place { TEXT, OPEN, CALL, AFTER } place;

typedef enum part {      /* of a call's object */
                    KEY, /* before or in a key */
                    COLON,
                    VALUE, /* before a value */
                    IN_VALUE
} part;

typedef struct piece {
    gn_toolcall_event_type type;
    size_t begin, len; /* in out */
} piece;

struct gn_toolcall_reader {
    const gn_tool_format *format;
    place place;
    bool begun;  /* something came that is no trigger: where it counts at the start alone */
    gn_buf held; /* TEXT: what may be a trigger; OPEN: the trigger and what follows */
    gn_buf word; /* CALL: a key, or the name, as it is written */
    part part;
    bool is_name, is_arguments; /* the value at hand */
    bool in_string, escaped;
    int depth; /* inside of the value at hand */
    gn_buf out;
    piece *pieces;
    size_t n_pieces, cap, n_taken;
};

gn_status gn_toolcall_reader_create(const gn_tool_format *format, gn_toolcall_reader **out)
{
    gn_toolcall_reader *r = gn_calloc(1, sizeof *r);
    if (r == NULL) {
        return gn_alloc_failed();
    }
    r->format = format;
    *out = r;
    return GN_OK;
}

void gn_toolcall_reader_destroy(gn_toolcall_reader *r)
{
    if (r == NULL) {
        return;
    }
    gn_buf_fini(&r->held);
    gn_buf_fini(&r->word);
    gn_buf_fini(&r->out);
    gn_free(r->pieces);
    gn_free(r);
}

/* --- pieces --- */

static gn_status add(gn_toolcall_reader *r, gn_toolcall_event_type type, const char *s, size_t len)
{
    if (len == 0) {
        return GN_OK;
    }
    piece *last = r->n_pieces > 0 ? &r->pieces[r->n_pieces - 1] : NULL;
    bool joins = last != NULL && last->type == type && type != GN_TOOLCALL_BEGIN;
    if (!joins) {
        piece *grown = gn_grow_array(r->pieces, &r->cap, r->n_pieces + 1, sizeof *grown);
        if (grown == NULL) {
            return gn_alloc_failed();
        }
        r->pieces = grown;
    }
    size_t begin = r->out.len;
    GN_TRY(gn_buf_append(&r->out, s, len));
    if (joins) {
        last->len += len;
    } else {
        r->pieces[r->n_pieces++] = (piece){.type = type, .begin = begin, .len = len};
    }
    return GN_OK;
}

static gn_status release_held(gn_toolcall_reader *r)
{
    GN_TRY(add(r, GN_TOOLCALL_TEXT, r->held.data, r->held.len));
    gn_buf_clear(&r->held);
    r->place = TEXT;
    return GN_OK;
}

/* --- a call --- */

/* The text that a JSON string stands for, without its quotes; false: it is none. */
static gn_status take_name(gn_toolcall_reader *r)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *name = NULL;
    gn_status status = gn_base_json_parse(&arena, r->word.data, r->word.len, &name, NULL);
    if (status == GN_OK && name->type == GN_JSON_STRING) {
        status = add(r, GN_TOOLCALL_BEGIN, name->text, name->len);
    }
    gn_arena_fini(&arena);
    return status == GN_E_NOMEM ? status : GN_OK;
}

static bool is_key(const gn_toolcall_reader *r, const char *key)
{
    size_t len = strlen(key);
    return r->word.len == len + 2 && memcmp(r->word.data + 1, key, len) == 0;
}

/* Inside or behind a string: *ended where this byte closes it. */
static void step_string(gn_toolcall_reader *r, char c, bool *ended)
{
    *ended = false;
    if (r->escaped) {
        r->escaped = false;
    } else if (c == '\\') {
        r->escaped = true;
    } else if (c == '"') {
        r->in_string = false;
        *ended = true;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static gn_status step_key(gn_toolcall_reader *r, char c)
{
    bool ended = false;
    if (r->in_string) {
        GN_TRY(gn_buf_putc(&r->word, c));
        step_string(r, c, &ended);
        if (ended) {
            r->is_name = is_key(r, "name");
            r->is_arguments = is_key(r, r->format->arguments);
            r->part = COLON;
        }
    } else if (c == '"') {
        gn_buf_clear(&r->word);
        r->in_string = true;
        return gn_buf_putc(&r->word, c);
    } else if (c == '}') {
        r->place = AFTER;
    }
    return GN_OK;
}

static gn_status value_byte(gn_toolcall_reader *r, char c)
{
    if (r->is_name) {
        return gn_buf_putc(&r->word, c);
    }
    return r->is_arguments ? add(r, GN_TOOLCALL_ARGUMENTS, &c, 1) : GN_OK;
}

static gn_status end_value(gn_toolcall_reader *r)
{
    gn_status status = r->is_name ? take_name(r) : GN_OK;
    r->is_name = false;
    r->is_arguments = false;
    r->part = KEY;
    return status;
}

static gn_status step_value(gn_toolcall_reader *r, char c)
{
    bool ended = false;
    if (r->in_string) {
        GN_TRY(value_byte(r, c));
        step_string(r, c, &ended);
        return ended && r->depth == 0 ? end_value(r) : GN_OK;
    }
    bool closes = c == '}' || c == ']';
    if (r->depth == 0 && (closes || c == ',' || is_blank(c))) { /* behind a number or a word */
        GN_TRY(end_value(r));
        return c == '}' ? step_key(r, c) : GN_OK;
    }
    GN_TRY(value_byte(r, c));
    r->in_string = c == '"';
    r->depth += c == '{' || c == '[' ? 1 : 0;
    r->depth -= closes ? 1 : 0;
    return closes && r->depth == 0 ? end_value(r) : GN_OK;
}

static gn_status step_call(gn_toolcall_reader *r, char c)
{
    switch (r->part) {
    case KEY: return step_key(r, c);
    case COLON: r->part = c == ':' ? VALUE : COLON; return GN_OK;
    case VALUE:
        if (is_blank(c)) {
            return GN_OK;
        }
        gn_buf_clear(&r->word);
        r->part = IN_VALUE;
        r->depth = 0;
        return step_value(r, c);
    case IN_VALUE: return step_value(r, c);
    }
    return GN_OK;
}

static void begin_call(gn_toolcall_reader *r)
{
    gn_buf_clear(&r->held);
    r->place = CALL;
    r->part = KEY;
    r->in_string = false;
    r->escaped = false;
}

/* --- text --- */

/* The trigger's own braces belong to the call. */
static gn_status open_call(gn_toolcall_reader *r)
{
    const char *brace = strchr(r->format->trigger, '{');
    if (brace == NULL) {
        r->place = OPEN;
        return GN_OK;
    }
    begin_call(r);
    for (const char *at = brace + 1; *at != '\0'; at++) {
        GN_TRY(step_call(r, *at));
    }
    return GN_OK;
}

static gn_status step_text(gn_toolcall_reader *r, char c)
{
    const char *trigger = r->format->trigger;
    size_t len = strlen(trigger);
    if (r->format->at_start && r->begun) {
        return add(r, GN_TOOLCALL_TEXT, &c, 1);
    }
    GN_TRY(gn_buf_putc(&r->held, c));
    while (r->held.len > 0 && memcmp(r->held.data, trigger, r->held.len) != 0) {
        r->begun = true;
        GN_TRY(add(r, GN_TOOLCALL_TEXT, r->held.data, r->format->at_start ? r->held.len : 1));
        size_t cut = r->format->at_start ? r->held.len : 1;
        memmove(r->held.data, r->held.data + cut, r->held.len - cut);
        r->held.len -= cut;
    }
    return r->held.len == len ? open_call(r) : GN_OK;
}

static gn_status step(gn_toolcall_reader *r, char c)
{
    switch (r->place) {
    case TEXT: return step_text(r, c);
    case OPEN:
        GN_TRY(gn_buf_putc(&r->held, c));
        if (c == '{') {
            begin_call(r);
        } else if (!is_blank(c) && c != '[') {
            return release_held(r);
        }
        return GN_OK;
    case CALL: return step_call(r, c);
    case AFTER:
        if (c == '{') {
            begin_call(r);
        }
        return GN_OK;
    }
    return GN_OK;
}

gn_status gn_toolcall_reader_push(gn_toolcall_reader *r, const char *text, size_t len, bool last)
{
    gn_buf_clear(&r->out);
    r->n_pieces = 0;
    r->n_taken = 0;
    for (size_t i = 0; i < len; i++) {
        GN_TRY(step(r, text[i]));
    }
    return last && (r->place == TEXT || r->place == OPEN) ? release_held(r) : GN_OK;
}

bool gn_toolcall_reader_take(gn_toolcall_reader *r, gn_toolcall_event *out)
{
    if (r->n_taken == r->n_pieces) {
        return false;
    }
    const piece *p = &r->pieces[r->n_taken++];
    *out = (gn_toolcall_event){.type = p->type, .text = r->out.data + p->begin, .len = p->len};
    return true;
}
