/* Where the base logits of a KL divergence come from: a second model that runs in step with the first, or
 * a file. Ours keeps f32 logits; the one of llama.cpp's perplexity tool keeps log-probabilities in 16 bits
 * (and cuts them 16 below the best), so comparisons over it have a floor near 1e-5.
 *
 * Our file: "GNLOGITS", u32 version 1, n_ctx, n_vocab, n_windows, i32 bos, then i32 ids
 * [n_windows][n_ctx], then f32 logits [n_windows][n_ctx - 1 - n_ctx/2][n_vocab], little-endian.
 * Theirs: "_logits_", u32 n_ctx, n_vocab, n_windows, ids, then for each position f32 scale, f32 least,
 * u16 [n_vocab] padded to an even count: log-probability = scale * value + least. */
#include "cli/eval.h"

#include "base/alloc.h"
#include "cli/out.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAGIC_BYTES 8
#define MAX_CTX     (1u << 20)
#define MAX_WINDOWS (1u << 20)

static const char own_magic[MAGIC_BYTES + 1] = "GNLOGITS";
static const char their_magic[MAGIC_BYTES + 1] = "_logits_";

struct gn_cli_base {
    const char *path; /* as given */
    gn_model *model;  /* computed on the fly … */
    gn_session *session;
    FILE *file;    /* … or read */
    bool packed;   /* llama.cpp's 16-bit rows */
    uint16_t *row; /* one packed row */
    size_t row_len;
    size_t n_vocab;
};

static gn_status read_exact(FILE *file, void *out, size_t bytes)
{
    if (fread(out, 1, bytes, file) == bytes) {
        return GN_OK;
    }
    if (ferror(file)) {
        return gn_base_fail(GN_E_IO, "cannot read: %s", strerror(errno));
    }
    return gn_base_fail(GN_E_FORMAT, "offset %lld: found the end of the file, expected more logits",
                        (long long)ftello(file));
}

