/* `ganglion grammar check`: does a text match a grammar, token by token of its canonical tokenization, and what do
 * compiling and masks cost. It needs only the model's tokenizer. */
#include "base/alloc.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "os/clock.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

typedef struct options {
    gn_cli_model_args model;
    const char *schema;
    const char *regex;
    const char *gbnf;
    const char *cases;
    bool json;
} options;

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "schema",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, schema),
     .value = "FILE",
     .help = "A JSON Schema; draft 2020-12, or what its $schema says."},
    {.name = "regex",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, regex),
     .value = "FILE",
     .help = "A regular expression in RE2's syntax; a newline at the end of the file is no part of "
             "it."},
    {.name = "gbnf",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, gbnf),
     .value = "FILE",
     .help = "A grammar in GBNF."},
    {.name = "cases",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, cases),
     .value = "FILE",
     .help = "JSON lines: {\"id\", \"schema\", \"regex\" or \"gbnf\", \"texts\"}; prints a line "
             "for each."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print one object."},
};

typedef struct context {
    gn_tokenizer *tokenizer;
    gn_vocab_index *index;
    uint32_t *mask;
} context;

typedef struct result { /* of one grammar and its texts */
    gn_grammar *grammar;
    gn_buf pointer; /* of a schema that is refused: the place */
    uint64_t compile_ns;
    double *mask_us;
    size_t n_masks, cap_masks;
} result;

static void result_fini(result *r)
{
    gn_grammar_destroy(r->grammar);
    gn_buf_fini(&r->pointer);
    gn_free(r->mask_us);
}

/* The options, and the members of a case, that name a kind of grammar. */
static const char *const kinds[] = {"schema", "regex", "gbnf"};

static gn_status compile(const char *kind, const char *text, size_t len, result *r)
{
    uint64_t start = gn_os_now_ns();
    gn_status status;
    if (strcmp(kind, "schema") == 0) {
        status = gn_grammar_json_schema(text, len, NULL, &r->grammar, &r->pointer);
    } else if (strcmp(kind, "regex") == 0) {
        status = gn_grammar_regex(text, len, 0, &r->grammar);
    } else {
        status = gn_grammar_gbnf(text, len, &r->grammar);
    }
    r->compile_ns = gn_os_now_ns() - start;
    return status;
}

static gn_status push_time(result *r, double us)
{
    double *more = gn_grow_array(r->mask_us, &r->cap_masks, r->n_masks + 1, sizeof *more);
    if (more == NULL) {
        return gn_alloc_failed();
    }
    r->mask_us = more;
    r->mask_us[r->n_masks++] = us;
    return GN_OK;
}

/* One token: is it in the mask? */
static gn_status take_token(context *c, gn_matcher *m, int32_t id, result *r, bool *ok)
{
    uint64_t start = gn_os_now_ns();
    GN_TRY(gn_matcher_mask(m, c->mask));
    GN_TRY(push_time(r, (double)(gn_os_now_ns() - start) * 1e-3));
    *ok = (c->mask[id / 32] >> (id % 32) & 1) != 0;
    return *ok ? gn_matcher_accept_token(m, id) : GN_OK;
}

static gn_status check_text(context *c, result *r, const char *text, size_t len, bool *accepted)
{
    gn_token_list ids = {0};
    gn_matcher *m = NULL;
    bool ok = true;
    gn_status status = gn_tokenizer_encode(c->tokenizer, text, len, 0, &ids);
    if (status == GN_OK) {
        status = gn_matcher_create(r->grammar, c->index, &m);
    }
    for (size_t i = 0; i < ids.n && ok && status == GN_OK; i++) {
        status = take_token(c, m, ids.ids[i], r, &ok);
    }
    if (status == GN_OK && ok) {
        /* The mask that lets the text end counts too. */
        uint64_t start = gn_os_now_ns();
        status = gn_matcher_mask(m, c->mask);
        if (status == GN_OK) {
            status = push_time(r, (double)(gn_os_now_ns() - start) * 1e-3);
        }
        ok = gn_matcher_may_end(m);
    }
    gn_matcher_destroy(m);
    gn_token_list_fini(&ids);
    *accepted = ok;
    return status;
}

