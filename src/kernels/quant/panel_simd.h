/* Panels of 16 rows, for any level that simd/b64.h knows.
 *
 * 16 bytes of each of 16 rows are loaded and transposed while still packed: after that, lane r holds
 * 4 bytes of row r, and everything, codes as well as scales, is unpacked for all 16 rows at once by
 * the same few operations. So the transposition costs 8 shuffles for 16 bytes a row, whatever the
 * number of codes in them.
 *
 * A panel with missing rows is the last of a matrix at most, and is left to the reference. The file
 * that includes this defines VARIANT. */
#include "kernels/quant/quant.h"
#include "kernels/simd/b64.h"

/* Four steps (16 elements of each row) of a panel. */
GN_INLINE void store_steps(uint8_t *q, const b64 v[4])
{
    for (size_t c = 0; c < 4; c++) {
        b64_store(q + 64 * c, v[c]);
    }
}

/* The 16 elements of each row that start `element` elements into the panel. */
GN_INLINE uint8_t *steps_at(uint8_t *q, size_t element)
{
    return q + element * 16;
}

GN_INLINE void nibbles_low(const b64 packed[4], b64 out[4])
{
    for (int c = 0; c < 4; c++) {
        out[c] = b64_and(packed[c], b64_set_u8(15));
    }
}

GN_INLINE void nibbles_high(const b64 packed[4], b64 out[4])
{
    for (int c = 0; c < 4; c++) {
        out[c] = b64_and(b64_shr(packed[c], 4), b64_set_u8(15));
    }
}

GN_INLINE void look_up_codes(b64 table, b64 v[4])
{
    for (int c = 0; c < 4; c++) {
        v[c] = b64_look_up(table, v[c]);
    }
}

/* Add `bit` to the codes whose flag has the one bit of `flag`. */
GN_INLINE void add_flagged(b64 codes[4], const b64 flags[4], uint8_t flag, uint8_t bit)
{
    for (int c = 0; c < 4; c++) {
        codes[c] = b64_or_if(codes[c], flags[c], b64_set_u8(flag), b64_set_u8(bit));
    }
}

/* Ask for part i of n of the memory that is wanted next, `bytes` for this block of 16 rows. Decoding
 * walks through all weights, and without this the latency of memory bounds it: the loads of a panel
 * are too few at a time for the hardware to run ahead. Into the second level, and spread over the
 * block, as few requests can be under way. An address outside the matrix does no harm. */
GN_INLINE void prefetch_part(uintptr_t ahead, size_t bytes, size_t i, size_t n)
{
    for (size_t at = bytes * i / n; at < bytes * (i + 1) / n; at += 64) {
        __builtin_prefetch((const void *)(ahead + at), 0, 2);
    }
}

/* The first word of each block: a half-precision factor and what follows it. */
GN_INLINE b64 head(const uint8_t *block, size_t stride)
{
    b64 words[4];
    b64_load_rows(block, stride, words);
    return words[0];
}

GN_INLINE void block_q4_0(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    prefetch_part(ahead, 16 * 18, 0, 1);
    (void)min;
    b64 packed[4];
    b64 codes[4];
    f32x16_store(scale, f32x16_from_f16(head(p, stride)));
    b64_load_rows(p + 2, stride, packed);
    nibbles_low(packed, codes);
    store_steps(q, codes);
    nibbles_high(packed, codes);
    store_steps(steps_at(q, 16), codes);
}

GN_INLINE void block_q4_1(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    prefetch_part(ahead, 16 * 20, 0, 1);
    b64 packed[4];
    b64 codes[4];
    b64 factors = head(p, stride);
    f32x16_store(scale, f32x16_from_f16(factors));
    f32x16_store(min, f32x16_from_f16(b64_shr(factors, 16)));
    b64_load_rows(p + 4, stride, packed);
    nibbles_low(packed, codes);
    store_steps(q, codes);
    nibbles_high(packed, codes);
    store_steps(steps_at(q, 16), codes);
}

/* Bits 8n .. 8n+7 of each lane of `high` become bit 4 of the codes of two steps. */
GN_INLINE void add_fifth(b64 high, uint8_t n, b64 *step0, b64 *step1)
{
    uint8_t control[16];
    for (uint8_t i = 0; i < 16; i++) {
        control[i] = (uint8_t)(i / 4 * 4 + n);
    }
    b64 flags = b64_shuffle(high, b64_set_16(control));
    *step0 = b64_or_if(*step0, flags, b64_set_u32(0x08040201), b64_set_u8(16));
    *step1 = b64_or_if(*step1, flags, b64_set_u32(0x80402010), b64_set_u8(16));
}

