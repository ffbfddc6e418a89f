/* What the generation loop needs to know of a session beside its public functions. */
#ifndef GN_ENGINE_SESSION_IMPL_H
#define GN_ENGINE_SESSION_IMPL_H

#include "engine/model_impl.h"
#include "ganglion/session.h"

gn_model *gn_session_model(const gn_session *session);
size_t gn_session_n_ctx(const gn_session *session);

/* Heap of a session that holds n_ctx tokens, its pages aside, with the row of logits that a caller keeps for it. */
uint64_t gn_session_bytes(const gn_model *model, size_t n_ctx);

#endif
