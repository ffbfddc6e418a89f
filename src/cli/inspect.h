/* What `inspect` works out about a model file before it prints. One thread. */
#ifndef GN_CLI_INSPECT_H
#define GN_CLI_INSPECT_H

#include "file/source.h"

/* Shape facts read from metadata; 0: not stated. */
typedef struct gn_cli_shape {
    char architecture[64];
    uint64_t n_layer, n_embd, n_head, n_ctx_train, n_vocab;
    uint64_t kv_bytes_per_tok; /* f16 keys and values of all layers; 0: unknown, or an encoder */
} gn_cli_shape;

void gn_cli_inspect_shape(const gn_source *source, gn_cli_shape *out);

#define GN_CLI_MAX_TYPES 64
typedef struct gn_cli_type_count {
    const gn_dtype_info *type;
    uint64_t n_tensors, n_elements, n_bytes;
} gn_cli_type_count;

/* Tensors by element type, most bytes first; returns how many types. */
size_t gn_cli_inspect_types(const gn_source *source, gn_cli_type_count out[GN_CLI_MAX_TYPES]);

uint64_t gn_cli_inspect_elements(const gn_view *view);

#endif