static gn_status open_context(const char *model, context *c)
{
    GN_TRY(gn_cli_tokenizer_open(model, &c->tokenizer));
    GN_TRY(gn_grammar_vocab_from_tokenizer(c->tokenizer, 0, &c->index));
    c->mask = gn_calloc(gn_grammar_vocab_size(c->index) / 32 + 1, sizeof *c->mask);
    return c->mask != NULL ? GN_OK : gn_alloc_failed();
}

static void close_context(context *c)
{
    gn_free(c->mask);
    gn_grammar_vocab_destroy(c->index);
    gn_tokenizer_destroy(c->tokenizer);
}

static void put_times(gn_cli_json *json, const result *r)
{
    gn_cli_json_real(json, "compile_us", (double)r->compile_ns * 1e-3, 1);
}

static void put_masks(gn_cli_json *json, const result *r)
{
    gn_cli_json_array(json, "mask_us");
    for (size_t i = 0; i < r->n_masks; i++) {
        gn_cli_json_real(json, NULL, r->mask_us[i], 2);
    }
    gn_cli_json_end(json);
}

/* ---- Many cases -------------------------------------------------------------------------------------- */

/* A schema may stand as it is or as its text; a number in it is never rounded on the way. */
static gn_status case_grammar(const gn_json *line, result *r)
{
    for (size_t i = 0; i < GN_COUNTOF(kinds); i++) {
        const gn_json *value = gn_base_json_get(line, kinds[i]);
        if (value != NULL && value->type == GN_JSON_STRING) {
            return compile(kinds[i], value->text, value->len, r);
        }
        if (value != NULL && i == 0) {
            return compile(kinds[i], value->raw, value->raw_len, r);
        }
        GN_REQUIRE(value == NULL, GN_E_FORMAT, "\"%s\": expected a string", kinds[i]);
    }
    return gn_base_fail(GN_E_FORMAT,
                        "found no grammar, expected \"schema\", \"regex\" or \"gbnf\"");
}

static gn_status run_case(context *c, const gn_json *line)
{
    result r = {0};
    gn_cli_json json;
    gn_status status = case_grammar(line, &r);
    bool fatal = status == GN_E_NOMEM;
    const gn_json *id = gn_base_json_get(line, "id");
    const gn_json *texts = gn_base_json_get(line, "texts");
    gn_buf id_text = {0};
    if (id != NULL && gn_buf_append(&id_text, id->raw, id->raw_len) != GN_OK) {
        fatal = true;
    }
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_raw(&json, "id", id_text.data != NULL ? id_text.data : "null");
    gn_buf_fini(&id_text);
    gn_cli_json_bool(&json, "compiled", status == GN_OK);
    gn_cli_json_str(&json, "error", status == GN_OK ? NULL : gn_error_message());
    gn_cli_json_str(&json, "pointer", status == GN_OK ? NULL : r.pointer.data);
    put_times(&json, &r);
    gn_cli_json_array(&json, "accepts");
    gn_buf fault = {0};
    const gn_json *text = texts != NULL && texts->type == GN_JSON_ARRAY ? texts->first : NULL;
    for (; text != NULL && status == GN_OK; text = text->next) {
        bool yes = false;
        status = check_text(c, &r, text->type == GN_JSON_STRING ? text->text : "",
                            text->type == GN_JSON_STRING ? text->len : 0, &yes);
        if (status != GN_OK) {
            fatal = gn_buf_puts(&fault, gn_error_message()) != GN_OK;
        }
        gn_cli_json_bool(&json, NULL, yes && status == GN_OK);
    }
    gn_cli_json_end(&json);
    if (fault.data != NULL) {
        gn_cli_json_str(&json, "fault", fault.data);
    }
    gn_buf_fini(&fault);
    put_masks(&json, &r);
    gn_cli_json_end(&json);
    result_fini(&r);
    return fatal ? GN_E_NOMEM : GN_OK;
}

