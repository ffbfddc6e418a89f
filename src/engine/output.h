/* From the logits of a sequence's last token to the next token and the text that it completes: grammar mask →
 * sampler → detokenizer → stop strings → the end. One answer of one sequence; knows neither pages nor requests.
 * gn_generate() and the scheduler both stand on it. One thread at a time. */
#ifndef GN_ENGINE_OUTPUT_H
#define GN_ENGINE_OUTPUT_H

#include "engine/model_impl.h"
#include "ganglion/grammar.h"
#include "ganglion/sample.h"
#include "ganglion/session.h"
#include "text/detok.h"

typedef struct gn_output_options {
    gn_sampler *sampler;     /* borrowed; was told the tokens of the prompt */
    gn_grammar *grammar;     /* NULL: any text. A reference is taken */
    int32_t max_tokens;      /* < 0: no limit of its own */
    const char *const *stop; /* copied */
    size_t n_stop;           /* at most GN_OUTPUT_MAX_STOP */
    const int32_t *stop_ids; /* copied */
    size_t n_stop_ids;
    int32_t n_top; /* log-probabilities: -1 none, 0 of the token chosen, k also of the k best */
    bool special;  /* show special tokens in the text */
} gn_output_options;

#define GN_OUTPUT_MAX_STOP 64u
#define GN_OUTPUT_MAX_TOP  20

typedef struct gn_output gn_output;

/* GN_E_ARG (what, found, expected), GN_E_LIMIT: the grammar's shortest text needs more than max_tokens. */
GN_MUST_USE gn_status gn_output_create(const gn_model *model, const gn_output_options *options,
                                       gn_output **out);
void gn_output_destroy(gn_output *output);

typedef struct gn_output_token { /* pointers live until the next call */
    int32_t id;                  /* -1: none was chosen, the answer ended before */
    float logprob;               /* where n_top ≥ 0 */
    const gn_logprob *top;       /* [n_top] */
    int32_t n_top;
    const char *text; /* that became final, whole UTF-8 sequences; "" mostly at the end token */
    size_t text_len;
    bool ended;
    gn_finish finish;   /* where ended */
    int32_t stop_index; /* which stop string ended it, or -1 */
} gn_output_token;

/* Choose the token after `logits` [n_vocab], tell the sampler, and say what it means. n_left: how many more
 * tokens the sequence has room for, this one included (≥ 0); with 0, or after max_tokens, the answer ends with
 * GN_FINISH_LENGTH and no token. After `ended` it may not be called again. */
GN_MUST_USE gn_status gn_output_next(gn_output *output, const float *logits, size_t n_left,
                                     gn_output_token *out);

/* End the answer for another reason (cancelled, deadline): out->text is what was held back. */
GN_MUST_USE gn_status gn_output_stop(gn_output *output, gn_finish why, gn_output_token *out);

int32_t gn_output_n_tokens(const gn_output *output); /* chosen so far */

#endif
