/* Element types of tensors: how many elements a block holds and how many bytes it takes.
 * Numbers are those of the GGUF specification (ggml_type); GN_DTYPE_* beyond 1000 have no GGUF number. */
#ifndef GN_TENSOR_DTYPE_H
#define GN_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, gguf_id, block_len, block_bytes, computed): `computed` types have kernels; the others are
 * known, shown by inspect, and refused by name in the forward pass. */
#define GN_DTYPE_LIST(X)                                                                           \
    X(F32, 0, 1, 4, 1)                                                                             \
    X(F16, 1, 1, 2, 1)                                                                             \
    X(Q4_0, 2, 32, 18, 1)                                                                          \
    X(Q4_1, 3, 32, 20, 1)                                                                          \
    X(Q5_0, 6, 32, 22, 1)                                                                          \
    X(Q5_1, 7, 32, 24, 1)                                                                          \
    X(Q8_0, 8, 32, 34, 1)                                                                          \
    X(Q8_1, 9, 32, 36, 0)                                                                          \
    X(Q2_K, 10, 256, 84, 1)                                                                        \
    X(Q3_K, 11, 256, 110, 1)                                                                       \
    X(Q4_K, 12, 256, 144, 1)                                                                       \
    X(Q5_K, 13, 256, 176, 1)                                                                       \
    X(Q6_K, 14, 256, 210, 1)                                                                       \
    X(Q8_K, 15, 256, 292, 0)                                                                       \
    X(IQ2_XXS, 16, 256, 66, 0)                                                                     \
    X(IQ2_XS, 17, 256, 74, 0)                                                                      \
    X(IQ3_XXS, 18, 256, 98, 0)                                                                     \
    X(IQ1_S, 19, 256, 50, 0)                                                                       \
    X(IQ4_NL, 20, 32, 18, 1)                                                                       \
    X(IQ3_S, 21, 256, 110, 0)                                                                      \
    X(IQ2_S, 22, 256, 82, 0)                                                                       \
    X(IQ4_XS, 23, 256, 136, 1)                                                                     \
    X(I8, 24, 1, 1, 0)                                                                             \
    X(I16, 25, 1, 2, 0)                                                                            \
    X(I32, 26, 1, 4, 0)                                                                            \
    X(I64, 27, 1, 8, 0)                                                                            \
    X(F64, 28, 1, 8, 0)                                                                            \
    X(IQ1_M, 29, 256, 56, 0)                                                                       \
    X(BF16, 30, 1, 2, 1)                                                                           \
    X(TQ1_0, 34, 256, 54, 0)                                                                       \
    X(TQ2_0, 35, 256, 66, 0)                                                                       \
    X(MXFP4, 39, 32, 17, 1)                                                                        \
    X(NVFP4, 40, 64, 36, 0)                                                                        \
    X(Q1_0, 41, 128, 18, 0)                                                                        \
    X(Q2_0, 42, 64, 18, 0)                                                                         \
    X(F8_E4M3, 1001, 1, 1, 0)                                                                      \
    X(F8_E5M2, 1002, 1, 1, 0)                                                                      \
    X(U8, 1003, 1, 1, 0)                                                                           \
    X(BOOL, 1004, 1, 1, 0)                                                                         \
    X(U16, 1005, 1, 2, 0)                                                                          \
    X(U32, 1006, 1, 4, 0)                                                                          \
    X(U64, 1007, 1, 8, 0)                                                                          \
    X(F8_E8M0, 1008, 1, 1, 0)

typedef enum gn_dtype {
#define GN_DTYPE_ENUM(name, id, len, bytes, computed) GN_DTYPE_##name = (id),
    GN_DTYPE_LIST(GN_DTYPE_ENUM)
#undef GN_DTYPE_ENUM
} gn_dtype;

typedef struct gn_dtype_info {
    gn_dtype dtype;
    const char *name;     /* "Q4_K" */
    uint32_t block_len;   /* elements a block */
    uint32_t block_bytes; /* bytes a block */
    bool computed;
} gn_dtype_info;

/* NULL where `id` is no known type. Static storage. */
const gn_dtype_info *gn_dtype_find(uint32_t id);

#endif