static gn_status run_cases(context *c, const char *path)
{
    gn_buf text = {0};
    gn_status status = gn_cli_read(path, 0, &text);
    size_t number = 0;
    for (size_t at = 0; at < text.len && status == GN_OK;) {
        const char *line = text.data + at;
        const char *end = memchr(line, '\n', text.len - at);
        size_t len = end != NULL ? (size_t)(end - line) : text.len - at;
        at += len + 1;
        number++;
        if (len == 0) {
            continue;
        }
        gn_arena arena;
        const gn_json *one = NULL;
        gn_arena_init(&arena, 0);
        status = gn_base_json_parse(&arena, line, len, &one, NULL);
        if (status == GN_OK && one->type != GN_JSON_OBJECT) {
            status = gn_base_fail(GN_E_FORMAT, "found no JSON object");
        }
        if (status != GN_OK) {
            status = gn_base_fail_prefix(status, "%s: line %zu: ", gn_cli_input_name(path), number);
        } else {
            status = run_case(c, one);
        }
        gn_arena_fini(&arena);
    }
    gn_buf_fini(&text);
    return status;
}

/* ---- One text ---------------------------------------------------------------------------------------- */

static gn_status run_one(context *c, const options *o, const char *path)
{
    const char *const given[] = {o->schema, o->regex, o->gbnf};
    size_t kind = o->schema != NULL ? 0 : o->regex != NULL ? 1 : 2;
    const char *file = given[kind];
    gn_buf grammar = {0};
    gn_buf text = {0};
    result r = {0};
    bool yes = false;
    gn_status status = gn_cli_read(file, 0, &grammar);
    if (status == GN_OK) {
        if (o->regex != NULL && grammar.len > 0 && grammar.data[grammar.len - 1] == '\n') {
            grammar.len--;
        }
        status = compile(kinds[kind], grammar.data != NULL ? grammar.data : "", grammar.len, &r);
        if (status != GN_OK) {
            status = gn_base_fail_prefix(status, "%s: %s%s", gn_cli_input_name(file),
                                         r.pointer.len != 0 ? r.pointer.data : "",
                                         r.pointer.len != 0 ? ": " : "");
        }
    }
    if (status == GN_OK) {
        status = gn_cli_read(path, 0, &text);
    }
    if (status == GN_OK) {
        status = check_text(c, &r, text.data != NULL ? text.data : "", text.len, &yes);
    }
    if (status == GN_OK && o->json) {
        gn_cli_json json;
        gn_cli_json_init(&json, stdout);
        gn_cli_json_object(&json, NULL);
        gn_cli_json_bool(&json, "accepts", yes);
        put_times(&json, &r);
        put_masks(&json, &r);
        gn_cli_json_end(&json);
    } else if (status == GN_OK) {
        (void)printf("%s\n", yes ? "match" : "no match");
    }
    result_fini(&r);
    gn_buf_fini(&text);
    gn_buf_fini(&grammar);
    if (status == GN_OK && !yes) {
        gn_base_fail_clear();
        status = GN_E_REFUSED;
    }
    return status;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    const options *o = options_;
    GN_REQUIRE(strcmp(args->v[0], "check") == 0, GN_E_ARG, "found \"%s\", expected check",
               args->v[0]);
    int n_given = (o->schema != NULL) + (o->regex != NULL) + (o->gbnf != NULL) + (o->cases != NULL);
    GN_REQUIRE(n_given == 1, GN_E_ARG,
               "found %d of --schema, --regex, --gbnf and --cases, expected one", n_given);
    GN_REQUIRE((o->cases != NULL) == (args->n == 1), GN_E_ARG,
               o->cases != NULL ? "%s: found a FILE beside --cases" : "%s: found no FILE",
               args->v[0]);
    context c = {0};
    gn_status status = open_context(o->model.path, &c);
    if (status == GN_OK) {
        status = o->cases != NULL ? run_cases(&c, o->cases) : run_one(&c, o, args->v[1]);
    }
    close_context(&c);
    return status;
}

const gn_cli_command gn_cli_cmd_grammar = {
    .name = "grammar",
    .summary = "does a text match a grammar, and what do its masks cost",
    .usage = "check FILE (--schema F | --regex F | --gbnf F) -m MODEL | check --cases F -m MODEL",
    .details =
        "A text matches if each of its tokens is in the mask when it comes and the text may end\n"
        "after the last. Exit code 1: it does not. FILE may be - for standard input. A schema "
        "that\n"
        "can't be enforced whole is refused with the place and the reason.",
    .example = "printf 'root ::= \"a\"+' > a.gbnf\n"
               "printf aaa | ganglion grammar check - --gbnf a.gbnf -m smollm2-135m",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