static gn_status read_header(gn_cli_base *base, size_t n_vocab, gn_cli_windows *windows)
{
    uint32_t head[3];
    int32_t bos = -1;
    if (!base->packed) {
        uint32_t version;
        GN_TRY(read_exact(base->file, &version, sizeof version));
        GN_REQUIRE(version == 1, GN_E_FORMAT, "offset 8: version: found %u, expected 1", version);
    }
    GN_TRY(read_exact(base->file, head, sizeof head));
    if (!base->packed) {
        GN_TRY(read_exact(base->file, &bos, sizeof bos));
    }
    GN_REQUIRE(head[0] >= 4 && head[0] <= MAX_CTX, GN_E_FORMAT,
               "window length: found %u, expected 4 to %u", head[0], MAX_CTX);
    GN_REQUIRE(head[1] == n_vocab, GN_E_FORMAT,
               "vocabulary: found %u, expected %zu as the model has", head[1], n_vocab);
    GN_REQUIRE(head[2] >= 1 && head[2] <= MAX_WINDOWS, GN_E_FORMAT,
               "windows: found %u, expected 1 to %u", head[2], MAX_WINDOWS);
    GN_REQUIRE(bos >= -1 && bos < (int64_t)n_vocab, GN_E_FORMAT, "BOS: found %d", bos);
    size_t n = (size_t)head[0] * head[2];
    int32_t *ids = gn_alloc_array(n, sizeof *ids);
    if (ids == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = read_exact(base->file, ids, n * sizeof *ids);
    for (size_t i = 0; status == GN_OK && i < n; i++) {
        if (ids[i] < 0 || (size_t)ids[i] >= n_vocab) {
            status = gn_base_fail(GN_E_FORMAT, "token %zu: found id %d, expected 0 to %zu", i,
                                  ids[i], n_vocab - 1);
        }
    }
    if (status != GN_OK) {
        gn_free(ids);
        return status;
    }
    *windows = (gn_cli_windows){.ids = ids, .n = head[2], .n_ctx = head[0], .bos = bos};
    return GN_OK;
}

/* Is there a file of logits at `path`? Then it is open behind its magic. */
static bool open_file(gn_cli_base *base, const char *path)
{
    char magic[MAGIC_BYTES];
    FILE *file = fopen(path, "rb");
    if (file != NULL && fread(magic, 1, sizeof magic, file) == sizeof magic) {
        base->packed = memcmp(magic, their_magic, sizeof magic) == 0;
        if (base->packed || memcmp(magic, own_magic, sizeof magic) == 0) {
            base->file = file;
            return true;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return false;
}

static gn_status open_model(const gn_cli_eval_options *options, const char *path, size_t n_vocab,
                            gn_cli_windows *windows, gn_cli_base *base)
{
    GN_REQUIRE(path != NULL, GN_E_ARG,
               "found no text, expected FILE (only a saved base holds its tokens)");
    gn_cli_model_args args = options->model;
    args.path = options->base;
    args.activations = options->base_activations;
    GN_TRY(gn_cli_model_open(&args, &base->model));
    size_t found = (size_t)gn_model_get_info(base->model).n_vocab;
    GN_REQUIRE(found == n_vocab, GN_E_FORMAT,
               "%s: vocabulary: found %zu, expected %zu as the model has", options->base, found,
               n_vocab);
    gn_session_options session = {.n_ctx = (int32_t)options->ctx};
    GN_TRY(gn_session_create(base->model, &session, &base->session));
    return gn_cli_windows_read(base->model, path, (size_t)options->ctx, (size_t)options->limit,
                               windows);
}

gn_status gn_cli_base_open(const gn_cli_eval_options *options, const char *path, int32_t n_vocab,
                           gn_cli_windows *windows, gn_cli_base **out)
{
    gn_cli_base *base = gn_calloc(1, sizeof *base);
    if (base == NULL) {
        return gn_alloc_failed();
    }
    base->path = options->base;
    base->n_vocab = (size_t)n_vocab;
    base->row_len = 2 * ((base->n_vocab + 1) / 2) + 4;
    gn_status status = GN_OK;
    if (open_file(base, options->base)) {
        status = read_header(base, base->n_vocab, windows);
        if (status != GN_OK) {
            (void)gn_base_fail_prefix(status, "%s: ", options->base);
        }
        base->row = gn_alloc_array(base->row_len, sizeof *base->row);
        if (status == GN_OK && base->row == NULL) {
            status = gn_alloc_failed();
        }
        if (status == GN_OK && options->limit > 0 && windows->n > (size_t)options->limit) {
            windows->n = (size_t)options->limit;
        }
    } else {
        status = open_model(options, path, base->n_vocab, windows, base);
    }
    if (status != GN_OK) {
        gn_cli_windows_fini(windows);
        gn_cli_base_close(base);
        return status;
    }
    *out = base;
    return GN_OK;
}

void gn_cli_base_close(gn_cli_base *base)
{
    if (base == NULL) {
        return;
    }
    if (base->file != NULL) {
        (void)fclose(base->file);
    }
    gn_free(base->row);
    gn_session_destroy(base->session);
    gn_cli_model_close(base->model);
    gn_free(base);
}

gn_status gn_cli_base_begin(gn_cli_base *base, const gn_cli_windows *windows, size_t index)
{
    return base->file != NULL ? GN_OK : gn_cli_windows_begin(windows, index, base->session);
}

static gn_status read_packed_row(gn_cli_base *base, float *logits)
{
    GN_TRY(read_exact(base->file, base->row, base->row_len * sizeof *base->row));
    float scale;
    float least;
    memcpy(&scale, base->row, sizeof scale);
    memcpy(&least, base->row + 2, sizeof least);
    for (size_t i = 0; i < base->n_vocab; i++) {
        logits[i] = scale * (float)base->row[4 + i] + least;
    }
    return GN_OK;
}

static gn_status read_rows(gn_cli_base *base, size_t index, size_t count, float *logits)
{
    if (!base->packed) {
        GN_TRY(read_exact(base->file, logits, count * base->n_vocab * sizeof *logits));
    }
    for (size_t i = 0; base->packed && i < count; i++) {
        GN_TRY(read_packed_row(base, logits + i * base->n_vocab));
    }
    for (size_t i = 0; i < count * base->n_vocab; i++) {
        GN_REQUIRE(isfinite(logits[i]), GN_E_FORMAT, "window %zu: found a logit that is not finite",
                   index);
    }
    return GN_OK;
}

gn_status gn_cli_base_step(gn_cli_base *base, const gn_cli_windows *windows, size_t index,
                           size_t pos, size_t count, float *logits)
{
    if (base->file == NULL) {
        return gn_cli_windows_step(windows, index, pos, count, base->session, logits);
    }
    gn_status status = read_rows(base, index, count, logits);
    return status == GN_OK ? GN_OK : gn_base_fail_prefix(status, "%s: ", base->path);
}

static gn_status write_all(FILE *file, const void *data, size_t bytes)
{
    return fwrite(data, 1, bytes, file) == bytes
               ? GN_OK
               : gn_base_fail(GN_E_UNAVAILABLE, "cannot write: %s", strerror(errno));
}

static gn_status write_rows(FILE *file, const gn_cli_windows *w, gn_session *session, float *logits,
                            size_t n_vocab)
{
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "base logits", "tok", w->n * w->n_ctx, 0);
    gn_status status = GN_OK;
    for (size_t i = 0; status == GN_OK && i < w->n; i++) {
        status = gn_cli_windows_begin(w, i, session);
        for (size_t pos = gn_cli_windows_first(w->n_ctx); status == GN_OK && pos < w->n_ctx - 1;) {
            size_t left = w->n_ctx - 1 - pos;
            size_t count = left < GN_CLI_EVAL_ROWS ? left : GN_CLI_EVAL_ROWS;
            status = gn_cli_windows_step(w, i, pos, count, session, logits);
            if (status == GN_OK) {
                status = write_all(file, logits, count * n_vocab * sizeof *logits);
            }
            pos += count;
        }
        gn_cli_progress_at(&progress, (i + 1) * w->n_ctx);
    }
    gn_cli_progress_end(&progress);
    return status;
}

static gn_status save(const gn_cli_eval_options *options, FILE *file, gn_model *model,
                      const gn_cli_windows *w)
{
    size_t n_vocab = (size_t)gn_model_get_info(model).n_vocab;
    uint32_t head[4] = {1, (uint32_t)w->n_ctx, (uint32_t)n_vocab, (uint32_t)w->n};
    GN_TRY(write_all(file, own_magic, MAGIC_BYTES));
    GN_TRY(write_all(file, head, sizeof head));
    GN_TRY(write_all(file, &w->bos, sizeof w->bos));
    GN_TRY(write_all(file, w->ids, w->n * w->n_ctx * sizeof *w->ids));
    gn_session *session = NULL;
    float *logits = gn_alloc_array(GN_CLI_EVAL_ROWS, n_vocab * sizeof *logits);
    gn_session_options session_options = {.n_ctx = (int32_t)options->ctx};
    gn_status status =
        logits == NULL ? gn_alloc_failed() : gn_session_create(model, &session_options, &session);
    if (status == GN_OK) {
        status = write_rows(file, w, session, logits, n_vocab);
    }
    gn_session_destroy(session);
    gn_free(logits);
    return status;
}

gn_status gn_cli_base_save(const gn_cli_eval_options *options, const char *path)
{
    GN_REQUIRE(path != NULL, GN_E_ARG, "found no text, expected FILE");
    gn_model *model = NULL;
    GN_TRY(gn_cli_model_open(&options->model, &model));
    gn_cli_windows windows = {0};
    gn_status status =
        gn_cli_windows_read(model, path, (size_t)options->ctx, (size_t)options->limit, &windows);
    FILE *file = status == GN_OK ? fopen(options->save_base, "wb") : NULL;
    if (status == GN_OK && file == NULL) {
        status = gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot create: %s", options->save_base,
                              strerror(errno));
    }
    if (status == GN_OK) {
        status = save(options, file, model, &windows);
        if (fclose(file) != 0 && status == GN_OK) {
            status = gn_base_fail(GN_E_UNAVAILABLE, "cannot write: %s", strerror(errno));
        }
        if (status != GN_OK) {
            (void)gn_base_fail_prefix(status, "%s: ", options->save_base);
            (void)remove(options->save_base);
        }
    }
    gn_cli_windows_fini(&windows);
    gn_cli_model_close(model);
    return status;
}
