/* `eval hellaswag`: which of several endings does the model find likeliest? A line of the file is one task,
 * {"ctx": text, "endings": [text, …], "label": index}. The tokens of ctx + " " + ending that ctx alone
 * does not start with are scored. acc takes the largest sum of log-probabilities; acc_norm the largest per
 * character of the ending (as lm-evaluation-harness does); acc_norm_tokens the largest per token (as
 * llama.cpp's perplexity tool does). */
#include "cli/eval.h"

#include "base/alloc.h"
#include "cli/out.h"

#include <math.h>
#include <string.h>

#define MAX_ENDINGS 32

typedef struct scorer {
    gn_model *model;
    gn_session *session;
    float *logits; /* [GN_CLI_EVAL_ROWS][n_vocab] */
    size_t n_vocab;
} scorer;

typedef struct score {
    double sum;
    size_t n_tokens;
    size_t n_chars;
} score;

static size_t common_prefix(const int32_t *a, size_t n, const int32_t *b, size_t m)
{
    size_t i = 0;
    while (i < n && i < m && a[i] == b[i]) {
        i++;
    }
    return i;
}

/* Evaluate ids[from - 1 .. n - 1) and sum the log-probabilities of ids[from .. n). What the session
 * already holds of the prefix is kept. */
static gn_status score_ids(scorer *s, const int32_t *ids, size_t n, size_t from, double *sum)
{
    size_t kept =
        common_prefix(gn_session_tokens(s->session), gn_session_length(s->session), ids, from - 1);
    GN_TRY(gn_session_truncate(s->session, kept));
    if (kept < from - 1) {
        GN_TRY(gn_session_eval(s->session, ids + kept, from - 1 - kept, NULL, 0));
    }
    *sum = 0;
    for (size_t pos = from - 1; pos < n - 1;) {
        size_t count = n - 1 - pos < GN_CLI_EVAL_ROWS ? n - 1 - pos : GN_CLI_EVAL_ROWS;
        GN_TRY(gn_session_eval(s->session, ids + pos, count, s->logits, count));
        for (size_t i = 0; i < count; i++) {
            const float *row = s->logits + i * s->n_vocab;
            *sum += (double)row[ids[pos + i + 1]] - gn_sample_logsumexp(row, (int32_t)s->n_vocab);
        }
        pos += count;
    }
    return GN_OK;
}

