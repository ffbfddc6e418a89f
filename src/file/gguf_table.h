/* Private to file/gguf*.c: what one GGUF header says, checked. */
#ifndef GN_FILE_GGUF_TABLE_H
#define GN_FILE_GGUF_TABLE_H

#include "base/map.h"
#include "file/gguf.h"

/* Limits beyond the specification's; docs/FORMATS.md lists them. */
#define GN_GGUF_MAX_KEY_BYTES     65535 /* the specification's */
#define GN_GGUF_MAX_NAME_BYTES    64    /* the specification's */
#define GN_GGUF_MAX_VALUES        65536u
#define GN_GGUF_MAX_TENSORS       65536u
#define GN_GGUF_MAX_ARRAY_DEPTH   8
#define GN_GGUF_MAX_ALIGNMENT     65536u
#define GN_GGUF_DEFAULT_ALIGNMENT 32u

/* Everything borrowed from the bytes that were parsed. A zeroed table is valid and empty. */
typedef struct gn_gguf_table {
    uint32_t version;
    uint32_t alignment;
    gn_gguf_value *values;
    size_t n_values;
    size_t cap_values;
    gn_map by_key; /* → index into values */
    gn_gguf_tensor *tensors;
    size_t n_tensors;
    size_t cap_tensors;
    gn_map by_name; /* → index into tensors */
} gn_gguf_table;

/* Read and check the whole header over data[0 .. size). O(header) time; memory grows with what was
 * read, never with what a count claims. GN_E_FORMAT, GN_E_NOMEM; *table is then empty or half-built and
 * still has to go to fini. Messages name key or tensor and offset, but not the file. */
GN_MUST_USE gn_status gn_gguf_table_parse(gn_gguf_table *table, const unsigned char *data,
                                          size_t size);
void gn_gguf_table_fini(gn_gguf_table *table);

/* Append a tensor; GN_E_FORMAT where the name is taken. */
GN_MUST_USE gn_status gn_gguf_table_add_tensor(gn_gguf_table *table, const gn_gguf_tensor *tensor);

const gn_gguf_value *gn_gguf_table_find(const gn_gguf_table *table, const char *key);

/* As the public getters, messages without the file's name. */
GN_MUST_USE gn_status gn_gguf_table_get_u64(const gn_gguf_table *table, const char *key,
                                            uint64_t *out);
GN_MUST_USE gn_status gn_gguf_table_get_i64(const gn_gguf_table *table, const char *key,
                                            int64_t *out);
GN_MUST_USE gn_status gn_gguf_table_get_f64(const gn_gguf_table *table, const char *key,
                                            double *out);
GN_MUST_USE gn_status gn_gguf_table_get_bool(const gn_gguf_table *table, const char *key,
                                             bool *out);
GN_MUST_USE gn_status gn_gguf_table_get_str(const gn_gguf_table *table, const char *key,
                                            gn_gguf_str *out);

#endif