/* Q5_0 and Q5_1: 16 bytes of nibbles, and 32 bits on top. */
GN_INLINE void codes_q5(const uint8_t *nibbles, size_t stride, b64 high, uint8_t *q)
{
    b64 packed[4];
    b64 codes[4];
    b64_load_rows(nibbles, stride, packed);
    nibbles_low(packed, codes);
    add_fifth(high, 0, &codes[0], &codes[1]);
    add_fifth(high, 1, &codes[2], &codes[3]);
    store_steps(q, codes);
    nibbles_high(packed, codes);
    add_fifth(high, 2, &codes[0], &codes[1]);
    add_fifth(high, 3, &codes[2], &codes[3]);
    store_steps(steps_at(q, 16), codes);
}

GN_INLINE void block_q5_0(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    prefetch_part(ahead, 16 * 22, 0, 1);
    (void)min;
    b64 words[4];
    b64_load_rows(p, stride, words);
    f32x16_store(scale, f32x16_from_f16(words[0]));
    b64 high = b64_or(b64_shr(words[0], 16), b64_shl(words[1], 16));
    codes_q5(p + 6, stride, high, q);
}

GN_INLINE void block_q5_1(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    prefetch_part(ahead, 16 * 24, 0, 1);
    b64 words[4];
    b64_load_rows(p, stride, words);
    f32x16_store(scale, f32x16_from_f16(words[0]));
    f32x16_store(min, f32x16_from_f16(b64_shr(words[0], 16)));
    codes_q5(p + 8, stride, words[1], q);
}

GN_INLINE void block_q8_0(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    prefetch_part(ahead, 16 * 34, 0, 1);
    (void)min;
    f32x16_store(scale, f32x16_from_f16(head(p, stride)));
    for (size_t half = 0; half < 2; half++) {
        b64 v[4];
        b64_load_rows(p + 2 + 16 * half, stride, v);
        for (int c = 0; c < 4; c++) {
            v[c] = b64_xor(v[c], b64_set_u8(0x80));
        }
        store_steps(steps_at(q, 16 * half), v);
    }
}

/* Codes of 2 bits at `shift` in the bytes of `packed`. */
#define CRUMBS(packed, shift, out)                                                                 \
    do {                                                                                           \
        for (int c_ = 0; c_ < 4; c_++) {                                                           \
            (out)[c_] = b64_and(b64_shr((packed)[c_], shift), b64_set_u8(3));                      \
        }                                                                                          \
    } while (0)

/* Byte n of each lane, below 128, as floats. */
#define BYTE_F32(v, n) f32x16_from_i32(b64_and(b64_shr(v, 8 * (n)), b64_set_u32(255)))

/* scale[n] = d times byte n of each lane, unsigned; four groups. */
GN_INLINE void store_products(float *out, f32x16 d, b64 bytes)
{
    f32x16_store(out, f32x16_mul(d, BYTE_F32(bytes, 0)));
    f32x16_store(out + 16, f32x16_mul(d, BYTE_F32(bytes, 1)));
    f32x16_store(out + 32, f32x16_mul(d, BYTE_F32(bytes, 2)));
    f32x16_store(out + 48, f32x16_mul(d, BYTE_F32(bytes, 3)));
}

/* The same with signed bytes. */
GN_INLINE void store_signed_products(float *out, f32x16 d, b64 bytes)
{
    f32x16_store(out, f32x16_mul(d, f32x16_from_i8(bytes, 0)));
    f32x16_store(out + 16, f32x16_mul(d, f32x16_from_i8(bytes, 1)));
    f32x16_store(out + 32, f32x16_mul(d, f32x16_from_i8(bytes, 2)));
    f32x16_store(out + 48, f32x16_mul(d, f32x16_from_i8(bytes, 3)));
}

