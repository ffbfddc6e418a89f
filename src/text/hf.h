/* Parts of tokenizer.json, read by tokenizer_hf.c; not for others. */
#ifndef GN_TEXT_HF_H
#define GN_TEXT_HF_H

#include "text/tokenizer_impl.h"

#include <jansson.h>

/* Members of an object. An absent or null member leaves *out as it is; another type is GN_E_FORMAT,
 * with `where` as the place. */
GN_MUST_USE gn_status gn_hf_bool(const json_t *object, const char *key, const char *where,
                                 bool *out);
GN_MUST_USE gn_status gn_hf_int(const json_t *object, const char *key, const char *where,
                                int64_t *out);
GN_MUST_USE gn_status gn_hf_str(const json_t *object, const char *key, const char *where,
                                const char **out, size_t *len);
/* The "type" of a part; GN_E_FORMAT where it has none. */
GN_MUST_USE gn_status gn_hf_type(const json_t *object, const char *where, const char **out);

/* hf_steps.c. Each takes the value of its key in tokenizer.json, NULL or null included. */
GN_MUST_USE gn_status gn_hf_normalizer(const json_t *json, gn_tokenizer *t);
/* *letters: bytes are spelled in GPT-2's letters and nothing looks at them before the model
 * does. */
GN_MUST_USE gn_status gn_hf_pretok(const json_t *json, gn_tokenizer *t, bool *letters);
GN_MUST_USE gn_status gn_hf_decoder(const json_t *json, gn_tokenizer *t);
GN_MUST_USE gn_status gn_hf_post(const json_t *json, gn_tokenizer *t);

/* hf_model.c: the vocabulary with its added tokens, and the model over it. */
GN_MUST_USE gn_status gn_hf_vocab(const json_t *model, const json_t *added, gn_tokenizer *t);
GN_MUST_USE gn_status gn_hf_model(const json_t *model, bool letters, gn_tokenizer *t);
GN_MUST_USE gn_status gn_hf_added(const json_t *added, gn_tokenizer *t);

#endif
