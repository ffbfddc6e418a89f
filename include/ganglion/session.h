/* A session: one sequence of tokens with its KV cache. A position's logits depend on its own prefix, the
 * model and the activations mode; never on how the prefix was split into calls, on threads, pages, or the CPU
 * level.
 *
 * One thread at a time per session; sessions of one model may live on different threads and wait for each
 * other. A session that failed with GN_E_NOMEM or GN_E_NO_PAGES is as long as before the call. */
#ifndef GANGLION_SESSION_H
#define GANGLION_SESSION_H

#include "ganglion/grammar.h"
#include "ganglion/model.h"
#include "ganglion/sample.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_session gn_session;

typedef struct gn_session_options {
    int32_t n_ctx;   /* most tokens the session may hold; 0: the model's own context length */
    int32_t n_batch; /* most tokens per forward pass, 1 .. 4096; 0: 256. No effect on results */
} gn_session_options;

/* options may be NULL. GN_E_UNSUPPORTED: the model is an encoder. */
GN_MUST_USE GN_API gn_status gn_session_create(gn_model *model, const gn_session_options *options,
                                               gn_session **out);
GN_API void gn_session_destroy(gn_session *session);

/* Evaluate ids[0 .. n), n ≥ 1, after what the session holds. logits (may be NULL where n_logits is 0)
 * receives the rows of the last n_logits ≤ n positions: [n_logits][n_vocab]; row i predicts the token
 * after its position. GN_E_LIMIT: past n_ctx. GN_E_ARG: an id out of range. GN_E_FORMAT: the weights gave
 * NaN or infinity (message names the tensor or layer). */
GN_MUST_USE GN_API gn_status gn_session_eval(gn_session *session, const int32_t *ids, size_t n,
                                             float *logits, size_t n_logits);

/* Evaluate one token for each of n ≥ 1 different sessions of one model in a common forward pass: ids[i] after
 * what sessions[i] holds, or where ids is NULL the token that gn_session_next() appended last. logits
 * [n][n_vocab] receives a row for each session, with the bits that gn_session_eval() alone would give. Weights are
 * read once for all rows. All or nothing: on failure every session is as long as before.
 * The sessions are used by this thread alone meanwhile. Codes as gn_session_eval(); GN_E_ARG also where a
 * session comes twice, belongs to another model or, without ids, holds no token. */
GN_MUST_USE GN_API gn_status gn_session_eval_many(gn_session *const *sessions, const int32_t *ids,
                                                  size_t n, float *logits);

/* Tokens evaluated so far, and the ids themselves (borrowed until the next call). */
GN_API size_t gn_session_length(const gn_session *session);
GN_API const int32_t *gn_session_tokens(const gn_session *session);

/* Forget everything after the first n tokens (n ≤ length). */
GN_MUST_USE GN_API gn_status gn_session_truncate(gn_session *session, size_t n);

/* Let the session hold exactly ids[0 .. n), evaluating only what differs from what it holds: the longest
 * common prefix is kept, except that the last token is always evaluated, so that gn_session_next() can
 * follow. *n_reused (may be NULL) says how many were kept. n ≥ 1. */
GN_MUST_USE GN_API gn_status gn_session_set(gn_session *session, const int32_t *ids, size_t n,
                                            size_t *n_reused);

/* Choose the token that follows and append it: samples from the logits of the last token, tells the
 * sampler, and returns the id. The new token is evaluated when the next call needs it. The session must
 * hold at least one token. logprob (may be NULL): natural logarithm over the full vocabulary, before
 * penalties and filters. */
GN_MUST_USE GN_API gn_status gn_session_next(gn_session *session, gn_sampler *sampler, int32_t *id,
                                             float *logprob);

typedef enum gn_finish {
    GN_FINISH_STOP,      /* an end token or a stop string */
    GN_FINISH_LENGTH,    /* max_tokens or n_ctx; see also grammar_closed */
    GN_FINISH_CANCELLED, /* the callback said so */
    GN_FINISH_DEADLINE   /* its time is over (requests of a server) */
} gn_finish;

typedef struct gn_generate_options {
    int32_t max_tokens;      /* < 0: until the end token or n_ctx */
    const char *const *stop; /* stop strings, never shown, not even in part */
    size_t n_stop;
    const int32_t *stop_ids; /* further end tokens */
    size_t n_stop_ids;
    bool special; /* show special tokens in the text */
    /* Text as it becomes final: whole UTF-8 sequences, never part of a stop string; not called with an
     * empty text. Return false to cancel. May be NULL. */
    bool (*on_text)(void *ctx, const char *text, size_t len);
    /* Each token chosen, the end token included. Return false to cancel. May be NULL. */
    bool (*on_token)(void *ctx, int32_t id, float logprob);
    void *ctx;
    /* The answer is one of its texts, at every temperature and limit: a stop string may cut it, nothing else.
     * NULL: any text. Borrowed during the call. */
    gn_grammar *grammar;
} gn_generate_options;

typedef struct gn_generate_result {
    gn_finish finish;
    int32_t n_tokens;   /* chosen, the end token included */
    int32_t stop_index; /* which stop string ended it, or -1 */
    /* With GN_FINISH_LENGTH and a grammar: max_tokens or n_ctx came near, and the text was closed by its shortest
     * end, or was complete. */
    bool grammar_closed;
} gn_generate_result;

/* gn_session_next() until an end. On a stop the session holds every token chosen. result may be NULL. With a
 * grammar also GN_E_LIMIT (its shortest text needs more tokens than max_tokens or n_ctx leave: message how many;
 * or its automaton grew past its bounds), GN_E_UNSUPPORTED (the model has no tokenizer), GN_E_REFUSED (the
 * vocabulary can't spell its texts), GN_E_ARG (it is in use with another model). */
GN_MUST_USE GN_API gn_status gn_generate(gn_session *session, gn_sampler *sampler,
                                         const gn_generate_options *options,
                                         gn_generate_result *result);

#ifdef __cplusplus
}
#endif
#endif