GN_INLINE void block_q2_k(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    b64 words[4];
    b64 codes[4];
    b64_load_rows(p + 68, stride, words); /* the last 16 bytes of the block */
    f32x16 d = f32x16_from_f16(words[3]);
    f32x16 neg_dmin = f32x16_neg(f32x16_from_f16(b64_shr(words[3], 16)));
    b64_load_rows(p, stride, words);
    for (size_t c = 0; c < 4; c++) {
        store_products(scale + 64 * c, d, b64_and(words[c], b64_set_u8(15)));
        store_products(min + 64 * c, neg_dmin, b64_and(b64_shr(words[c], 4), b64_set_u8(15)));
    }
    for (size_t piece = 0; piece < 4; piece++) {
        prefetch_part(ahead, 16 * 84, piece, 4);
        b64 packed[4];
        uint8_t *to = steps_at(q, piece / 2 * 128 + piece % 2 * 16);
        b64_load_rows(p + 16 + 16 * piece, stride, packed);
        CRUMBS(packed, 0, codes);
        store_steps(to, codes);
        CRUMBS(packed, 2, codes);
        store_steps(steps_at(to, 32), codes);
        CRUMBS(packed, 4, codes);
        store_steps(steps_at(to, 64), codes);
        CRUMBS(packed, 6, codes);
        store_steps(steps_at(to, 96), codes);
    }
}

/* 6-bit numbers minus 32, as signed bytes: bit 5 is flipped, and then is the sign to extend. */
GN_INLINE b64 minus_32(b64 bytes)
{
    b64 flipped = b64_xor(bytes, b64_set_u8(32));
    b64 sign = b64_and(flipped, b64_set_u8(32));
    return b64_or(flipped, b64_or(b64_shl(sign, 1), b64_shl(sign, 2)));
}

GN_INLINE void scales_q3_k(const uint8_t *p, size_t stride, float *scale)
{
    b64 words[4];
    b64_load_rows(p + 94, stride, words); /* the last 16 bytes of the block */
    f32x16 d = f32x16_from_f16(b64_shr(words[3], 16));
    b64_load_rows(p + 92, stride, words); /* word 1 and 2: low nibbles, 3: upper bit pairs */
    b64 nibble = b64_set_u8(15);
    b64 pair = b64_set_u8(0x30);
    b64 s0 = b64_or(b64_and(words[1], nibble), b64_and(b64_shl(words[3], 4), pair));
    b64 s1 = b64_or(b64_and(words[2], nibble), b64_and(b64_shl(words[3], 2), pair));
    b64 s2 = b64_or(b64_and(b64_shr(words[1], 4), nibble), b64_and(words[3], pair));
    b64 s3 = b64_or(b64_and(b64_shr(words[2], 4), nibble), b64_and(b64_shr(words[3], 2), pair));
    store_signed_products(scale, d, minus_32(s0));
    store_signed_products(scale + 64, d, minus_32(s1));
    store_signed_products(scale + 128, d, minus_32(s2));
    store_signed_products(scale + 192, d, minus_32(s3));
}

GN_INLINE void block_q3_k(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    (void)min;
    scales_q3_k(p, stride, scale);
    for (size_t half = 0; half < 2; half++) {
        b64 high[4]; /* bit i: bit 2 of the code of the i-th group of 32 */
        b64_load_rows(p + 16 * half, stride, high);
        for (size_t part = 0; part < 2; part++) {
            prefetch_part(ahead, 16 * 110, half * 2 + part, 4);
            b64 packed[4];
            b64 codes[4];
            uint8_t flag = part == 0 ? 1 : 16;
            uint8_t *to = steps_at(q, part * 128 + half * 16);
            b64_load_rows(p + 32 + 32 * part + 16 * half, stride, packed);
            CRUMBS(packed, 0, codes);
            add_flagged(codes, high, flag, 4);
            store_steps(to, codes);
            CRUMBS(packed, 2, codes);
            add_flagged(codes, high, (uint8_t)(flag * 2), 4);
            store_steps(steps_at(to, 32), codes);
            CRUMBS(packed, 4, codes);
            add_flagged(codes, high, (uint8_t)(flag * 4), 4);
            store_steps(steps_at(to, 64), codes);
            CRUMBS(packed, 6, codes);
            add_flagged(codes, high, (uint8_t)(flag * 8), 4);
            store_steps(steps_at(to, 96), codes);
        }
    }
}

/* The first 16 bytes of Q4_K and Q5_K: two factors, then eight scales and eight minima, 6 bits each. */
GN_INLINE void scales_k4(const uint8_t *p, size_t stride, float *scale, float *min)
{
    b64 w[4];
    b64_load_rows(p, stride, w);
    f32x16 d = f32x16_from_f16(w[0]);
    f32x16 neg_dmin = f32x16_neg(f32x16_from_f16(b64_shr(w[0], 16)));
    b64 six = b64_set_u8(63);
    b64 nibble = b64_set_u8(15);
    b64 pair = b64_set_u8(0x30);
    b64 scales_hi = b64_or(b64_and(w[3], nibble), b64_and(b64_shr(w[1], 2), pair));
    b64 mins_hi = b64_or(b64_and(b64_shr(w[3], 4), nibble), b64_and(b64_shr(w[2], 2), pair));
    store_products(scale, d, b64_and(w[1], six));
    store_products(scale + 64, d, scales_hi);
    store_products(min, neg_dmin, b64_and(w[2], six));
    store_products(min + 64, neg_dmin, mins_hi);
}

