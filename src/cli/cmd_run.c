/* `ganglion run`: one answer to -p or -f, else a chat. */
#include "base/alloc.h"
#include "cli/answer.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/grammar_arg.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "os/clock.h"

#include <string.h>

typedef struct options {
    gn_cli_model_args model;
    const char *prompt;
    const char *file;
    const char *system;
    gn_cli_settings settings;
    gn_cli_grammar_args grammar;
    gn_cli_list stop;
    gn_cli_list logit_bias;
    gn_cli_list dry_breakers;
    int64_t n_ctx;
    bool raw;
    bool logprobs;
    bool stats;
    bool json;
} options;

static const options defaults = {.settings = GN_CLI_SETTINGS_DEFAULTS};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.letter = 'p',
     .name = "prompt",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, prompt),
     .value = "TEXT",
     .help = "Answer this and end; without -p and -f a chat starts."},
    {.letter = 'f',
     .name = "file",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, file),
     .value = "FILE",
     .help = "Answer the text of a file; - is standard input."},
    {.name = "system",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, system),
     .value = "TEXT",
     .help = "The system message."},
    {.name = "raw",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, raw),
     .help = "Continue the text itself; default: the model's chat template, where it has one."},
    GN_CLI_SETTINGS_BASIC(options),
    {.name = "stop",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, stop),
     .value = "TEXT",
     .help = "End the answer before this text; may be given more than once."},
    GN_CLI_GRAMMAR_OPTIONS(options),
    {.name = "ctx",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, n_ctx),
     .value = "N",
     .help =
         "Tokens of context, prompt and answers together; default: what the model was made for.",
     .min = 1,
     .max = 2147483647},
    {.name = "logprobs",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, logprobs),
     .help = "Give each token's log-probability: in the JSON, else on standard error."},
    {.name = "stats",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, stats),
     .help = "Print tokens and speed on standard error."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print one object: text, tokens, finish, seed, timings."},
    GN_CLI_COMPUTE_OPTIONS(options),
    GN_CLI_SETTINGS_MORE(options),
    {.name = "dry-breaker",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, dry_breakers),
     .value = "TEXT",
     .more = true,
     .help = "DRY: a text that ends a repeated sequence; may be given more than once; default: "
             "newline, colon, double quote, asterisk."},
    {.name = "logit-bias",
     .kind = GN_CLI_LIST,
     .offset = offsetof(options, logit_bias),
     .value = "ID:BIAS",
     .more = true,
     .help = "Add to the logit of a token; -inf bans it; may be given more than once."},
};

/* ---- output of one answer ---- */

static gn_status put_logprob(gn_cli_json *json, const gn_model *model, int32_t id, float logprob)
{
    char *piece = NULL;
    size_t len = 0;
    GN_TRY(gn_model_piece(model, id, true, &piece, &len));
    if (json != NULL) {
        gn_cli_json_object(json, NULL);
        gn_cli_json_int(json, "id", id);
        gn_cli_json_strn(json, "token", piece, len);
        gn_cli_json_real(json, "logprob", (double)logprob, 7);
        gn_cli_json_end(json);
    } else {
        gn_cli_json line;
        gn_cli_json_init(&line, stderr);
        (void)fprintf(stderr, "%11.6f %7d ", (double)logprob, id);
        gn_cli_json_strn(&line, NULL, piece, len);
        (void)fputc('\n', stderr);
    }
    gn_release(piece);
    return GN_OK;
}

static gn_status put_logprobs(gn_cli_json *json, const gn_model *model, const gn_cli_answer *a)
{
    for (size_t i = 0; i < a->n; i++) {
        GN_TRY(put_logprob(json, model, a->ids[i], a->logprobs[i]));
    }
    return GN_OK;
}

static void put_timing(gn_cli_json *json, const char *seconds, const char *speed, uint64_t ns,
                       size_t n)
{
    gn_cli_json_real(json, seconds, (double)ns * 1e-9, 6);
    gn_cli_json_real(json, speed, ns != 0 ? (double)n * 1e9 / (double)ns : 0.0, 2);
}