static size_t count_chars(const char *s)
{
    size_t n = 0;
    for (; *s != '\0'; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

static gn_status score_ending(scorer *s, const char *ctx, const char *ending, score *out)
{
    gn_buf text = {0};
    int32_t *alone = NULL;
    int32_t *ids = NULL;
    size_t n_alone = 0;
    size_t n = 0;
    gn_status status = gn_buf_printf(&text, "%s %s", ctx, ending);
    if (status == GN_OK) {
        status = gn_model_tokenize(s->model, ctx, strlen(ctx), GN_TOKENIZE_BOS, &alone, &n_alone);
    }
    if (status == GN_OK) {
        status = gn_model_tokenize(s->model, text.data, text.len, GN_TOKENIZE_BOS, &ids, &n);
    }
    if (status == GN_OK) {
        size_t from = common_prefix(alone, n_alone, ids, n);
        from = from == n ? n - 1 : from;
        /* Without a token before it the first one has no prediction. */
        from = from == 0 ? 1 : from;
        if (n < 2) {
            status = gn_base_fail(GN_E_FORMAT, "found %zu tokens, expected at least 2", n);
        } else {
            status = score_ids(s, ids, n, from, &out->sum);
            out->n_tokens = n - from;
            out->n_chars = count_chars(ending);
        }
    }
    gn_release(ids);
    gn_release(alone);
    gn_buf_fini(&text);
    return status;
}

typedef struct totals {
    uint64_t n, acc, acc_norm, acc_norm_tokens;
} totals;

/* Index of the largest sum / weight: 0 plain, 1 characters, 2 tokens. */
static size_t pick(const score *scores, size_t n, int weight)
{
    size_t best = 0;
    double best_value = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double by = weight == 0   ? 1.0
                    : weight == 1 ? (double)(scores[i].n_chars > 0 ? scores[i].n_chars : 1)
                                  : (double)scores[i].n_tokens;
        if (scores[i].sum / by > best_value) {
            best_value = scores[i].sum / by;
            best = i;
        }
    }
    return best;
}

static gn_status read_label(const json_t *label, size_t n, size_t *out)
{
    json_int_t v = json_is_integer(label) ? json_integer_value(label) : -1;
    const char *text = json_string_value(label);
    if (text != NULL && text[0] >= '0' && text[0] <= '9' && text[1] == '\0') {
        v = text[0] - '0';
    }
    GN_REQUIRE(v >= 0 && (uint64_t)v < n, GN_E_FORMAT, "label: expected an index from 0 to %zu",
               n - 1);
    *out = (size_t)v;
    return GN_OK;
}

static gn_status run_task(scorer *s, const json_t *task, totals *t)
{
    const char *ctx = json_string_value(json_object_get(task, "ctx"));
    const json_t *endings = json_object_get(task, "endings");
    size_t n = json_array_size(endings);
    GN_REQUIRE(ctx != NULL, GN_E_FORMAT, "ctx: expected a string");
    GN_REQUIRE(n >= 2 && n <= MAX_ENDINGS, GN_E_FORMAT,
               "endings: found %zu, expected an array of 2 to %d strings", n, MAX_ENDINGS);
    size_t label = 0;
    GN_TRY(read_label(json_object_get(task, "label"), n, &label));
    score scores[MAX_ENDINGS];
    for (size_t i = 0; i < n; i++) {
        const char *ending = json_string_value(json_array_get(endings, i));
        GN_REQUIRE(ending != NULL, GN_E_FORMAT, "endings[%zu]: expected a string", i);
        GN_TRY(score_ending(s, ctx, ending, &scores[i]));
    }
    t->n++;
    t->acc += pick(scores, n, 0) == label;
    t->acc_norm += pick(scores, n, 1) == label;
    t->acc_norm_tokens += pick(scores, n, 2) == label;
    return GN_OK;
}

static gn_status run_lines(scorer *s, const gn_buf *text, size_t limit, totals *t)
{
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "tasks", "tasks", limit, 0);
    gn_status status = GN_OK;
    size_t line = 0;
    for (size_t at = 0; status == GN_OK && at < text->len && (limit == 0 || t->n < limit);) {
        const char *s_line = text->data + at;
        const char *end = memchr(s_line, '\n', text->len - at);
        size_t len = end != NULL ? (size_t)(end - s_line) : text->len - at;
        at += len + 1;
        line++;
        if (strspn(s_line, " \t\r") >= len) {
            continue;
        }
        json_error_t error;
        json_t *task = json_loadb(s_line, len, 0, &error);
        status = task != NULL
                     ? run_task(s, task, t)
                     : gn_base_fail(GN_E_FORMAT, "column %d: %s", error.column, error.text);
        json_decref(task);
        if (status != GN_OK) {
            (void)gn_base_fail_prefix(status, "line %zu: ", line);
        }
        gn_cli_progress_at(&progress, t->n);
    }
    gn_cli_progress_end(&progress);
    if (status == GN_OK && t->n == 0) {
        status = gn_base_fail(GN_E_FORMAT, "found no task, expected one JSON object a line");
    }
    return status;
}

static void print_totals(const totals *t, bool as_json)
{
    double n = (double)t->n;
    double acc = (double)t->acc / n;
    double acc_norm = (double)t->acc_norm / n;
    double error = t->n > 1 ? sqrt(acc_norm * (1 - acc_norm) / (n - 1)) : 0;
    if (!as_json) {
        (void)printf("acc %.4f, acc_norm %.4f ± %.4f over %llu tasks\n", acc, acc_norm, error,
                     (unsigned long long)t->n);
        return;
    }
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_real(&json, "acc", acc, 6);
    gn_cli_json_real(&json, "acc_norm", acc_norm, 6);
    gn_cli_json_real(&json, "acc_norm_error", error, 6);
    gn_cli_json_real(&json, "acc_norm_tokens", (double)t->acc_norm_tokens / n, 6);
    gn_cli_json_uint(&json, "tasks", t->n);
    gn_cli_json_end(&json);
}

gn_status gn_cli_eval_hellaswag(const gn_cli_eval_options *options, const char *path)
{
    GN_REQUIRE(path != NULL, GN_E_ARG, "found no tasks, expected FILE");
    scorer s = {0};
    GN_TRY(gn_cli_model_open(&options->model, &s.model));
    s.n_vocab = (size_t)gn_model_get_info(s.model).n_vocab;
    s.logits = gn_alloc_array(GN_CLI_EVAL_ROWS, s.n_vocab * sizeof *s.logits);
    gn_buf text = {0};
    totals t = {0};
    gn_status status = s.logits == NULL ? gn_alloc_failed() : gn_cli_read(path, 0, &text);
    if (status == GN_OK) {
        status = gn_session_create(s.model, NULL, &s.session);
    }
    if (status == GN_OK) {
        status = run_lines(&s, &text, (size_t)options->limit, &t);
        if (status != GN_OK) {
            (void)gn_base_fail_prefix(status, "%s: ", path);
        }
    }
    if (status == GN_OK) {
        print_totals(&t, options->json);
    }
    gn_buf_fini(&text);
    gn_session_destroy(s.session);
    gn_free(s.logits);
    gn_cli_model_close(s.model);
    return status;
}