GN_INLINE void block_q4_k(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    scales_k4(p, stride, scale, min);
    for (size_t piece = 0; piece < 8; piece++) {
        prefetch_part(ahead, 16 * 144, piece, 8);
        b64 packed[4];
        b64 codes[4];
        uint8_t *to = steps_at(q, piece / 2 * 64 + piece % 2 * 16);
        b64_load_rows(p + 16 + 16 * piece, stride, packed);
        nibbles_low(packed, codes);
        store_steps(to, codes);
        nibbles_high(packed, codes);
        store_steps(steps_at(to, 32), codes);
    }
}

GN_INLINE void block_q5_k(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    scales_k4(p, stride, scale, min);
    for (size_t half = 0; half < 2; half++) {
        b64 high[4]; /* bit i: bit 4 of the code of the i-th group of 32 */
        b64_load_rows(p + 16 + 16 * half, stride, high);
        for (size_t pair = 0; pair < 4; pair++) {
            prefetch_part(ahead, 16 * 176, half * 4 + pair, 8);
            b64 packed[4];
            b64 codes[4];
            uint8_t *to = steps_at(q, pair * 64 + half * 16);
            b64_load_rows(p + 48 + 32 * pair + 16 * half, stride, packed);
            nibbles_low(packed, codes);
            add_flagged(codes, high, (uint8_t)(1u << 2 * pair), 16);
            store_steps(to, codes);
            nibbles_high(packed, codes);
            add_flagged(codes, high, (uint8_t)(2u << 2 * pair), 16);
            store_steps(steps_at(to, 32), codes);
        }
    }
}

/* 16 codes of each row: nibbles, with the bit pairs of `high` (already shifted to bits 4, 5). */
GN_INLINE void store_six_bits(uint8_t *to, const b64 nibbles[4], const b64 high[4])
{
    for (size_t c = 0; c < 4; c++) {
        b64_store(to + 64 * c, b64_or(nibbles[c], b64_and(high[c], b64_set_u8(0x30))));
    }
}

GN_INLINE void block_q6_k(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                          float *scale, float *min)
{
    (void)min;
    b64 words[4];
    b64_load_rows(p + 194, stride, words); /* the last 16 bytes of the block */
    f32x16 d = f32x16_from_f16(b64_shr(words[3], 16));
    b64_load_rows(p + 192, stride, words);
    for (size_t c = 0; c < 4; c++) {
        store_signed_products(scale + 64 * c, d, words[c]);
    }
    for (size_t piece = 0; piece < 4; piece++) { /* 64 codes each: 16 of four groups of 32 */
        prefetch_part(ahead, 16 * 210, piece, 4);
        b64 low0[4];
        b64 low1[4];
        b64 high[4];
        b64 nibbles[4];
        b64 pairs[4];
        uint8_t *to = steps_at(q, piece / 2 * 128 + piece % 2 * 16);
        b64_load_rows(p + piece / 2 * 64 + piece % 2 * 16, stride, low0);
        b64_load_rows(p + piece / 2 * 64 + piece % 2 * 16 + 32, stride, low1);
        b64_load_rows(p + 128 + piece * 16, stride, high);
        nibbles_low(low0, nibbles);
        for (int c = 0; c < 4; c++) {
            pairs[c] = b64_shl(high[c], 4);
        }
        store_six_bits(to, nibbles, pairs);
        nibbles_low(low1, nibbles);
        for (int c = 0; c < 4; c++) {
            pairs[c] = b64_shl(high[c], 2);
        }
        store_six_bits(steps_at(to, 32), nibbles, pairs);
        nibbles_high(low0, nibbles);
        store_six_bits(steps_at(to, 64), nibbles, high);
        nibbles_high(low1, nibbles);
        for (int c = 0; c < 4; c++) {
            pairs[c] = b64_shr(high[c], 2);
        }
        store_six_bits(steps_at(to, 96), nibbles, pairs);
    }
}

/* 16 bytes of nibbles that stand for numbers of a table (128 added). */
GN_INLINE void codes_by_table(const uint8_t *p, size_t stride, b64 table, uint8_t *q)
{
    b64 packed[4];
    b64 codes[4];
    b64_load_rows(p, stride, packed);
    nibbles_low(packed, codes);
    look_up_codes(table, codes);
    store_steps(q, codes);
    nibbles_high(packed, codes);
    look_up_codes(table, codes);
    store_steps(steps_at(q, 16), codes);
}

