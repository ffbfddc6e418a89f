/* A model as it lies on disk: a GGUF file (or split set), or a Hugging Face folder (config.json,
 * tokenizer.json, generation_config.json, tokenizer_config.json, model.safetensors or its shards).
 * Gives tensors by name and the descriptions beside them, whichever form the file has. Immutable after
 * open: any thread may read. */
#ifndef GN_FILE_SOURCE_H
#define GN_FILE_SOURCE_H

#include "file/gguf.h"

#include <jansson.h>

typedef enum gn_source_kind { GN_SOURCE_GGUF, GN_SOURCE_HF } gn_source_kind;

typedef struct gn_source gn_source;

/* `path`: a .gguf file, a folder that holds config.json or exactly one .gguf, or a .safetensors file
 * (its folder is taken). Codes as gn_gguf_open(). */
GN_MUST_USE gn_status gn_source_open(const char *path, gn_source **out);
void gn_source_close(gn_source *source);

gn_source_kind gn_source_get_kind(const gn_source *source);
const char *gn_source_path(const gn_source *source); /* as given to open */

/* GGUF only, else NULL. */
const gn_gguf *gn_source_gguf(const gn_source *source);

/* Hugging Face only; NULL where the file is absent. Borrowed. */
const json_t *gn_source_config(const gn_source *source);    /* config.json; never NULL for HF */
const json_t *gn_source_tokenizer(const gn_source *source); /* tokenizer.json */
const json_t *gn_source_tokenizer_config(const gn_source *source); /* tokenizer_config.json */
const json_t *gn_source_generation(const gn_source *source);       /* generation_config.json */
const char *
gn_source_chat_template(const gn_source *source); /* chat_template.jinja, NUL-terminated */

size_t gn_source_n_tensors(const gn_source *source);
/* i-th tensor in file order; *name is NUL-terminated and borrowed. */
const gn_view *gn_source_tensor_at(const gn_source *source, size_t i, const char **name);
/* NULL where absent. */
const gn_view *gn_source_find(const gn_source *source, const char *name);

/* The mapped files that hold the tensors. */
size_t gn_source_n_maps(const gn_source *source);
const gn_os_map *gn_source_map_at(const gn_source *source, size_t i);

/* Bytes of all mappings together. */
size_t gn_source_bytes(const gn_source *source);

#endif
