/* safetensors files (the format's specification: 8 bytes of header length, a JSON header, the data), one
 * file or shards named by an index, read in place from a mapping. Nothing in the file is trusted: the
 * header is checked at open, so that readers can't fail later. Immutable after open: any thread may read. */
#ifndef GN_FILE_SAFETENSORS_H
#define GN_FILE_SAFETENSORS_H

#include "base/status.h"
#include "os/map.h"
#include "tensor/view.h"

typedef struct gn_safetensors gn_safetensors;

typedef struct gn_safetensors_tensor {
    const char *name; /* NUL-terminated, borrowed */
    gn_view view;     /* a scalar (shape []) is one dimension of 1 */
} gn_safetensors_tensor;

/* Open one file, or all shards that an index (a path that ends in .index.json) names.
 * GN_E_NOT_FOUND, GN_E_IO, GN_E_FORMAT (message: file, tensor or offset, found, expected),
 * GN_E_UNSUPPORTED (a dtype or a rank that is the format's but not ours), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_safetensors_open(const char *path, gn_safetensors **out);
/* The same over the bytes of one file in memory (tests, fuzzers); `data` must outlive the object. */
GN_MUST_USE gn_status gn_safetensors_open_memory(const void *data, size_t size,
                                                 gn_safetensors **out);
void gn_safetensors_close(gn_safetensors *st);

/* In the order of the data, shard after shard. */
size_t gn_safetensors_n_tensors(const gn_safetensors *st);
const gn_safetensors_tensor *gn_safetensors_tensor_at(const gn_safetensors *st, size_t i);
/* NULL where absent. */
const gn_view *gn_safetensors_find(const gn_safetensors *st, const char *name);

/* Pairs of __metadata__ of the first file, in file order. */
size_t gn_safetensors_n_metadata(const gn_safetensors *st);
void gn_safetensors_metadata_at(const gn_safetensors *st, size_t i, const char **key,
                                const char **value);

/* Bytes of all mapped files together; 0 for bytes in memory. */
size_t gn_safetensors_n_maps(const gn_safetensors *st); /* mapped files */
const gn_os_map *gn_safetensors_map_at(const gn_safetensors *st, size_t i);
size_t gn_safetensors_bytes(const gn_safetensors *st);

#endif
