/* The measurements of `ganglion eval`. Each prints its result on standard output. One thread. */
#ifndef GN_CLI_EVAL_H
#define GN_CLI_EVAL_H

#include "cli/model_path.h"

#include "ganglion/session.h"

typedef struct gn_cli_eval_options {
    gn_cli_model_args model;
    const char *base;
    const char *save_base;
    int base_activations; /* gn_activations */
    int64_t ctx;          /* tokens a window */
    int64_t limit;        /* windows or tasks at most; 0: all */
    bool json;
} gn_cli_eval_options;

/* A text cut into windows of n_ctx tokens. As in llama.cpp's perplexity tool: the text is tokenized once
 * with the model's BOS in front and special tokens as plain text; a window's first token is replaced by
 * BOS where the model adds one; the predictions of positions n_ctx/2 … n_ctx-2 count. */
typedef struct gn_cli_windows {
    int32_t *ids; /* [n][n_ctx] */
    size_t n;
    size_t n_ctx;
    int32_t bos; /* -1: windows start as they are */
} gn_cli_windows;

/* Codes: those of reading and tokenizing; GN_E_FORMAT where the text is shorter than one window. */
GN_MUST_USE gn_status gn_cli_windows_read(gn_model *model, const char *path, size_t n_ctx,
                                          size_t limit, gn_cli_windows *out);
void gn_cli_windows_fini(gn_cli_windows *windows);

/* First position that counts, and how many do. */
size_t gn_cli_windows_first(size_t n_ctx);
size_t gn_cli_windows_counted(size_t n_ctx);

/* Begin window `index` in `session`: evaluate what comes before the first position that counts. */
GN_MUST_USE gn_status gn_cli_windows_begin(const gn_cli_windows *windows, size_t index,
                                           gn_session *session);
/* Evaluate `count` positions from `pos` on, in order: logits [count][n_vocab]. */
GN_MUST_USE gn_status gn_cli_windows_step(const gn_cli_windows *windows, size_t index, size_t pos,
                                          size_t count, gn_session *session, float *logits);

/* Rows of logits taken at a time. */
#define GN_CLI_EVAL_ROWS ((size_t)32)

/* A sum that gives mean and standard error. */
typedef struct gn_cli_mean {
    double sum, sum_squares;
    uint64_t n;
} gn_cli_mean;
void gn_cli_mean_add(gn_cli_mean *mean, double v);
double gn_cli_mean_value(const gn_cli_mean *mean);
double gn_cli_mean_error(const gn_cli_mean *mean); /* 0 for fewer than 2 values */

GN_MUST_USE gn_status gn_cli_eval_ppl(const gn_cli_eval_options *options, const char *path);
GN_MUST_USE gn_status gn_cli_eval_kld(const gn_cli_eval_options *options, const char *path);
GN_MUST_USE gn_status gn_cli_eval_hellaswag(const gn_cli_eval_options *options, const char *path);

/* Logits of a base model: computed as needed, or read from a file. */
typedef struct gn_cli_base gn_cli_base;

/* `base`: a file that --save-base wrote or one of llama.cpp's perplexity tool (told by their first
 * bytes; both hold the tokens, so the text at `path` is not read), else a model. *windows is filled. */
GN_MUST_USE gn_status gn_cli_base_open(const gn_cli_eval_options *options, const char *path,
                                       int32_t n_vocab, gn_cli_windows *windows, gn_cli_base **out);
void gn_cli_base_close(gn_cli_base *base);
GN_MUST_USE gn_status gn_cli_base_begin(gn_cli_base *base, const gn_cli_windows *windows,
                                        size_t index);
/* The rows that gn_cli_windows_step() gives. */
GN_MUST_USE gn_status gn_cli_base_step(gn_cli_base *base, const gn_cli_windows *windows,
                                       size_t index, size_t pos, size_t count, float *logits);

/* Write the logits of `options->model` over the text as a file for --base. */
GN_MUST_USE gn_status gn_cli_base_save(const gn_cli_eval_options *options, const char *path);

#endif
