/* `eval kld`: how far a model's predictions are from those of a base, with the definitions of llama.cpp's
 * perplexity tool: KL(base ‖ model) = Σ p_base (log p_base − log p), its mean and percentiles with linear
 * interpolation over the counted positions, and the share of positions with the same best token. */
#include "cli/eval.h"

#include "base/alloc.h"
#include "cli/out.h"

#include <math.h>
#include <stdlib.h>

typedef struct kld {
    gn_cli_windows windows;
    gn_cli_base *base;
    gn_session *session;
    float *logits;      /* [GN_CLI_EVAL_ROWS][n_vocab] */
    float *base_logits; /* the same */
    double *values;     /* [windows.n * counted] */
    size_t n_values;
    size_t n_vocab;
    uint64_t n_same_top;
    gn_cli_mean divergence, nll, nll_base;
} kld;

static size_t best(const float *row, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++) {
        at = row[i] > row[at] ? i : at;
    }
    return at;
}

static void add_position(kld *k, const float *row, const float *base_row, int32_t next)
{
    double total = gn_sample_logsumexp(row, (int32_t)k->n_vocab);
    double base_total = gn_sample_logsumexp(base_row, (int32_t)k->n_vocab);
    double sum = 0;
    for (size_t i = 0; i < k->n_vocab; i++) {
        double log_p_base = (double)base_row[i] - base_total;
        sum += exp(log_p_base) * (log_p_base - ((double)row[i] - total));
    }
    gn_cli_mean_add(&k->divergence, sum);
    gn_cli_mean_add(&k->nll, total - (double)row[next]);
    gn_cli_mean_add(&k->nll_base, base_total - (double)base_row[next]);
    k->n_same_top += best(row, k->n_vocab) == best(base_row, k->n_vocab);
    k->values[k->n_values++] = sum;
}

static gn_status add_window(kld *k, size_t index)
{
    const size_t n_ctx = k->windows.n_ctx;
    const int32_t *ids = k->windows.ids + index * n_ctx;
    GN_TRY(gn_cli_windows_begin(&k->windows, index, k->session));
    GN_TRY(gn_cli_base_begin(k->base, &k->windows, index));
    for (size_t pos = gn_cli_windows_first(n_ctx); pos < n_ctx - 1;) {
        size_t count = n_ctx - 1 - pos < GN_CLI_EVAL_ROWS ? n_ctx - 1 - pos : GN_CLI_EVAL_ROWS;
        GN_TRY(gn_cli_windows_step(&k->windows, index, pos, count, k->session, k->logits));
        GN_TRY(gn_cli_base_step(k->base, &k->windows, index, pos, count, k->base_logits));
        for (size_t i = 0; i < count; i++) {
            add_position(k, k->logits + i * k->n_vocab, k->base_logits + i * k->n_vocab,
                         ids[pos + i + 1]);
        }
        pos += count;
    }
    return GN_OK;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values. */
static double percentile(const double *values, size_t n, double fraction)
{
    double at = fraction * (double)(n - 1);
    size_t i = (size_t)at;
    double part = at - (double)i;
    return i + 1 < n ? (1 - part) * values[i] + part * values[i + 1] : values[n - 1];
}

static void print_result(kld *k, bool as_json)
{
    qsort(k->values, k->n_values, sizeof *k->values, ascending);
    double ppl = exp(gn_cli_mean_value(&k->nll));
    double ppl_base = exp(gn_cli_mean_value(&k->nll_base));
    double same = (double)k->n_same_top / (double)k->n_values;
    double p999 = percentile(k->values, k->n_values, 0.999);
    double mean = gn_cli_mean_value(&k->divergence);
    double most = k->values[k->n_values - 1];
    if (!as_json) {
        (void)printf("mean KLD    %.6f ± %.6f\nKLD 99.9 %%  %.6f\nKLD most    %.6f\n"
                     "same top    %.4f\nperplexity  %.4f (base %.4f)\npositions   %zu\n",
                     mean, gn_cli_mean_error(&k->divergence), p999, most, same, ppl, ppl_base,
                     k->n_values);
        return;
    }
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_real(&json, "mean_kld", mean, -1);
    gn_cli_json_real(&json, "mean_kld_error", gn_cli_mean_error(&k->divergence), -1);
    gn_cli_json_real(&json, "p999_kld", p999, -1);
    gn_cli_json_real(&json, "p99_kld", percentile(k->values, k->n_values, 0.99), -1);
    gn_cli_json_real(&json, "median_kld", percentile(k->values, k->n_values, 0.5), -1);
    gn_cli_json_real(&json, "max_kld", most, -1);
    gn_cli_json_real(&json, "same_top", same, 6);
    gn_cli_json_real(&json, "ppl", ppl, 6);
    gn_cli_json_real(&json, "ppl_base", ppl_base, 6);
    gn_cli_json_uint(&json, "ctx", k->windows.n_ctx);
    gn_cli_json_uint(&json, "windows", k->windows.n);
    gn_cli_json_uint(&json, "positions", k->n_values);
    gn_cli_json_end(&json);
}

static gn_status measure(kld *k, gn_model *model)
{
    const gn_cli_windows *w = &k->windows;
    gn_session_options options = {.n_ctx = (int32_t)w->n_ctx};
    GN_TRY(gn_session_create(model, &options, &k->session));
    k->logits = gn_alloc_array(GN_CLI_EVAL_ROWS, k->n_vocab * sizeof *k->logits);
    k->base_logits = gn_alloc_array(GN_CLI_EVAL_ROWS, k->n_vocab * sizeof *k->base_logits);
    k->values = gn_alloc_array(w->n * gn_cli_windows_counted(w->n_ctx), sizeof *k->values);
    if (k->logits == NULL || k->base_logits == NULL || k->values == NULL) {
        return gn_alloc_failed();
    }
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "KL divergence", "tok", w->n * w->n_ctx, 0);
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < w->n; i++) {
        status = add_window(k, i);
        gn_cli_progress_at(&progress, (i + 1) * w->n_ctx);
    }
    gn_cli_progress_end(&progress);
    return status;
}

gn_status gn_cli_eval_kld(const gn_cli_eval_options *options, const char *path)
{
    if (options->save_base != NULL) {
        return gn_cli_base_save(options, path);
    }
    GN_REQUIRE(options->base != NULL, GN_E_ARG,
               "found no base, expected --base MODEL, --base FILE or --save-base FILE");
    gn_model *model = NULL;
    GN_TRY(gn_cli_model_open(&options->model, &model));
    int32_t n_vocab = gn_model_get_info(model).n_vocab;
    kld k = {.n_vocab = (size_t)n_vocab};
    gn_status status = gn_cli_base_open(options, path, n_vocab, &k.windows, &k.base);
    if (status == GN_OK) {
        status = measure(&k, model);
    }
    if (status == GN_OK) {
        print_result(&k, options->json);
    }
    gn_free(k.values);
    gn_free(k.base_logits);
    gn_free(k.logits);
    gn_session_destroy(k.session);
    gn_cli_base_close(k.base);
    gn_cli_windows_fini(&k.windows);
    gn_cli_model_close(model);
    return status;
}
