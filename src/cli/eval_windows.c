/* Windows over a text, perplexity, and means with their standard errors. */
#include "cli/eval.h"

#include "base/alloc.h"
#include "cli/out.h"

#include <math.h>
#include <string.h>

void gn_cli_mean_add(gn_cli_mean *mean, double v)
{
    mean->sum += v;
    mean->sum_squares += v * v;
    mean->n++;
}

double gn_cli_mean_value(const gn_cli_mean *mean)
{
    return mean->n > 0 ? mean->sum / (double)mean->n : 0;
}

double gn_cli_mean_error(const gn_cli_mean *mean)
{
    if (mean->n < 2) {
        return 0;
    }
    double m = gn_cli_mean_value(mean);
    double variance = mean->sum_squares / (double)mean->n - m * m;
    return variance > 0 ? sqrt(variance / (double)(mean->n - 1)) : 0;
}

/* The BOS that the model puts in front of a text, or -1. */
static gn_status added_bos(gn_model *model, int32_t *out)
{
    int32_t bos = gn_model_get_info(model).bos;
    int32_t *ids = NULL;
    size_t n = 0;
    GN_TRY(gn_model_tokenize(model, "", 0, GN_TOKENIZE_BOS, &ids, &n));
    *out = n > 0 && bos >= 0 && ids[0] == bos ? bos : -1;
    gn_release(ids);
    return GN_OK;
}

static gn_status tokenize_file(gn_model *model, const char *path, int32_t **ids, size_t *n)
{
    gn_buf text = {0};
    gn_status status = gn_cli_read(path, 0, &text);
    if (status == GN_OK) {
        status = gn_model_tokenize(model, text.data != NULL ? text.data : "", text.len,
                                   GN_TOKENIZE_BOS, ids, n);
    }
    gn_buf_fini(&text);
    return status;
}

gn_status gn_cli_windows_read(gn_model *model, const char *path, size_t n_ctx, size_t limit,
                              gn_cli_windows *out)
{
    gn_cli_windows w = {.n_ctx = n_ctx};
    GN_TRY(added_bos(model, &w.bos));
    int32_t *ids = NULL;
    size_t n = 0;
    GN_TRY(tokenize_file(model, path, &ids, &n));
    w.n = n / n_ctx;
    if (limit > 0 && w.n > limit) {
        w.n = limit;
    }
    gn_status status = GN_OK;
    if (w.n == 0) {
        status =
            gn_base_fail(GN_E_FORMAT, "%s: found %zu tokens, expected at least one window of %zu",
                         path, n, n_ctx);
    } else {
        w.ids = gn_alloc_array(w.n * n_ctx, sizeof *w.ids);
        if (w.ids == NULL) {
            status = gn_alloc_failed();
        } else {
            memcpy(w.ids, ids, w.n * n_ctx * sizeof *w.ids);
            *out = w;
        }
    }
    gn_release(ids);
    return status;
}

void gn_cli_windows_fini(gn_cli_windows *windows)
{
    gn_free(windows->ids);
    *windows = (gn_cli_windows){0};
}

size_t gn_cli_windows_first(size_t n_ctx)
{
    return n_ctx / 2;
}

size_t gn_cli_windows_counted(size_t n_ctx)
{
    return n_ctx - 1 - n_ctx / 2;
}

gn_status gn_cli_windows_begin(const gn_cli_windows *windows, size_t index, gn_session *session)
{
    const int32_t *ids = windows->ids + index * windows->n_ctx;
    size_t first = gn_cli_windows_first(windows->n_ctx);
    GN_TRY(gn_session_truncate(session, 0));
    size_t skip = 0;
    if (windows->bos >= 0) {
        GN_TRY(gn_session_eval(session, &windows->bos, 1, NULL, 0));
        skip = 1;
    }
    return first > skip ? gn_session_eval(session, ids + skip, first - skip, NULL, 0) : GN_OK;
}