static gn_status put_json(const options *o, const gn_cli_asker *asker, const gn_cli_answer *a,
                          uint64_t load_ns)
{
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_strn(&json, "text", a->text.data != NULL ? a->text.data : "", a->text.len);
    gn_cli_json_array(&json, "tokens");
    for (size_t i = 0; i < a->n; i++) {
        gn_cli_json_int(&json, NULL, a->ids[i]);
    }
    gn_cli_json_end(&json);
    gn_cli_json_str(&json, "finish", gn_cli_finish_name(a->finish));
    gn_cli_json_bool(&json, "grammar_closed", a->grammar_closed);
    gn_cli_json_str(&json, "stop", a->stop_index >= 0 ? o->stop.v[a->stop_index] : NULL);
    gn_cli_json_uint(&json, "seed", a->seed);
    gn_cli_json_uint(&json, "n_prompt", a->n_prompt);
    gn_cli_json_uint(&json, "n_tokens", a->n);
    gn_cli_json_object(&json, "timings");
    gn_cli_json_real(&json, "load_s", (double)load_ns * 1e-9, 6);
    put_timing(&json, "prompt_s", "prompt_tok_s", a->prompt_ns, a->n_prompt - a->n_reused);
    put_timing(&json, "generate_s", "generate_tok_s", a->generate_ns, a->n);
    gn_cli_json_end(&json);
    gn_status status = GN_OK;
    if (o->logprobs) {
        gn_cli_json_array(&json, "logprobs");
        status = put_logprobs(&json, asker->model, a);
        gn_cli_json_end(&json);
    }
    gn_cli_json_end(&json);
    return status;
}

static gn_status put_answer(const options *o, const gn_cli_asker *asker, const gn_cli_answer *a,
                            uint64_t load_ns)
{
    if (o->json) {
        GN_TRY(put_json(o, asker, a, load_ns));
    } else {
        if (a->text.len == 0 || a->text.data[a->text.len - 1] != '\n') {
            (void)fputc('\n', stdout);
        }
        GN_TRY(gn_cli_flush());
        if (o->logprobs) {
            GN_TRY(put_logprobs(NULL, asker->model, a));
        }
        if (a->grammar_closed) {
            (void)fprintf(stderr, "(the answer is closed early: the limit of tokens came near)\n");
        } else if (a->finish == GN_FINISH_LENGTH && a->n_prompt + a->n >= asker->n_ctx) {
            (void)fprintf(stderr, "(the answer is cut: the context of %zu tokens is full)\n",
                          asker->n_ctx);
        }
    }
    if (o->stats) {
        gn_cli_answer_stats(a);
    }
    return GN_OK;
}

/* ---- one answer ---- */

static gn_status read_prompt(const options *o, gn_buf *prompt)
{
    if (o->prompt != NULL) {
        return gn_buf_puts(prompt, o->prompt);
    }
    return gn_cli_read(o->file, 0, prompt);
}

