/* Keys and values on their way into pages, in the layouts of kernels/paged/paged.h, and what makes them fit few
 * bits. Quantizing is a small share of a token's work, so it is one plain piece of C: the same bits at
 * every CPU level.
 *
 * The rotation is a Hadamard transform of each head scaled to keep lengths (as in QuaRot, Ashkboos et al. 2024): it
 * spreads what a few large dimensions hold over all of them, which few bits with one scale need. It is orthogonal, so
 * queries and keys rotated alike have the products they had; sums of rotated values are rotated back, and it is
 * its own inverse. A head whose size is no power of two is rotated in blocks that are.
 *
 * Some models (Qwen2) add large biases to keys, in the dimensions that RoPE turns most slowly, where they drown
 * what differs from token to token. A vector taken off all keys of a head adds the same number to all scores of a
 * query, and a softmax does not see that: so the biases of slow dimensions are left out of quantized keys. */
#include "model/net_impl.h"

#include "base/alloc.h"
#include "kernels/paged/paged.h"
#include "kernels/simd/half.h"

#include <math.h>
#include <string.h>

enum { TOK = GN_PAGED_TOK, GROUP = GN_PAGED_Q4_GROUP };

#define TINY 0x1p-100f /* what is smaller throughout is stored as zeros */

static void hadamard_block(float *x, size_t n)
{
    for (size_t half = 1; half < n; half *= 2) {
        for (size_t i = 0; i < n; i += 2 * half) {
            float *a = x + i;
            float *b = x + i + half;
            for (size_t j = 0; j < half; j++) {
                float sum = a[j] + b[j];
                b[j] = a[j] - b[j];
                a[j] = sum;
            }
        }
    }
    float scale = 1.0f / sqrtf((float)n);
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
}

void gn_net_rotate_head(float *x, size_t d)
{
    while (d > 0) {
        size_t n = 1;
        while (n * 2 <= d) {
            n *= 2;
        }
        hadamard_block(x, n);
        x += n;
        d -= n;
    }
}

/* Nearest whole number, ties to even, of |x| < 2^22. */
static float whole(float x)
{
    const float magic = 0x1.8p23f;
    return (x + magic) - magic;
}

/* The largest magnitude; not finite where one of them is not. */
static float largest(const float *x, size_t n)
{
    float most = 0.0f;
    float nonfinite = 0.0f;
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        most = size > most ? size : most;
        nonfinite += size * 0.0f;
    }
    return most + nonfinite;
}

/* The code of |x| <= 448 in E4M3, to nearest even. */
static uint8_t e4m3(float x)
{
    uint8_t sign = x < 0.0f ? 0x80 : 0;
    float size = fabsf(x);
    int exponent = (int)(gn_f32_to_bits(size) >> 23) - 127;
    exponent = exponent < -6 ? -6 : exponent;
    /* Eighths of 2^exponent; up to 16, which is 8 of the next exponent. As subnormals count from 0 and others
     * from 8, adding them to the field gives both the carry and the missing leading bit. */
    float eighths = whole(size * gn_f32_from_bits((uint32_t)(127 + 3 - exponent) << 23));
    return (uint8_t)(sign | ((unsigned)(exponent + 6) * 8 + (unsigned)eighths));
}

/* One token's scale and codes; a row that is not finite gets a scale that is not, so that what is computed from it
 * shows it. */
static float code_8bit(gn_kv_type type, const float *x, size_t d, uint8_t *code, size_t step)
{
    float most = largest(x, d);
    if (!(most >= TINY) || isinf(most)) {
        for (size_t j = 0; j < d; j++) {
            code[j * step] = 0;
        }
        return most >= TINY || isnan(most) ? NAN : 0.0f;
    }
    float top = type == GN_KV_Q8 ? 127.0f : 448.0f;
    float inverse = top / most;
    for (size_t j = 0; j < d; j++) {
        float scaled = x[j] * inverse;
        code[j * step] = type == GN_KV_Q8 ? (uint8_t)(int8_t)whole(scaled)
                                          : e4m3(scaled > top    ? top
                                                 : scaled < -top ? -top
                                                                 : scaled);
    }
    return type == GN_KV_Q8 ? most / top : most / top * 256.0f;
}

/* Write token t of a block of 8-bit keys or values. */
static void put_8bit(gn_kv_type type, const float *x, size_t d, size_t t, uint32_t value,
                     void *block)
{
    uint8_t *codes = block;
    float *scales = (float *)(void *)(codes + d * TOK);
    scales[t] = value != 0 ? code_8bit(type, x, d, codes + t * d, 1)
                           : code_8bit(type, x, d, codes + t, TOK);
}

/* The scale of a q4 group: the least bfloat16 that reaches `most` with the largest code, 15. */
static uint16_t q4_scale(float most)
{
    if (isnan(most) || isinf(most)) {
        return 0x7fc0;
    }
    uint32_t bits = gn_f32_to_bits(most < TINY ? TINY : most / 15.0f);
    return (uint16_t)((bits + 0xffff) >> 16);
}