gn_status gn_cli_windows_step(const gn_cli_windows *windows, size_t index, size_t pos, size_t count,
                              gn_session *session, float *logits)
{
    return gn_session_eval(session, windows->ids + index * windows->n_ctx + pos, count, logits,
                           count);
}

typedef struct ppl {
    gn_cli_windows windows;
    gn_session *session;
    float *logits; /* [GN_CLI_EVAL_ROWS][n_vocab] */
    size_t n_vocab;
    gn_cli_mean nll;
} ppl;

static gn_status ppl_window(ppl *p, size_t index)
{
    const size_t n_ctx = p->windows.n_ctx;
    const int32_t *ids = p->windows.ids + index * n_ctx;
    GN_TRY(gn_cli_windows_begin(&p->windows, index, p->session));
    for (size_t pos = gn_cli_windows_first(n_ctx); pos < n_ctx - 1;) {
        size_t count = n_ctx - 1 - pos < GN_CLI_EVAL_ROWS ? n_ctx - 1 - pos : GN_CLI_EVAL_ROWS;
        GN_TRY(gn_cli_windows_step(&p->windows, index, pos, count, p->session, p->logits));
        for (size_t i = 0; i < count; i++) {
            const float *row = p->logits + i * p->n_vocab;
            double total = gn_sample_logsumexp(row, (int32_t)p->n_vocab);
            gn_cli_mean_add(&p->nll, total - (double)row[ids[pos + i + 1]]);
        }
        pos += count;
    }
    return GN_OK;
}

static void ppl_print(const ppl *p, bool as_json)
{
    double value = exp(gn_cli_mean_value(&p->nll));
    double error = value * gn_cli_mean_error(&p->nll);
    if (!as_json) {
        (void)printf("perplexity %.4f ± %.4f over %zu windows of %zu tokens\n", value, error,
                     p->windows.n, p->windows.n_ctx);
        return;
    }
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    gn_cli_json_object(&json, NULL);
    gn_cli_json_real(&json, "ppl", value, 6);
    gn_cli_json_real(&json, "ppl_error", error, 6);
    gn_cli_json_real(&json, "nll", gn_cli_mean_value(&p->nll), 9);
    gn_cli_json_uint(&json, "ctx", p->windows.n_ctx);
    gn_cli_json_uint(&json, "windows", p->windows.n);
    gn_cli_json_uint(&json, "positions", p->nll.n);
    gn_cli_json_end(&json);
}

static gn_status ppl_run(ppl *p, gn_model *model)
{
    gn_session_options options = {.n_ctx = (int32_t)p->windows.n_ctx};
    GN_TRY(gn_session_create(model, &options, &p->session));
    p->logits = gn_alloc_array(GN_CLI_EVAL_ROWS, p->n_vocab * sizeof *p->logits);
    if (p->logits == NULL) {
        return gn_alloc_failed();
    }
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "perplexity", "tok", p->windows.n * p->windows.n_ctx, 0);
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < p->windows.n; i++) {
        status = ppl_window(p, i);
        gn_cli_progress_at(&progress, (i + 1) * p->windows.n_ctx);
    }
    gn_cli_progress_end(&progress);
    return status;
}

gn_status gn_cli_eval_ppl(const gn_cli_eval_options *options, const char *path)
{
    gn_model *model = NULL;
    GN_TRY(gn_cli_model_open(&options->model, &model));
    ppl p = {.n_vocab = (size_t)gn_model_get_info(model).n_vocab};
    gn_status status =
        gn_cli_windows_read(model, path, (size_t)options->ctx, (size_t)options->limit, &p.windows);
    if (status == GN_OK) {
        status = ppl_run(&p, model);
    }
    if (status == GN_OK) {
        ppl_print(&p, options->json);
    }
    gn_free(p.logits);
    gn_session_destroy(p.session);
    gn_cli_windows_fini(&p.windows);
    gn_cli_model_close(model);
    return status;
}
