/* Hyper-parameters by name, whichever form the model has: GGUF keys ("llama.block_count") or config.json
 * members ("num_hidden_layers"). */
#ifndef GN_MODEL_META_H
#define GN_MODEL_META_H

#include "file/source.h"

typedef struct gn_meta {
    const gn_source *source;
    const gn_gguf *gguf;  /* NULL for Hugging Face */
    const json_t *config; /* the text model's part of config.json; NULL for GGUF */
    char arch[64];        /* general.architecture, or model_type */
} gn_meta;

/* Read the architecture's name. GN_E_FORMAT where there is none. */
GN_MUST_USE gn_status gn_meta_init(gn_meta *meta, const gn_source *source);

/* A number by its GGUF key (without "ARCH.") or config.json name; either may be NULL: absent in that form.
 * Absent or null gives the default, and *found (may be NULL) is false. GN_E_FORMAT: another type, or
 * outside [lo, hi]. */
GN_MUST_USE gn_status gn_meta_u32(const gn_meta *meta, const char *gguf_key, const char *hf_key,
                                  uint32_t lo, uint32_t hi, uint32_t absent, uint32_t *out,
                                  bool *found);
GN_MUST_USE gn_status gn_meta_f32(const gn_meta *meta, const char *gguf_key, const char *hf_key,
                                  float absent, float *out, bool *found);
/* As gn_meta_u32(), but absent is an error. */
GN_MUST_USE gn_status gn_meta_need_u32(const gn_meta *meta, const char *gguf_key,
                                       const char *hf_key, uint32_t lo, uint32_t hi, uint32_t *out);

/* Members of a config.json object; `where` names it in messages. NULL object: everything is absent. */
GN_MUST_USE gn_status gn_meta_json_f32(const json_t *object, const char *where, const char *key,
                                       float absent, float *out, bool *found);
bool gn_meta_json_bool(const json_t *object, const char *key, bool absent);
/* "" where absent or no string. */
const char *gn_meta_json_str(const json_t *object, const char *key);

#endif
