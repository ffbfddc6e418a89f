/* `ganglion logits`: the best log-probabilities at each position of given ids, for comparison with other
 * engines. Rows of logits are taken a chunk of positions at a time, so memory stays bounded. */
#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "ganglion/session.h"

typedef struct options {
    gn_cli_model_args model;
    const char *tokens;
    int64_t top;
    bool all;
    bool json;
} options;

static const options defaults = {.top = 10};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.name = "tokens",
     .kind = GN_CLI_TEXT,
     .offset = offsetof(options, tokens),
     .value = "FILE",
     .help = "A JSON array of token ids, used as they are (no BOS is added); - is standard input."},
    {.name = "top",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, top),
     .value = "K",
     .help = "How many tokens a position, up to the vocabulary; default: 10.",
     .min = 1,
     .max = 16777216},
    {.name = "all",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, all),
     .help = "Every position; default: the last."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Changes nothing: the output is JSON always."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

#define CHUNK_POSITIONS ((size_t)64)

static gn_status print_position(gn_cli_json *json, size_t pos, const float *logits, int32_t n_vocab,
                                gn_logprob *top, int32_t k)
{
    GN_TRY(gn_sample_top_logprobs(logits, n_vocab, k, top));
    gn_cli_json_object(json, NULL);
    gn_cli_json_uint(json, "pos", pos);
    gn_cli_json_array(json, "top");
    for (int32_t i = 0; i < k; i++) {
        gn_cli_json_array(json, NULL);
        gn_cli_json_int(json, NULL, top[i].id);
        gn_cli_json_real(json, NULL, (double)top[i].logprob, 7);
        gn_cli_json_end(json);
    }
    gn_cli_json_end(json);
    gn_cli_json_end(json);
    return GN_OK;
}

/* The positions [first, n) are printed; those before are evaluated only. */
static gn_status print_positions(gn_session *session, const int32_t *ids, size_t n, size_t first,
                                 int32_t n_vocab, int32_t k)
{
    size_t rows_most = n - first < CHUNK_POSITIONS ? n - first : CHUNK_POSITIONS;
    float *logits = gn_alloc_array(rows_most, (size_t)n_vocab * sizeof *logits);
    gn_logprob *top = gn_alloc_array((size_t)k, sizeof *top);
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "logits", "tok", n, 0);
    gn_status status = logits == NULL || top == NULL ? gn_alloc_failed() : GN_OK;
    if (status == GN_OK && first > 0) {
        status = gn_session_eval(session, ids, first, NULL, 0);
    }
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    for (size_t pos = first; status == GN_OK && pos < n;) {
        size_t count = n - pos < rows_most ? n - pos : rows_most;
        status = gn_session_eval(session, ids + pos, count, logits, count);
        if (status == GN_OK && pos == first) {
            gn_cli_json_object(&json, NULL);
            gn_cli_json_array(&json, "positions");
        }
        for (size_t i = 0; status == GN_OK && i < count; i++) {
            status = print_position(&json, pos + i, logits + i * (size_t)n_vocab, n_vocab, top, k);
        }
        pos += count;
        gn_cli_progress_at(&progress, pos);
    }
    gn_cli_progress_end(&progress);
    if (status == GN_OK) {
        gn_cli_json_end(&json);
        gn_cli_json_end(&json);
    }
    gn_free(top);
    gn_free(logits);
    return status;
}

static gn_status check_ids(const options *o, const int32_t *ids, size_t n,
                           const gn_model_info *info)
{
    int32_t n_vocab = info->n_vocab;
    GN_REQUIRE(n > 0, GN_E_FORMAT, "%s: found no token ids, expected at least one", o->tokens);
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(ids[i] < n_vocab, GN_E_FORMAT,
                   "%s: element %zu: found id %d, expected less than the vocabulary's %d",
                   o->tokens, i, ids[i], n_vocab);
    }
    GN_REQUIRE(n <= (size_t)info->n_ctx_train, GN_E_LIMIT,
               "%s: found %zu token ids, expected at most the model's context of %d", o->tokens, n,
               info->n_ctx_train);
    GN_REQUIRE(o->top <= n_vocab, GN_E_ARG,
               "--top: found %lld, expected at most the vocabulary's %d", (long long)o->top,
               n_vocab);
    return GN_OK;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    const options *o = options_;
    GN_REQUIRE(o->tokens != NULL, GN_E_ARG, "found no ids, expected --tokens FILE");
    gn_model *model = NULL;
    GN_TRY(gn_cli_model_open(&o->model, &model));
    gn_model_info info = gn_model_get_info(model);
    gn_session *session = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    gn_status status = gn_cli_read_ids(o->tokens, &ids, &n);
    if (status == GN_OK) {
        status = check_ids(o, ids, n, &info);
    }
    if (status == GN_OK) {
        /* Models with LongRoPE choose their angles by the context: let it be as long as the ids. */
        gn_session_options session_options = {.n_ctx = (int32_t)n};
        status = gn_session_create(model, &session_options, &session);
    }
    if (status == GN_OK) {
        status =
            print_positions(session, ids, n, o->all ? 0 : n - 1, info.n_vocab, (int32_t)o->top);
    }
    gn_session_destroy(session);
    gn_free(ids);
    gn_cli_model_close(model);
    return status;
}

const gn_cli_command gn_cli_cmd_logits = {
    .name = "logits",
    .summary = "log-probabilities at each position of given token ids",
    .usage = "-m MODEL --tokens FILE [options]",
    .details = "Prints {\"positions\":[{\"pos\":0,\"top\":[[id,logprob],…]},…]}: natural "
               "logarithms over the\n"
               "full vocabulary, best first. Position i holds the prediction of token i+1.",
    .example = "echo '[1, 4093, 198]' | ganglion logits -m smollm2-135m --tokens - --top 5 --all",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
