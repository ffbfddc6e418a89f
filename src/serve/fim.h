/* Fill in the middle: the prompt that asks a model for what belongs between two texts. Source of the forms: the
 * models' own cards (Qwen2.5-Coder, StarCoder, Code Llama, DeepSeek-Coder, Codestral). */
#ifndef GN_SERVE_FIM_H
#define GN_SERVE_FIM_H

#include "base/buf.h"
#include "ganglion/model.h"

/* Does the model's vocabulary have the tokens of one of the forms? */
bool gn_fim_supported(const gn_model *model);
/* The prompt, appended to `out`; special tokens in it have to be parsed. GN_E_UNSUPPORTED, GN_E_NOMEM. */
GN_MUST_USE gn_status gn_fim_prompt(const gn_model *model, const char *prefix, size_t prefix_len,
                                    const char *suffix, size_t suffix_len, gn_buf *out);

#endif
