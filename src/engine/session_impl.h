/* What the generation loop needs to know of a session beside its public functions. */
#ifndef GN_ENGINE_SESSION_IMPL_H
#define GN_ENGINE_SESSION_IMPL_H

#include "engine/model_impl.h"
#include "ganglion/session.h"

gn_model *gn_session_model(const gn_session *session);
size_t gn_session_n_ctx(const gn_session *session);

/* The logits of the last token [n_vocab], evaluating what is not; there is room for one more id afterwards, so that
 * gn_session_push() can't fail. Borrowed until the next call. GN_E_STATE: no token; GN_E_LIMIT: the context is
 * full; and the codes of gn_session_eval(). */
GN_MUST_USE gn_status gn_session_last(gn_session *session, const float **logits);
/* Append the token chosen from them; it is evaluated when the next call needs it. */
void gn_session_push(gn_session *session, int32_t id);

/* Append ids[0 .. n), n ≥ 1, that are known to be next; they are evaluated when a call needs it. GN_E_LIMIT: past
 * n_ctx; GN_E_NOMEM. */
GN_MUST_USE gn_status gn_session_append(gn_session *session, const int32_t *ids, size_t n);
/* The same, and evaluate them in one pass: rows [n + 1][n_vocab] becomes the logits that predict each of them,
 * and those after the last. On failure the session is as long as before. Codes of gn_session_eval() too. */
GN_MUST_USE gn_status gn_session_append_eval(gn_session *session, const int32_t *ids, size_t n,
                                             float *rows);

/* Heap of a session that holds n_ctx tokens, its pages aside, with the row of logits that a caller keeps for it. */
uint64_t gn_session_bytes(const gn_model *model, size_t n_ctx);

#endif
