/* `ganglion template`: messages → the prompt, byte for byte, by the model's chat template or a given one.
 * The context is built from the files as they are: fields and the order of keys pass through. */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "text/template.h"
#include "text/tokenizer.h"

#include <string.h>

typedef struct options {
    gn_cli_model_args model;
    const char *template_path;
    const char *messages;
    const char *tools;
    const char *context;
    bool no_generation_prompt;
    int64_t now;
    bool json;
} options;

static const options defaults = {.now = -1};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "template",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, template_path),
     .value = "FILE",
     .help = "A Jinja template; with -m the model still gives bos_token and eos_token."},
    {.name = "messages",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, messages),
     .value = "FILE",
     .help = "JSON: an array of messages, or an object that is the whole context with \"messages\" "
             "in it; - is standard input."},
    {.name = "tools",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, tools),
     .value = "FILE",
     .help = "JSON: an array of tools."},
    {.name = "context",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, context),
     .value = "FILE",
     .help = "JSON: an object of further variables, such as {\"enable_thinking\": false}."},
    {.name = "no-generation-prompt",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, no_generation_prompt),
     .help = "Set add_generation_prompt to false; default: true."},
    {.name = "now",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, now),
     .value = "SECONDS",
     .help = "The time that strftime_now sees, in seconds since 1970; default: now.",
     .min = 0,
     .max = 253402300799},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print {\"prompt\": …} instead of the bytes."},
};

static gn_status set_new(json_t *context, const char *key, json_t *value)
{
    return json_object_set_new(context, key, value) == 0 ? GN_OK : gn_alloc_failed();
}

/* A file whose value becomes the member `key`. */
static gn_status set_file(json_t *context, const char *key, const char *path)
{
    json_t *value = NULL;
    GN_TRY(gn_cli_read_json(path, &value));
    if (!json_is_array(value)) {
        json_decref(value);
        return gn_base_fail(GN_E_FORMAT, "%s: found another JSON value, expected an array of %s",
                            path, key);
    }
    return set_new(context, key, value);
}

static gn_status merge_file(json_t *context, const char *path)
{
    json_t *value = NULL;
    GN_TRY(gn_cli_read_json(path, &value));
    gn_status status = GN_OK;
    if (!json_is_object(value)) {
        status =
            gn_base_fail(GN_E_FORMAT, "%s: found another JSON value, expected an object", path);
    } else if (json_object_update(context, value) != 0) {
        status = gn_alloc_failed();
    }
    json_decref(value);
    return status;
}

static gn_status set_messages(json_t *context, const char *path)
{
    json_t *value = NULL;
    GN_TRY(gn_cli_read_json(path, &value));
    if (json_is_array(value)) {
        return set_new(context, "messages", value);
    }
    gn_status status = GN_OK;
    if (!json_is_object(value) || !json_is_array(json_object_get(value, "messages"))) {
        status = gn_base_fail(
            GN_E_FORMAT, "%s: expected an array of messages, or an object with \"messages\"", path);
    } else if (json_object_update(context, value) != 0) {
        status = gn_alloc_failed();
    }
    json_decref(value);
    return status;
}

/* The model's spelling of a special token, where it has one and the context does not. */
static gn_status set_token(json_t *context, const char *key, const gn_tokenizer *tokenizer,
                           int32_t id)
{
    if (id < 0 || json_object_get(context, key) != NULL) {
        return GN_OK;
    }
    size_t len = 0;
    const char *s = gn_tokenizer_spelling(tokenizer, id, &len);
    return s == NULL ? GN_OK : set_new(context, key, json_stringn(s, len));
}

static gn_status build_context(const options *o, const gn_tokenizer *tokenizer, json_t *context)
{
    GN_TRY(set_messages(context, o->messages));
    if (o->tools != NULL) {
        GN_TRY(set_file(context, "tools", o->tools));
    }
    if (o->context != NULL) {
        GN_TRY(merge_file(context, o->context));
    }
    if (o->no_generation_prompt || json_object_get(context, "add_generation_prompt") == NULL) {
        GN_TRY(set_new(context, "add_generation_prompt", json_boolean(!o->no_generation_prompt)));
    }
    if (tokenizer != NULL) {
        GN_TRY(set_token(context, "bos_token", tokenizer, gn_tokenizer_bos(tokenizer)));
        GN_TRY(set_token(context, "eos_token", tokenizer, gn_tokenizer_eos(tokenizer)));
    }
    return GN_OK;
}

static gn_status load_template(const options *o, const gn_tokenizer *tokenizer, gn_buf *source)
{
    if (o->template_path != NULL) {
        return gn_cli_read(o->template_path, 0, source);
    }
    const char *text = gn_tokenizer_chat_template(tokenizer);
    GN_REQUIRE(text != NULL, GN_E_NOT_FOUND,
               "%s: found no chat template in the model, expected one, or --template FILE",
               o->model.path);
    return gn_buf_puts(source, text);
}

static gn_status render(const options *o, const gn_buf *source, const json_t *context, gn_buf *out)
{
    const char *name = o->template_path != NULL ? o->template_path : o->model.path;
    gn_template *tmpl = NULL;
    gn_status status =
        gn_template_parse(source->data != NULL ? source->data : "", source->len, &tmpl);
    if (status == GN_OK) {
        time_t now = o->now >= 0 ? (time_t)o->now : time(NULL);
        status = gn_template_render(tmpl, context, now, NULL, out);
    }
    gn_template_destroy(tmpl);
    return status == GN_OK ? GN_OK : gn_base_fail_prefix(status, "%s: ", name);
}

static void print(const options *o, const gn_buf *text)
{
    if (o->json) {
        gn_cli_json json;
        gn_cli_json_init(&json, stdout);
        gn_cli_json_object(&json, NULL);
        gn_cli_json_strn(&json, "prompt", text->data != NULL ? text->data : "", text->len);
        gn_cli_json_end(&json);
    } else if (text->len > 0) {
        (void)fwrite(text->data, 1, text->len, stdout);
    }
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    GN_REQUIRE(o->model.path != NULL || o->template_path != NULL, GN_E_ARG,
               "found neither -m MODEL nor --template FILE, expected one of them");
    GN_REQUIRE(o->messages != NULL, GN_E_ARG, "found no messages, expected --messages FILE");
    gn_tokenizer *tokenizer = NULL;
    if (o->model.path != NULL) {
        GN_TRY(gn_cli_tokenizer_open(o->model.path, &tokenizer));
    }
    gn_buf source = {0};
    gn_buf text = {0};
    json_t *context = json_object();
    gn_status status = context == NULL ? gn_alloc_failed() : load_template(o, tokenizer, &source);
    if (status == GN_OK) {
        status = build_context(o, tokenizer, context);
    }
    if (status == GN_OK) {
        status = render(o, &source, context, &text);
    }
    if (status == GN_OK) {
        print(o, &text);
    }
    json_decref(context);
    gn_buf_fini(&text);
    gn_buf_fini(&source);
    gn_tokenizer_destroy(tokenizer);
    return status;
}

const gn_cli_command gn_cli_cmd_template = {
    .name = "template",
    .summary = "messages → the prompt that the chat template makes of them",
    .usage = "-m MODEL | --template FILE --messages FILE [options]",
    .details = "Standard output is exactly the rendered bytes. A refusal by the template itself\n"
               "(raise_exception) is exit code 1 with its words.",
    .example = "ganglion template -m smollm2-135m --messages chat.json",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