static gn_status ask_with_template(const options *o, gn_cli_asker *asker, const gn_buf *prompt,
                                   gn_cli_answer *answer)
{
    json_t *messages = json_array();
    if (messages == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = GN_OK;
    if (o->system != NULL) {
        status = gn_cli_chat_add(messages, 0, "system", o->system, strlen(o->system));
    }
    if (status == GN_OK) {
        status = gn_cli_chat_add(messages, json_array_size(messages), "user",
                                 prompt->data != NULL ? prompt->data : "", prompt->len);
        if (status == GN_E_FORMAT) {
            const char *name = o->file != NULL ? gn_cli_input_name(o->file) : "-p";
            status = gn_base_fail_prefix(status, "%s: ", name);
        }
    }
    if (status == GN_OK) {
        status = gn_cli_ask_chat(asker, &o->settings, messages, answer);
    }
    json_decref(messages);
    return status;
}

static gn_status run_once(const options *o, gn_cli_asker *asker, uint64_t load_ns)
{
    bool plain = o->raw || !asker->info.has_chat_template;
    GN_REQUIRE(!plain || o->system == NULL, GN_E_ARG,
               "--system: found %s, expected a chat template to put the message into",
               o->raw ? "--raw" : "a model without one");
    gn_buf prompt = {0};
    gn_cli_answer answer = {0};
    gn_status status = read_prompt(o, &prompt);
    bool given = status == GN_OK;
    if (status == GN_OK && plain) {
        status = gn_cli_ask(asker, &o->settings, prompt.data != NULL ? prompt.data : "", prompt.len,
                            GN_TOKENIZE_BOS, &answer);
    } else if (status == GN_OK) {
        status = ask_with_template(o, asker, &prompt, &answer);
    }
    if (status == GN_E_LIMIT && given && o->file != NULL) {
        status = gn_base_fail_prefix(status, "%s: ", gn_cli_input_name(o->file));
    }
    if (status == GN_OK) {
        status = put_answer(o, asker, &answer, load_ns);
    }
    gn_cli_answer_fini(&answer);
    gn_buf_fini(&prompt);
    return status;
}

static gn_status check_options(const options *o)
{
    bool once = o->prompt != NULL || o->file != NULL;
    GN_REQUIRE(o->prompt == NULL || o->file == NULL, GN_E_ARG,
               "found both -p and -f, expected one of them");
    GN_REQUIRE(once || !o->json, GN_E_ARG, "--json: found no prompt, expected -p or -f with it");
    GN_REQUIRE(once || !o->raw, GN_E_ARG, "--raw: found no prompt, expected -p or -f with it");
    GN_REQUIRE(once || !o->logprobs, GN_E_ARG,
               "--logprobs: found no prompt, expected -p or -f with it");
    for (size_t i = 0; i < o->stop.n; i++) {
        GN_REQUIRE(o->stop.v[i][0] != '\0', GN_E_ARG, "--stop: found an empty text");
    }
    GN_TRY(gn_cli_grammar_check(&o->grammar));
    return gn_cli_settings_check(&o->settings);
}

static gn_status run_with_model(const options *o, gn_model *model, gn_grammar *grammar,
                                uint64_t load_ns)
{
    bool once = o->prompt != NULL || o->file != NULL;
    gn_cli_asker_options asker_options = {
        .n_ctx = o->n_ctx,
        .stop = &o->stop,
        .logit_bias = &o->logit_bias,
        .dry_breakers = &o->dry_breakers,
        .grammar = grammar,
        .echo = o->json ? NULL : stdout,
    };
    gn_cli_asker asker = {0};
    gn_status status = gn_cli_asker_init(&asker, model, &asker_options);
    if (status == GN_OK && o->n_ctx > asker.info.n_ctx_train) {
        (void)fprintf(stderr,
                      "(the model was made for %d tokens of context, less than --ctx %lld)\n",
                      asker.info.n_ctx_train, (long long)o->n_ctx);
    }
    if (status == GN_OK && once) {
        status = run_once(o, &asker, load_ns);
    } else if (status == GN_OK && !asker.info.has_chat_template) {
        status = gn_base_fail(GN_E_UNSUPPORTED,
                              "%s: found no chat template, expected one for a chat; -p TEXT "
                              "continues a text",
                              o->model.path);
    } else if (status == GN_OK) {
        status = gn_cli_chat_run(&asker, o->model.path, &o->settings, o->system, o->stats);
    }
    gn_cli_asker_fini(&asker);
    return status;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    GN_TRY(check_options(o));
    gn_grammar *grammar = NULL;
    GN_TRY(gn_cli_grammar_load(&o->grammar, &grammar));
    uint64_t start = gn_os_now_ns();
    gn_model *model = NULL;
    gn_status status = gn_cli_model_open(&o->model, &model);
    if (status == GN_OK) {
        status = run_with_model(o, model, grammar, gn_os_now_ns() - start);
    }
    gn_cli_model_close(model);
    gn_grammar_release(grammar);
    return status;
}

const gn_cli_command gn_cli_cmd_run = {
    .name = "run",
    .summary = "answer a prompt, or chat",
    .usage = "-m MODEL [-p TEXT | -f FILE] [options]",
    .details = "With -p or -f: one answer on standard output. Without: a chat; /help lists its "
               "commands, Ctrl-C\nstops an answer, Ctrl-D ends the chat. Lines from a pipe are "
               "messages too. With --schema, --regex or --gbnf every answer is a text of the "
               "grammar, also at the\nlimit of tokens: a limit below the shortest one is refused.",
    .example = "ganglion run -m smollm2-135m -p 'What is a ganglion?'\n"
               "ganglion run -m smollm2-135m --system 'Answer briefly.' --temp 0\n"
               "ganglion run -m smollm2-135m -p 'Is water wet?' --regex 'yes|no'",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