/* The tables of ref.c with 128 added. */
static const uint8_t iq4_table[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t e2m1_table[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                       128, 127, 126, 125, 124, 122, 120, 116};

GN_INLINE void block_iq4_nl(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                            float *scale, float *min)
{
    prefetch_part(ahead, 16 * 18, 0, 1);
    (void)min;
    f32x16_store(scale, f32x16_from_f16(head(p, stride)));
    codes_by_table(p + 2, stride, b64_set_16(iq4_table), q);
}

/* Scale g: nibble g of word 1, bit pair g of the upper half of word 0; then minus 32. */
#define SCALE_IQ4_XS(w, g)                                                                         \
    b64_or(b64_and(b64_shr((w)[1], 4 * (g)), b64_set_u32(15)),                                     \
           b64_shl(b64_and(b64_shr((w)[0], 16 + 2 * (g)), b64_set_u32(3)), 4))
#define STORE_SCALE_IQ4_XS(g)                                                                      \
    f32x16_store(scale + 16 * (g),                                                                 \
                 f32x16_mul(d, f32x16_from_i8(minus_32(SCALE_IQ4_XS(words, g)), 0)))

GN_INLINE void block_iq4_xs(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                            float *scale, float *min)
{
    (void)min;
    b64 words[4];
    b64_load_rows(p, stride, words);
    f32x16 d = f32x16_from_f16(words[0]);
    STORE_SCALE_IQ4_XS(0);
    STORE_SCALE_IQ4_XS(1);
    STORE_SCALE_IQ4_XS(2);
    STORE_SCALE_IQ4_XS(3);
    STORE_SCALE_IQ4_XS(4);
    STORE_SCALE_IQ4_XS(5);
    STORE_SCALE_IQ4_XS(6);
    STORE_SCALE_IQ4_XS(7);
    for (size_t g = 0; g < 8; g++) {
        prefetch_part(ahead, 16 * 136, g, 8);
        codes_by_table(p + 8 + 16 * g, stride, b64_set_16(iq4_table), steps_at(q, 32 * g));
    }
}

/* A power of two, halved: the two lowest are subnormal. */
GN_INLINE void block_mxfp4(const uint8_t *p, size_t stride, uintptr_t ahead, uint8_t *q,
                           float *scale, float *min)
{
    prefetch_part(ahead, 16 * 17, 0, 1);
    (void)min;
    b64 e = b64_and(head(p, stride), b64_set_u32(255));
    b64 subnormal = b64_add_u32(b64_set_u32(0x200000), b64_shl(e, 21));
    b64 normal = b64_add_u32(b64_shl(e, 23), b64_set_u32(0xff800000)); /* (e - 1) << 23 */
    b64 bits = b64_select_less(e, b64_set_u32(2), subnormal, normal);
    f32x16_store(scale, f32x16_from_bits(bits));
    codes_by_table(p + 1, stride, b64_set_16(e2m1_table), q);
}

#define PASTE_(type, variant) gn_k_panel_##type##_##variant
#define PASTE(type, variant)  PASTE_(type, variant)
#define REFERENCE(type)       gn_k_panel_##type##_ref
#define DEFINE_PANEL(type, len, bytes, group, zero, has_min)                                       \
    void PASTE(type, VARIANT)(const void *rows, size_t row_bytes, size_t n_rows, size_t k,         \
                              const void *ahead, uint8_t *q, float *scale, float *min)             \
    {                                                                                              \
        if (n_rows < 16) {                                                                         \
            REFERENCE(type)(rows, row_bytes, n_rows, k, ahead, q, scale, min);                     \
            return;                                                                                \
        }                                                                                          \
        const uint8_t *block = rows;                                                               \
        uintptr_t next = (uintptr_t)ahead;                                                         \
        for (size_t n = k / (len); n > 0; n--) {                                                   \
            block_##type(block, row_bytes, next, q, scale, min);                                   \
            next += 16 * (bytes);                                                                  \
            block += (bytes);                                                                      \
            q += (len)*16;                                                                         \
            scale += (len) / (group)*16;                                                           \
            if (has_min) {                                                                         \
                min += (len) / (group)*16;                                                         \
            }                                                                                      \
        }                                                                                          \
    }
GN_PANEL_LIST(DEFINE_PANEL)
