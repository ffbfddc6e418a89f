/* Products straight from packed panels, for any level that has a lanes_*.h; a file that includes this has
 * included one, and defines VARIANT.
 *
 * A panel is one stream of memory, read once for up to MAX_ROWS activation rows; more rows take it in pieces
 * that stay in the first-level cache. Every line is asked for AHEAD bytes before its turn, because the
 * latency of memory, not its bandwidth, is else the limit: few loads are under way while a line is worked on.
 *
 * A chunk's scales become floats first, in memory that stays in the cache, whatever the form of its head, so
 * that the loops over codes come in few kinds. Where a register holds fewer than 16 rows, the rows of a
 * chunk go through in parts. */
#include "kernels/packed/packed.h"
#include "kernels/simd/b64.h"

enum {
    CHUNK = GN_PACKED_CHUNK,
    BLOCK = GN_PACKED_BLOCK,
    LINE = GN_PACKED_LINE,
    CHUNK_BLOCKS = CHUNK / BLOCK,
    PARTS = 16 / LANE_ROWS,
    AHEAD = 9472,     /* bytes: measured, see docs/KERNELS.md */
    PIECE = 2 * CHUNK /* elements taken at a time where there are more rows */
};

/* Values + 128. */
static const uint8_t iq4_table[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t e2m1_table[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                       128, 127, 126, 125, 124, 122, 120, 116};

/* Before loops of constant length whose arrays must end up in registers. Sanitized builds leave the loops as
 * they are: they would take minutes to compile. */
#if defined(NDEBUG)
#define UNROLL _Pragma("GCC unroll 8")
#else
#define UNROLL
#endif

GN_INLINE void ask(const uint8_t *p)
{
    __builtin_prefetch((const void *)((uintptr_t)p + AHEAD), 0, 2);
}

/* --- heads --- */

typedef struct chunk_scales {
    float scale[CHUNK / 16][16];
    float min[CHUNK / 16][16];
} chunk_scales;

/* scale[b] and min[b] of the head of a chunk of n blocks at p. */
static void read_f16(const uint8_t *p, size_t n, float *scale)
{
    for (size_t b = 0; b < n; b++) {
        f32x16_store(scale + 16 * b, f32x16_load_f16(p + 32 * b));
    }
}

static void read_pairs(const uint8_t *p, size_t n, float *scale, float *min)
{
    for (size_t b = 0; b < n; b++) {
        f32x16_store(scale + 16 * b, f32x16_load_f16(p + 64 * b));
        f32x16_store(min + 16 * b, f32x16_load_f16(p + 64 * b + 32));
    }
}

static void read_u8(const uint8_t *p, size_t n, float *scale, float *min)
{
    const f32x16 d = f32x16_load_f16(p);
    const f32x16 neg_dmin = f32x16_neg(f32x16_load_f16(p + 32));
    for (size_t b = 0; b < n; b++) {
        const uint8_t *bytes = p + 64 + 32 * b;
        f32x16_store(scale + 16 * b, f32x16_mul(d, f32x16_from_i32(b64_load_u8(bytes))));
        f32x16_store(min + 16 * b, f32x16_mul(neg_dmin, f32x16_from_i32(b64_load_u8(bytes + 16))));
    }
}

static void read_u4(const uint8_t *p, size_t n, float *scale, float *min)
{
    const f32x16 d = f32x16_load_f16(p);
    const f32x16 neg_dmin = f32x16_neg(f32x16_load_f16(p + 32));
    for (size_t g = 0; g < 2 * n; g++) {
        const b64 bytes = b64_load_u8(p + 64 + 16 * g);
        const b64 low = b64_and(bytes, b64_set_u32(15));
        f32x16_store(scale + 16 * g, f32x16_mul(d, f32x16_from_i32(low)));
        f32x16_store(min + 16 * g, f32x16_mul(neg_dmin, f32x16_from_i32(b64_shr(bytes, 4))));
    }
}

static void read_i8(const uint8_t *p, size_t groups, float *scale)
{
    const f32x16 d = f32x16_load_f16(p);
    for (size_t g = 0; g < groups; g++) {
        const b64 bytes = b64_load_u8(p + 64 + 16 * g);
        f32x16_store(scale + 16 * g, f32x16_mul(d, f32x16_from_i8(bytes, 0)));
    }
}

static void read_e8(const uint8_t *p, size_t n, float *scale)
{
    for (size_t b = 0; b < n; b++) {
        const b64 e = b64_load_u8(p + 16 * b);
        const b64 subnormal = b64_add_u32(b64_set_u32(0x200000), b64_shl(e, 21));
        const b64 normal = b64_add_u32(b64_shl(e, 23), b64_set_u32(0xff800000)); /* (e - 1) << 23 */
        const b64 bits = b64_select_less(e, b64_set_u32(2), subnormal, normal);
        f32x16_store(scale + 16 * b, f32x16_from_bits(bits));
    }
}

/* The scales and minima of a chunk of n blocks, as in the panel form. */
static void read_head(gn_packed_scales scales, size_t group, size_t n, const uint8_t *p,
                      float *scale, float *min)
{
    switch (scales) {
    case GN_PACKED_SF16: read_f16(p, n, scale); break;
    case GN_PACKED_SPAIR: read_pairs(p, n, scale, min); break;
    case GN_PACKED_SU8: read_u8(p, n, scale, min); break;
    case GN_PACKED_SU4: read_u4(p, n, scale, min); break;
    case GN_PACKED_SI8: read_i8(p, n * (BLOCK / group), scale); break;
    case GN_PACKED_SE8: read_e8(p, n, scale); break;
    }
}

/* --- codes --- */

GN_INLINE lane nibbles(const uint8_t *p, size_t s)
{
    const lane packed = lane_load(p + s / 2 * LINE);
    return lane_and(s % 2 != 0 ? lane_shr(packed, 4) : packed, lane_set_u8(15));
}

/* v with its bit `from` of each byte at bit `to`; the bits around it are rubbish. */
GN_INLINE lane move_bits(lane v, size_t from, size_t to)
{
    return from < to ? lane_shl(v, to - from) : from > to ? lane_shr(v, from - to) : v;
}

GN_INLINE lane crumbs(const uint8_t *p, size_t s)
{
    const lane packed = lane_load(p + s / 4 * LINE);
    return lane_and(move_bits(packed, 2 * (s % 4), 0), lane_set_u8(3));
}

/* The codes of step s of the block at p; codes and s are constants where this is inlined. */
GN_INLINE lane step_codes(gn_packed_codes codes, const uint8_t *p, size_t s, lane table)
{
    switch (codes) {
    case GN_PACKED_C2: return crumbs(p, s);
    case GN_PACKED_C3: {
        const lane bits = lane_load(p + 2 * LINE);
        return lane_merge(crumbs(p, s), move_bits(bits, s, 2), lane_set_u8(4));
    }
    case GN_PACKED_C4: return nibbles(p, s);
    case GN_PACKED_C5: {
        const lane bits = lane_load(p + 4 * LINE);
        return lane_merge(nibbles(p, s), move_bits(bits, s, 4), lane_set_u8(16));
    }
    case GN_PACKED_C6: {
        const lane bits = lane_load(p + 4 * LINE + s / 4 * LINE);
        return lane_merge(nibbles(p, s), move_bits(bits, 2 * (s % 4), 4), lane_set_u8(48));
    }
    case GN_PACKED_C8: return lane_load(p + s * LINE);
    case GN_PACKED_CNL:
    case GN_PACKED_CE2M1: return lane_look_up(table, nibbles(p, s));
    }
    return table;
}

GN_INLINE lane table_of(gn_packed_codes codes)
{
    return lane_set_16(codes == GN_PACKED_CE2M1 ? e2m1_table : iq4_table);
}

/* Codes of all 8 bits, taken as signed numbers where the level wants it so. */
GN_INLINE int is_signed(gn_packed_codes codes)
{
    return codes == GN_PACKED_C8 || codes == GN_PACKED_CNL || codes == GN_PACKED_CE2M1;
}

/* How many steps of products fit into 16 bits. */
GN_INLINE size_t run_of(gn_packed_codes codes, size_t group)
{
    return is_signed(codes) ? 1 : codes == GN_PACKED_C6 ? 2 : codes == GN_PACKED_C5 ? 4 : group / 4;
}

/* --- products --- */

typedef struct form {
    gn_packed_codes codes;
    gn_packed_scales scales;
    size_t group;
    int zero;
    int has_min;
} form;

typedef struct rows_in {
    const int8_t *q;
    const float *scale;
    const int32_t *sum;
    size_t ld;
} rows_in;

typedef struct rows_out {
    float *y;
    size_t ld;
    int resume;
} rows_out;

/* What a chunk's groups need of each row, group g of 16 elements (of 32: g even): the sum of activations
 * times their scale where there is a minimum, else what the integer sums start at. In memory because broadcasts
 * from there are free. */
typedef union chunk_terms {
    int32_t start[CHUNK / 16];
    float sum[CHUNK / 16];
} chunk_terms;

/* The terms of one row in a chunk of n blocks. */
GN_INLINE void find_terms(size_t group, int has_min, int zero, size_t n, const int32_t *sum,
                          const float *scale, chunk_terms *out)
{
    int32_t short_sum[CHUNK / 16];
    float short_scale[CHUNK_BLOCKS];
    if (n < CHUNK_BLOCKS) { /* the last chunk: nothing may be read behind it */
        for (size_t b = 0; b < CHUNK_BLOCKS; b++) {
            short_sum[2 * b] = b < n ? sum[2 * b] : 0;
            short_sum[2 * b + 1] = b < n ? sum[2 * b + 1] : 0;
            short_scale[b] = b < n ? scale[b] : 0.0f;
        }
        sum = short_sum;
        scale = short_scale;
    }
    b64 sums = b64_load(sum);
    if (group == 32) {
        static const uint8_t swap[16] = {4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11};
        sums = b64_add_u32(sums, b64_shuffle(sums, b64_set_16(swap)));
    }
    if (has_min) {
        const f32x16 scales = f32x16_load_twice(scale);
        f32x16_store(out->sum, f32x16_mul(f32x16_from_i32(sums), scales));
    } else {
        b64_store(out->start, b64_mul_i32(sums, b64_set_u32((uint32_t)-zero)));
    }
}

/* Group g of block b of a chunk with m rows; m, g, part and the form are constants where this is inlined. */
GN_INLINE void dot_group(size_t m, const form *f, size_t part, const uint8_t *p, size_t b, size_t g,
                         lane table, const chunk_scales *head, const chunk_terms *terms, rows_in a,
                         lane_f32 *acc)
{
    const size_t n_blocks = a.ld / BLOCK;
    const size_t run = run_of(f->codes, f->group);
    const int starts = SUMS_START && !f->has_min && (LANE_ROWS == 16 || !is_signed(f->codes));
    const size_t at = f->group == BLOCK ? b : 2 * b + g;
    const size_t term = 2 * b + g;
    lane_sum sum[MAX_ROWS];
    UNROLL
    for (size_t i = 0; i < m; i++) {
        sum[i] = lane_sum_start(starts ? terms[i].start[term] : 0);
    }
    UNROLL
    for (size_t step = 0; step < f->group / 4; step++) {
        const size_t s = g * 4 + step;
        const lane codes = step_codes(f->codes, p, s, table);
        const lane_factor w = lane_prepare(codes, is_signed(f->codes), f->zero);
        UNROLL
        for (size_t i = 0; i < m; i++) {
            const int8_t *four = a.q + i * a.ld + 4 * s;
            sum[i] = lane_sum_add(sum[i], w, four, is_signed(f->codes), step, run);
        }
    }
    const lane_f32 scale = lane_f32_load(head->scale[at] + part * LANE_ROWS);
    UNROLL
    for (size_t i = 0; i < m; i++) {
        const lane_f32 as = lane_f32_set(a.scale[i * n_blocks]);
        acc[i] = lane_f32_fma(lane_sum_end(sum[i]), lane_f32_mul(scale, as), acc[i]);
        if (f->has_min) {
            const lane_f32 min = lane_f32_load(head->min[at] + part * LANE_ROWS);
            acc[i] = lane_f32_fma(lane_f32_set(terms[i].sum[term]), min, acc[i]);
        }
    }
}

/* k elements of m rows; m and what dot_group() says are constants where this is inlined. */
GN_INLINE void dot_rows(size_t m, const form *f, size_t k, const uint8_t *p, rows_in a,
                        rows_out out)
{
    const size_t block_bytes = gn_packed_block_lines(f->codes) * LINE;
    const lane table = table_of(f->codes);
    chunk_scales head;
    chunk_terms terms[MAX_ROWS];
    lane_f32 acc[PARTS][MAX_ROWS];
    for (size_t part = 0; part < PARTS; part++) {
        for (size_t i = 0; i < m; i++) {
            acc[part][i] = out.resume ? lane_f32_load(out.y + i * out.ld + part * LANE_ROWS)
                                      : lane_f32_set(0.0f);
        }
    }
    for (size_t left = k / BLOCK; left > 0;) {
        const size_t n = left < CHUNK_BLOCKS ? left : CHUNK_BLOCKS;
        const size_t head_bytes = gn_packed_head_bytes(f->scales, f->group, n);
        for (size_t at = 0; at < head_bytes; at += LINE) {
            ask(p + at);
        }
        read_head(f->scales, f->group, n, p, head.scale[0], head.min[0]);
        p += head_bytes;
        for (size_t i = 0; i < m; i++) {
            find_terms(f->group, f->has_min, f->zero, n, a.sum + i * (a.ld / 16),
                       a.scale + i * (a.ld / BLOCK), &terms[i]);
        }
        UNROLL
        for (size_t part = 0; part < PARTS; part++) {
            rows_in at = a;
            const uint8_t *codes = p + part * (LINE / PARTS);
            for (size_t b = 0; b < n; b++) {
                if (part == 0) {
                    UNROLL
                    for (size_t line = 0; line < block_bytes; line += LINE) {
                        ask(codes + line);
                    }
                }
                dot_group(m, f, part, codes, b, 0, table, &head, terms, at, acc[part]);
                if (f->group < BLOCK) {
                    dot_group(m, f, part, codes, b, 1, table, &head, terms, at, acc[part]);
                }
                codes += block_bytes;
                at.q += BLOCK;
                at.scale++;
            }
        }
        p += n * block_bytes;
        a.q += n * BLOCK;
        a.scale += n;
        a.sum += 2 * n;
        left -= n;
    }
    for (size_t part = 0; part < PARTS; part++) {
        for (size_t i = 0; i < m; i++) {
            lane_f32_store(out.y + i * out.ld + part * LANE_ROWS, acc[part][i]);
        }
    }
}

/* Up to MAX_ROWS rows. */
GN_INLINE void dot_few(size_t m, const form *f, size_t k, const uint8_t *p, rows_in a, rows_out out)
{
    switch (m) {
    case 1: dot_rows(1, f, k, p, a, out); break;
    case 2: dot_rows(2, f, k, p, a, out); break;
#if MAX_ROWS > 2
    case 3: dot_rows(3, f, k, p, a, out); break;
    case 4: dot_rows(4, f, k, p, a, out); break;
#endif
#if MAX_ROWS > 4
    case 5: dot_rows(5, f, k, p, a, out); break;
    case 6: dot_rows(6, f, k, p, a, out); break;
    case 7: dot_rows(7, f, k, p, a, out); break;
    case 8: dot_rows(8, f, k, p, a, out); break;
#endif
    default: break;
    }
}

/* Any number of rows, shared out evenly over as few walks through a piece as can be. */
GN_INLINE void dot_many(const form *f, size_t k, const uint8_t *p, size_t m, rows_in a,
                        rows_out out)
{
    const size_t piece = m <= MAX_ROWS ? k : PIECE;
    for (size_t first = 0; first < k; first += piece) {
        const size_t n = k - first < piece ? k - first : piece;
        for (size_t i = 0; i < m;) {
            const size_t walks = (m - i + MAX_ROWS - 1) / MAX_ROWS;
            const size_t rows = (m - i + walks - 1) / walks;
            const rows_in in = {a.q + i * a.ld + first,
                                a.scale + i * (a.ld / BLOCK) + first / BLOCK,
                                a.sum + i * (a.ld / 16) + first / 16, a.ld};
            dot_few(rows, f, n, p, in, (rows_out){out.y + i * out.ld, out.ld, first != 0});
            i += rows;
        }
        const size_t chunks = n / CHUNK; /* the piece behind a shorter one is not there */
        p += chunks * (gn_packed_head_bytes(f->scales, f->group, CHUNK_BLOCKS) +
                       CHUNK_BLOCKS * gn_packed_block_lines(f->codes) * LINE);
    }
}

/* One function for each kind of loop. X(kind, codes, group, has_min) */
#define KINDS(X)                                                                                   \
    X(c2_min, C2, 16, 1)                                                                           \
    X(c3, C3, 16, 0)                                                                               \
    X(c4, C4, 32, 0)                                                                               \
    X(c4_min, C4, 32, 1)                                                                           \
    X(c5, C5, 32, 0)                                                                               \
    X(c5_min, C5, 32, 1)                                                                           \
    X(c6, C6, 16, 0)                                                                               \
    X(c8, C8, 32, 0)                                                                               \
    X(cnl, CNL, 32, 0)                                                                             \
    X(ce2m1, CE2M1, 32, 0)
#define DEFINE_KIND(kind, c, group, has_min)                                                       \
    static void dot_##kind(gn_packed_scales scales, int zero, size_t k, const uint8_t *p,          \
                           size_t m, rows_in a, rows_out out)                                      \
    {                                                                                              \
        const form f = {GN_PACKED_##c, scales, group, zero, has_min};                              \
        dot_many(&f, k, p, m, a, out);                                                             \
    }
KINDS(DEFINE_KIND)
#undef DEFINE_KIND

typedef void dot_kind_fn(gn_packed_scales scales, int zero, size_t k, const uint8_t *p, size_t m,
                         rows_in a, rows_out out);

/* The kind of a type. */
static dot_kind_fn *kind_of(gn_packed_codes codes, int has_min)
{
#define CHOOSE_KIND(kind, c, group, with_min)                                                      \
    if (codes == GN_PACKED_##c && has_min == (with_min)) {                                         \
        return dot_##kind;                                                                         \
    }
    KINDS(CHOOSE_KIND)
#undef CHOOSE_KIND
    return NULL;
}

static const form forms[] = {
#define FORM(type, codes, scales, group, zero, has_min)                                            \
    {GN_PACKED_##codes, GN_PACKED_##scales, group, zero, has_min},
    GN_PACKED_LIST(FORM)
#undef FORM
};

#define PASTE_(op, variant) gn_k_##op##_##variant
#define PASTE(op, variant)  PASTE_(op, variant)

void PASTE(dot_packed, VARIANT)(gn_packed_type type, size_t k, const void *panel, size_t m,
                                const int8_t *a, size_t lda, const float *a_scale,
                                const int32_t *a_sum, float *y, size_t ldy)
{
    const form *f = &forms[type];
    kind_of(f->codes, f->has_min)(f->scales, f->zero, k, panel, m,
                                  (rows_in){a, a_scale, a_sum, lda}, (rows_out){y, ldy, 0});
}

/* --- the way back --- */

/* The codes of n blocks; `codes` is a constant where this is inlined. */
GN_INLINE void unpack_blocks(gn_packed_codes codes, size_t n, const uint8_t *p, uint8_t *q)
{
    const lane table = table_of(codes);
    for (size_t b = 0; b < n; b++, p += gn_packed_block_lines(codes) * LINE) {
        for (size_t line = 0; line < gn_packed_block_lines(codes) * LINE; line += LINE) {
            ask(p + line);
        }
        UNROLL
        for (size_t s = 0; s < 8; s++, q += LINE) {
            UNROLL
            for (size_t part = 0; part < PARTS; part++) {
                const size_t at = part * (LINE / PARTS);
                lane_store(q + at, step_codes(codes, p + at, s, table));
            }
        }
    }
}

static void unpack_codes(gn_packed_codes codes, size_t n, const uint8_t *p, uint8_t *q)
{
    switch (codes) {
    case GN_PACKED_C2: unpack_blocks(GN_PACKED_C2, n, p, q); break;
    case GN_PACKED_C3: unpack_blocks(GN_PACKED_C3, n, p, q); break;
    case GN_PACKED_C4: unpack_blocks(GN_PACKED_C4, n, p, q); break;
    case GN_PACKED_C5: unpack_blocks(GN_PACKED_C5, n, p, q); break;
    case GN_PACKED_C6: unpack_blocks(GN_PACKED_C6, n, p, q); break;
    case GN_PACKED_C8: unpack_blocks(GN_PACKED_C8, n, p, q); break;
    case GN_PACKED_CNL: unpack_blocks(GN_PACKED_CNL, n, p, q); break;
    case GN_PACKED_CE2M1: unpack_blocks(GN_PACKED_CE2M1, n, p, q); break;
    }
}

void PASTE(unpack_packed, VARIANT)(gn_packed_type type, size_t n, const void *chunks, uint8_t *q,
                                   float *scale, float *min)
{
    const form *f = &forms[type];
    const uint8_t *p = chunks;
    for (size_t left = n / BLOCK; left > 0;) {
        const size_t blocks = left < CHUNK_BLOCKS ? left : CHUNK_BLOCKS;
        const size_t groups = blocks * (BLOCK / f->group);
        const size_t head_bytes = gn_packed_head_bytes(f->scales, f->group, blocks);
        for (size_t at = 0; at < head_bytes; at += LINE) {
            ask(p + at);
        }
        read_head(f->scales, f->group, blocks, p, scale, min);
        unpack_codes(f->codes, blocks, p + head_bytes, q);
        p += head_bytes + blocks * gn_packed_block_lines(f->codes) * LINE;
        q += blocks * BLOCK * 16;
        scale += groups * 16;
        if (f->has_min) {
            min += groups * 16;
        }
        left -= blocks;
    }
}
