/* GGUF v2 and v3 (the GGUF specification, ggml/docs/gguf.md), read in place from a mapping. Nothing in
 * the file is trusted: every count, length and offset is checked before use, and the whole header is
 * checked at open, so that readers can't fail later. Immutable after open: any thread may read. */
#ifndef GN_FILE_GGUF_H
#define GN_FILE_GGUF_H

#include "base/status.h"
#include "os/map.h"
#include "tensor/view.h"

#include <stdbool.h>

typedef struct gn_gguf gn_gguf;

/* Value types by their number in the file. */
typedef enum gn_gguf_type {
    GN_GGUF_U8,
    GN_GGUF_I8,
    GN_GGUF_U16,
    GN_GGUF_I16,
    GN_GGUF_U32,
    GN_GGUF_I32,
    GN_GGUF_F32,
    GN_GGUF_BOOL,
    GN_GGUF_STRING,
    GN_GGUF_ARRAY,
    GN_GGUF_U64,
    GN_GGUF_I64,
    GN_GGUF_F64
} gn_gguf_type;

/* "u8" … "f64"; "?" for a number that is no type. Static storage. */
const char *gn_gguf_type_name(gn_gguf_type type);

typedef struct gn_gguf_str {
    const char *s; /* not NUL-terminated; borrowed from the mapping */
    size_t len;
} gn_gguf_str;

typedef struct gn_gguf_value {
    gn_gguf_str key;
    gn_gguf_type type;
    gn_gguf_type elem; /* of an array; else equal to type */
    uint64_t n;        /* elements of an array; else 1 */
    const void *data;  /* first byte of the value (array: of its first element), unaligned */
} gn_gguf_value;

typedef struct gn_gguf_tensor {
    gn_gguf_str name;
    gn_view view;
} gn_gguf_tensor;

/* Open the file at `path`. The first file of a split set (split.count > 1, names ending in
 * -00001-of-000NN.gguf) opens its siblings too and the tensors of all are in one list.
 * GN_E_NOT_FOUND, GN_E_IO, GN_E_FORMAT (message: file, offset or key, found, expected), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_gguf_open(const char *path, gn_gguf **out);
/* The same over bytes in memory (tests, fuzzers); `data` must outlive the object; no split sets. */
GN_MUST_USE gn_status gn_gguf_open_memory(const void *data, size_t size, gn_gguf **out);
void gn_gguf_close(gn_gguf *gguf);

uint32_t gn_gguf_version(const gn_gguf *gguf);
uint32_t gn_gguf_alignment(const gn_gguf *gguf); /* of the (first) file's data section, in bytes */
size_t gn_gguf_bytes(const gn_gguf *gguf);       /* of all mapped files; 0 for bytes in memory */
size_t gn_gguf_n_maps(const gn_gguf *gguf);      /* mapped files; 0 for bytes in memory */
const gn_os_map *gn_gguf_map_at(const gn_gguf *gguf, size_t i);
size_t gn_gguf_n_values(const gn_gguf *gguf);
const gn_gguf_value *gn_gguf_value_at(const gn_gguf *gguf, size_t i);
size_t gn_gguf_n_tensors(const gn_gguf *gguf);
const gn_gguf_tensor *gn_gguf_tensor_at(const gn_gguf *gguf, size_t i);

/* NULL where absent. Keys are exact. */
const gn_gguf_value *gn_gguf_find(const gn_gguf *gguf, const char *key);
const gn_view *gn_gguf_find_tensor(const gn_gguf *gguf, const char *name);

/* Typed getters; messages name file and key. GN_E_NOT_FOUND where the key is absent, GN_E_FORMAT where it is of another kind or out
 * of range; *out is written only on GN_OK. Integers of any width convert where the value fits; floats
 * take f32 and f64 (and integers) and are finite. */
GN_MUST_USE gn_status gn_gguf_get_u64(const gn_gguf *gguf, const char *key, uint64_t *out);
GN_MUST_USE gn_status gn_gguf_get_i64(const gn_gguf *gguf, const char *key, int64_t *out);
GN_MUST_USE gn_status gn_gguf_get_f64(const gn_gguf *gguf, const char *key, double *out);
GN_MUST_USE gn_status gn_gguf_get_bool(const gn_gguf *gguf, const char *key, bool *out);
GN_MUST_USE gn_status gn_gguf_get_str(const gn_gguf *gguf, const char *key, gn_gguf_str *out);

/* Elements of an array value: i < value->n, element type as named. Strings are walked from the start by
 * gn_gguf_str_next(): pass *cursor = NULL first. */
uint64_t gn_gguf_elem_u64(const gn_gguf_value *value, uint64_t i); /* any integer or bool element;
                                                                     negative: two's complement */
int64_t gn_gguf_elem_i64(const gn_gguf_value *value, uint64_t i);
double gn_gguf_elem_f64(const gn_gguf_value *value, uint64_t i); /* any number element */
gn_gguf_str gn_gguf_str_next(const gn_gguf_value *value, const void **cursor);

#endif
