/* Packing weights into panels (kernels/packed/packed.h has the layout). Codes come out of the file's
 * blocks through the panel kernels, 16 rows and one chunk at a time, and go into planes; scales are copied
 * as they are, those of 6 bits widened to bytes. */
#include "tensor/panels.h"

#include "kernels/kernels.h"

#include <assert.h>
#include <string.h>

enum { ROWS = 16, CHUNK = GN_PACKED_CHUNK, BLOCK = GN_PACKED_BLOCK, LINE = GN_PACKED_LINE };

/* Writes the scales of row r of one chunk, n_blocks blocks of 32, to the head at `out`. block_bytes: of the
 * file's blocks. */
typedef void head_fn(const uint8_t *row, size_t n_blocks, size_t r, size_t block_bytes,
                     uint8_t *out);

/* What a panel kernel makes of a chunk. */
typedef struct unpacked {
    uint8_t q[CHUNK * ROWS];
    float scale[CHUNK / 16 * ROWS]; /* not needed here, nor min */
    float min[CHUNK / 16 * ROWS];
} unpacked;

static_assert(sizeof(unpacked) <= GN_PANELS_SCRATCH, "the caller's scratch is large enough");

typedef struct packing {
    gn_packed_type type;
    gn_packed_codes codes;
    gn_packed_scales scales;
    size_t group;
    gn_k_panel_fn *panel;
    head_fn *head;
    size_t block_len; /* of the file's blocks */
    size_t block_bytes;
} packing;

static void put_u16(uint8_t *out, size_t r, const uint8_t *value)
{
    memcpy(out + 2 * r, value, 2);
}

/* A scale a block. */
static void head_f16(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    for (size_t b = 0; b < n; b++) {
        put_u16(out + 32 * b, r, row + b * block_bytes);
    }
}

/* A scale and a minimum a block. */
static void head_pair(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    for (size_t b = 0; b < n; b++) {
        put_u16(out + 64 * b, r, row + b * block_bytes);
        put_u16(out + 64 * b + 32, r, row + b * block_bytes + 2);
    }
}

static void head_mxfp4(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    for (size_t b = 0; b < n; b++) {
        out[16 * b + r] = row[block_bytes * b];
    }
}

static void head_q2_k(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    (void)block_bytes; /* a chunk is one block */
    put_u16(out, r, row + 80);
    put_u16(out + 32, r, row + 82);
    for (size_t g = 0; g < 2 * n; g++) {
        out[64 + 16 * g + r] = row[g];
    }
}

static void head_q3_k(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    (void)block_bytes;                /* a chunk is one block */
    const uint8_t *scales = row + 96; /* 8 bytes of low nibbles, 4 bytes of upper bit pairs */
    put_u16(out, r, row + 108);
    for (size_t g = 0; g < 2 * n; g++) {
        int low = scales[g % 8] >> (g / 8 * 4) & 15;
        int high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
        out[64 + 16 * g + r] = (uint8_t)((low | high << 4) - 32);
    }
}

/* Q4_K and Q5_K: eight scales and eight minima of 6 bits in 12 bytes. */
static void head_q4_k(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    (void)block_bytes; /* a chunk is one block */
    const uint8_t *s = row + 4;
    put_u16(out, r, row);
    put_u16(out + 32, r, row + 2);
    for (size_t g = 0; g < n; g++) {
        int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
        int min = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | (s[g] >> 6) << 4;
        out[64 + 32 * g + r] = (uint8_t)scale;
        out[64 + 32 * g + 16 + r] = (uint8_t)min;
    }
}

static void head_q6_k(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    (void)block_bytes; /* a chunk is one block */
    put_u16(out, r, row + 208);
    for (size_t g = 0; g < 2 * n; g++) {
        out[64 + 16 * g + r] = row[192 + g];
    }
}

static void head_iq4_xs(const uint8_t *row, size_t n, size_t r, size_t block_bytes, uint8_t *out)
{
    (void)block_bytes; /* a chunk is one block */
    put_u16(out, r, row);
    for (size_t g = 0; g < n; g++) {
        int low = row[4 + g / 2] >> (g % 2 * 4) & 15;
        int high = (row[2 + g / 4] >> (g % 4 * 2)) & 3;
        out[64 + 16 * g + r] = (uint8_t)((low | high << 4) - 32);
    }
}