/* Codes c of one group: x ~ (2c + 1) scale. */
static uint16_t q4_group(const float *x, uint8_t *code)
{
    uint16_t scale = q4_scale(largest(x, GROUP));
    if (scale == 0x7fc0) {
        memset(code, 0, GROUP);
        return scale;
    }
    float inverse = 0.5f / gn_f32_from_bits((uint32_t)scale << 16);
    for (size_t j = 0; j < GROUP; j++) {
        float c = whole(x[j] * inverse - 0.5f);
        c = c > 7.0f ? 7.0f : c < -8.0f ? -8.0f : c;
        code[j] = (uint8_t)((int)c & 15);
    }
    return scale;
}

/* Write token t of a block of q4 values. */
static void put_q4(const float *x, size_t d, size_t t, void *block)
{
    uint8_t *bytes = block;
    uint16_t *scales = (uint16_t *)(void *)(bytes + d / 2 * TOK);
    for (size_t g = 0; g < d / GROUP; g++) {
        uint8_t code[GROUP];
        scales[t * (d / GROUP) + g] = q4_group(x + g * GROUP, code);
        for (size_t i = 0; i < GROUP / 2; i++) {
            bytes[t * (d / 2) + g * 16 + i] = (uint8_t)(code[i] | code[i + 16] << 4);
        }
    }
}

/* Where a dimension turns by less than a radian in this many positions, its bias is left out. */
#define SLOW_TOK 4096.0f

static bool is_slow(const gn_net *net, const gn_rope *rope, size_t j)
{
    size_t n_rot = net->hp.n_rot;
    if (j >= n_rot) {
        return true;
    }
    size_t pair = net->hp.rope_pairs == GN_ROPE_NORM ? j / 2 : j % (n_rot / 2);
    return rope->inv_freq[pair] * SLOW_TOK < 1.0f;
}

gn_status gn_net_init_key_offsets(gn_net *net)
{
    const gn_hparams *hp = &net->hp;
    size_t n_kv = (size_t)hp->n_head_kv * hp->head_dim;
    bool any = false;
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        any = any || (net->w.layers[i].k_bias != NULL && net->w.layers[i].k_norm == NULL);
    }
    /* A cap on scores is no softmax: it would see the difference. */
    if (!any || !net->rotated || hp->attn_softcap > 0.0f) {
        return GN_OK;
    }
    net->key_offsets = gn_calloc(hp->n_layer * n_kv, sizeof *net->key_offsets);
    if (net->key_offsets == NULL) {
        return gn_alloc_failed();
    }
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        const gn_layer *layer = &net->w.layers[i];
        const gn_rope *rope = hp->windowed[i] ? &net->rope_local : &net->rope;
        for (size_t j = 0; layer->k_bias != NULL && layer->k_norm == NULL && j < n_kv; j++) {
            bool slow = is_slow(net, rope, j % hp->head_dim);
            net->key_offsets[i * n_kv + j] = slow ? layer->k_bias[j] : 0.0f;
        }
    }
    return GN_OK;
}

static void subtract(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] -= y[i];
    }
}

static void put_f32(const float *x, size_t d, size_t step, float *to)
{
    for (size_t j = 0; j < d; j++) {
        to[j * step] = x[j];
    }
}

static void put_f16(const uint16_t *x, size_t d, size_t step, uint16_t *to)
{
    for (size_t j = 0; j < d; j++) {
        to[j * step] = x[j];
    }
}

/* One head's row into its block; `half` has room for d elements. */
static void put(const gn_net *net, const float *x, size_t t, uint32_t value, uint16_t *half,
                void *block)
{
    size_t d = net->d_kv;
    size_t first = value != 0 ? t * d : t;
    size_t step = value != 0 ? 1 : TOK;
    switch (net->kv_type) {
    case GN_KV_F32: put_f32(x, d, step, (float *)block + first); break;
    case GN_KV_F16:
        net->k->f32_to_f16(x, d, half);
        put_f16(half, d, step, (uint16_t *)block + first);
        break;
    case GN_KV_Q4:
        if (value != 0) {
            put_q4(x, d, t, block);
        } else {
            put_8bit(GN_KV_Q8, x, d, t, 0, block);
        }
        break;
    case GN_KV_Q8:
    case GN_KV_FP8: put_8bit(net->kv_type, x, d, t, value, block); break;
    }
}

void gn_net_store(const gn_net *net, const gn_row *row, uint32_t layer, uint32_t value,
                  const float *x, int worker)
{
    size_t d = net->hp.head_dim;
    float *head = net->attn[worker].head;
    uint32_t page = row->table->pages[row->pos / GN_KV_PAGE_TOK];
    for (uint32_t h = 0; h < net->hp.n_head_kv; h++) {
        memcpy(head, x + h * d, d * sizeof *x);
        memset(head + d, 0, (net->d_kv - d) * sizeof *x);
        if (value == 0 && net->key_offsets != NULL) {
            subtract(head, net->key_offsets + ((size_t)layer * net->hp.n_head_kv + h) * d, d);
        }
        if (net->rotated) {
            gn_net_rotate_head(head, d);
        }
        put(net, head, row->pos % GN_KV_PAGE_TOK, value, net->attn[worker].half,
            gn_kv_block(row->table->pool, page, layer, value, h));
    }
}
