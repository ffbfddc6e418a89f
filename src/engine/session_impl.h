/* What the generation loop needs to know of a session beside its public functions. */
#ifndef GN_ENGINE_SESSION_IMPL_H
#define GN_ENGINE_SESSION_IMPL_H

#include "engine/model_impl.h"
#include "ganglion/session.h"

gn_model *gn_session_model(const gn_session *session);
size_t gn_session_n_ctx(const gn_session *session);

#endif
