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
    gn_sampler *
        sampler; /* borrowed; was told the tokens of the prompt. NULL: gn_output_set_sampler() follows */
    gn_grammar *grammar;     /* NULL: any text. A reference is taken */
    int32_t max_tokens;      /* < 0: no limit of its own */
    size_t n_left;           /* tokens that the sequence has room for; 0: not known yet */
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

/* GN_E_ARG (what, found, expected; also a grammar that is in use with another model), GN_E_LIMIT: the grammar's
 * shortest text needs more than max_tokens or n_left (message: how many), GN_E_UNSUPPORTED: a grammar, but no
 * tokenizer, GN_E_REFUSED: the vocabulary can't spell the grammar's shortest text.
 *
 * With a grammar every token is allowed by it, and the answer is one of its texts unless a stop string, a failure
 * or gn_output_stop() cuts it. It ends (GN_FINISH_STOP) as soon as nothing more can follow, or by an end token
 * where the text may end; stop_ids elsewhere are tokens like others. What the sampler bans comes all the same where the
 * grammar allows nothing else. A token after which the text could not be completed in the room that is left isn't
 * taken: the shortest completion is, and the answer ends with GN_FINISH_LENGTH and grammar_closed. */
GN_MUST_USE gn_status gn_output_create(const gn_model *model, const gn_output_options *options,
                                       gn_output **out);
void gn_output_destroy(gn_output *output);

/* Set it before the first token is asked for: a sampler is large, and some answers wait long for their turn. */
void gn_output_set_sampler(gn_output *output, gn_sampler *sampler);

typedef struct gn_output_token { /* pointers live until the next call */
    int32_t id;                  /* -1: none was chosen, the answer ended before */
    float logprob;               /* where n_top ≥ 0 */
    const gn_logprob *top;       /* [n_top] */
    int32_t n_top;
    const char *text; /* that became final, whole UTF-8 sequences; "" mostly at the end token */
    size_t text_len;
    bool ended;
    gn_finish finish;    /* where ended */
    int32_t stop_index;  /* which stop string ended it, or -1 */
    bool grammar_closed; /* the room ended, and the text is complete all the same */
} gn_output_token;

/* The tokens that gn_output_next() will choose in its next *n ≤ cap calls whatever the logits are: those that the
 * grammar leaves no choice about, in the tokenizer's own cut, and those that close the text. Asking changes
 * nothing: the same tokens come where nobody asks. n_left as in gn_output_next(). Codes: see there. */
GN_MUST_USE gn_status gn_output_forced(gn_output *output, size_t n_left, int32_t *ids, size_t cap,
                                       size_t *n);

/* Choose the token after `logits` [n_vocab], tell the sampler, and say what it means. n_left: how many more
 * tokens the sequence has room for, this one included (≥ 0); with 0, or after max_tokens, the answer ends with
 * GN_FINISH_LENGTH and no token. With a grammar, n_left falls by one a token at most. logits may be NULL where no
 * token or a forced one comes and no log-probabilities are wanted.
 * After `ended` it may not be called again. GN_E_LIMIT: the grammar's automaton grew past its bounds, or n_left was
 * too small from the start. */
GN_MUST_USE gn_status gn_output_next(gn_output *output, const float *logits, size_t n_left,
                                     gn_output_token *out);

/* End the answer for another reason (cancelled, deadline): out->text is what was held back. */
GN_MUST_USE gn_status gn_output_stop(gn_output *output, gn_finish why, gn_output_token *out);

int32_t gn_output_n_tokens(const gn_output *output); /* chosen so far */

#endif