/* False where the type has no packed form. */
static bool find_packing(gn_dtype dtype, packing *out)
{
    const gn_kernels *k = gn_kernels_get();
    const gn_dtype_info *info = gn_dtype_find((uint32_t)dtype);
    switch (dtype) {
#define PACKING(NAME, name, codes, scales, group, kind)                                            \
    case GN_DTYPE_##NAME:                                                                          \
        *out =                                                                                     \
            (packing){GN_PACKED_##name, GN_PACKED_##codes, GN_PACKED_##scales, group,              \
                      k->panel_##name,  head_##kind,       info->block_len,    info->block_bytes}; \
        return true;
        PACKING(Q4_0, q4_0, C4, SF16, 32, f16)
        PACKING(Q4_1, q4_1, C4, SPAIR, 32, pair)
        PACKING(Q5_0, q5_0, C5, SF16, 32, f16)
        PACKING(Q5_1, q5_1, C5, SPAIR, 32, pair)
        PACKING(Q8_0, q8_0, C8, SF16, 32, f16)
        PACKING(Q2_K, q2_k, C2, SU4, 16, q2_k)
        PACKING(Q3_K, q3_k, C3, SI8, 16, q3_k)
        PACKING(Q4_K, q4_k, C4, SU8, 32, q4_k)
        PACKING(Q5_K, q5_k, C5, SU8, 32, q4_k)
        PACKING(Q6_K, q6_k, C6, SI8, 16, q6_k)
        PACKING(IQ4_NL, iq4_nl, CNL, SF16, 32, f16)
        PACKING(IQ4_XS, iq4_xs, CNL, SI8, 32, iq4_xs)
        PACKING(MXFP4, mxfp4, CE2M1, SE8, 32, mxfp4)
#undef PACKING
    default: return false;
    }
}

/* --- codes of one block, q [8][64], into planes; all return what follows --- */

static uint8_t *put_nibbles(const uint8_t *q, uint8_t *out)
{
    for (size_t j = 0; j < 4; j++) {
        for (size_t i = 0; i < LINE; i++) {
            out[j * LINE + i] =
                (uint8_t)((q[2 * j * LINE + i] & 15) | (q[(2 * j + 1) * LINE + i] & 15) << 4);
        }
    }
    return out + 4 * LINE;
}

/* Bits shift and shift + 1 of the codes. */
static uint8_t *put_crumbs(const uint8_t *q, int shift, uint8_t *out)
{
    for (size_t h = 0; h < 2; h++) {
        const uint8_t *step = q + 4 * h * LINE;
        for (size_t i = 0; i < LINE; i++) {
            out[h * LINE + i] =
                (uint8_t)((step[i] >> shift & 3) | (step[LINE + i] >> shift & 3) << 2 |
                          (step[2 * LINE + i] >> shift & 3) << 4 |
                          (step[3 * LINE + i] >> shift & 3) << 6);
        }
    }
    return out + 2 * LINE;
}

static uint8_t *put_bits(const uint8_t *q, int shift, uint8_t *out)
{
    memset(out, 0, LINE);
    for (size_t s = 0; s < 8; s++) {
        for (size_t i = 0; i < LINE; i++) {
            out[i] = (uint8_t)(out[i] | (q[s * LINE + i] >> shift & 1) << s);
        }
    }
    return out + LINE;
}

/* Table values + 128 to the nibbles that stand for them. The two zeros of E2M1 are one value. */
static void look_back(gn_packed_codes codes, uint8_t *q)
{
    static const uint8_t iq4[256] = {
        [1] = 0,    [24] = 1,   [45] = 2,   [63] = 3,  [79] = 4,   [93] = 5,
        [106] = 6,  [118] = 7,  [129] = 8,  [141] = 9, [153] = 10, [166] = 11,
        [181] = 12, [197] = 13, [217] = 14, [241] = 15};
    static const uint8_t e2m1[256] = {
        [128] = 0, [129] = 1,  [130] = 2,  [131] = 3,  [132] = 4,  [134] = 5,  [136] = 6, [140] = 7,
        [127] = 9, [126] = 10, [125] = 11, [124] = 12, [122] = 13, [120] = 14, [116] = 15};
    const uint8_t *table = codes == GN_PACKED_CNL ? iq4 : e2m1;
    for (size_t i = 0; i < BLOCK * ROWS; i++) {
        q[i] = table[q[i]];
    }
}

static uint8_t *put_block(gn_packed_codes codes, uint8_t *q, uint8_t *out)
{
    switch (codes) {
    case GN_PACKED_C2: return put_crumbs(q, 0, out);
    case GN_PACKED_C3: return put_bits(q, 2, put_crumbs(q, 0, out));
    case GN_PACKED_C4: return put_nibbles(q, out);
    case GN_PACKED_C5: return put_bits(q, 4, put_nibbles(q, out));
    case GN_PACKED_C6: return put_crumbs(q, 4, put_nibbles(q, out));
    case GN_PACKED_C8: memcpy(out, q, 8 * LINE); return out + 8 * LINE;
    case GN_PACKED_CNL:
    case GN_PACKED_CE2M1: look_back(codes, q); return put_nibbles(q, out);
    }
    return out;
}

/* --- panels --- */

/* Elements [first, first + n) of n_rows rows, one chunk; returns what follows. */
static uint8_t *pack_chunk(const packing *p, const uint8_t *rows, size_t row_bytes, size_t n_rows,
                           size_t n, unpacked *u, uint8_t *out)
{
    size_t n_blocks = n / BLOCK;
    size_t head_bytes = gn_packed_head_bytes(p->scales, p->group, n_blocks);
    memset(out, 0, head_bytes);
    for (size_t r = 0; r < n_rows; r++) {
        p->head(rows + r * row_bytes, n_blocks, r, p->block_bytes, out);
    }
    out += head_bytes;
    p->panel(rows, row_bytes, n_rows, n, rows, u->q, u->scale, u->min);
    for (size_t b = 0; b < n_blocks; b++) {
        out = put_block(p->codes, u->q + b * BLOCK * ROWS, out);
    }
    return out;
}

/* The matrix's last two dimensions; 0 rows where it has no packed form. */
static size_t matrix_rows(const gn_view *w, size_t *k)
{
    packing p;
    if (w->n_dims < 2 || !find_packing(w->dtype, &p)) {
        return 0;
    }
    *k = (size_t)w->shape[w->n_dims - 1];
    return (size_t)w->shape[w->n_dims - 2];
}

size_t gn_panels_count(const gn_view *w)
{
    size_t k;
    size_t rows = matrix_rows(w, &k);
    size_t matrices = 1;
    for (int d = 0; d + 2 < w->n_dims; d++) {
        matrices *= (size_t)w->shape[d];
    }
    return matrices * ((rows + ROWS - 1) / ROWS);
}

size_t gn_panels_stride(const gn_view *w)
{
    packing p;
    size_t k;
    if (matrix_rows(w, &k) == 0 || !find_packing(w->dtype, &p)) {
        return 0;
    }
    return gn_packed_bytes(p.type, k);
}

void gn_panels_pack(const gn_view *w, size_t first, size_t n, void *scratch, void *out)
{
    packing p;
    size_t k = 0;
    size_t rows = matrix_rows(w, &k);
    bool known = find_packing(w->dtype, &p);
    assert(known && rows != 0 && first + n <= gn_panels_count(w));
    (void)known;
    size_t per_matrix = (rows + ROWS - 1) / ROWS;
    size_t chunk_bytes = CHUNK / p.block_len * p.block_bytes;
    uint8_t *to = out;
    for (size_t panel = first; panel < first + n; panel++) {
        size_t row = panel % per_matrix * ROWS;
        size_t n_rows = rows - row < ROWS ? rows - row : ROWS;
        const uint8_t *from =
            (const uint8_t *)w->data + (panel / per_matrix * rows + row) * w->row_bytes;
        for (size_t at = 0; at < k; at += CHUNK, from += chunk_bytes) {
            size_t len = k - at < CHUNK ? k - at : CHUNK;
            to = pack_chunk(&p, from, w->row_bytes, n_rows, len, scratch, to);
        }
    }
}
