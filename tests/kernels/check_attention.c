/* Checks of kernels/attention. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_half(const kc_row *row)
{
    return strstr(row->op, "_f16") != NULL;
}

static bool is_scores(const kc_row *row)
{
    return strncmp(row->op, "attn_scores", 11) == 0;
}

/* KV rows of `count` elements: floats, or any halves. */
static void *kv_alloc(const kc_row *row, size_t count, bool special)
{
    if (!is_half(row)) {
        float *kv = kc_alloc(count * sizeof *kv);
        kc_fill_sparse(kv, count, special);
        return kv;
    }
    uint16_t *kv = kc_alloc(count * sizeof *kv);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = kc_u32();
        bool infinite = (bits & 0x7c00) == 0x7c00;
        kv[i] = (uint16_t)(infinite && !special ? bits & 0xbfff : bits);
    }
    return kv;
}

typedef struct attn_case {
    size_t nq;
    size_t d;
    size_t n;
    bool special;
} attn_case;

/* For scores: in = q [nq, d], out = s [nq, n]. For sums: in = p [nq, n], out = o [nq, d]. */
static void call_attn(const kc_row *row, kc_fn *fn, const attn_case *c, const float *in,
                      size_t ld_in, const void *kv, size_t ld_kv, float *out, size_t ld_out)
{
    if (is_scores(row)) {
        ((gn_k_attn_scores_fn *)fn)(c->nq, in, ld_in, c->d, kv, ld_kv, c->n, 0.125f, out, ld_out);
    } else {
        ((gn_k_attn_accum_fn *)fn)(c->nq, in, ld_in, kv, ld_kv, c->n, c->d, out, ld_out);
    }
}

static bool check_case(const kc_row *row, const attn_case *c)
{
    size_t in_row = is_scores(row) ? c->d : c->n;
    size_t out_row = is_scores(row) ? c->n : c->d;
    size_t ld_in = in_row + kc_below(4);
    size_t ld_out = out_row + kc_below(4);
    size_t ld_kv = c->d + kc_below(4);
    size_t n_in = kc_strided(c->nq, ld_in, in_row);
    size_t n_out = kc_strided(c->nq, ld_out, out_row);
    float *in = kc_alloc(n_in * sizeof *in);
    float *found = kc_alloc(n_out * sizeof *found);
    float *expected = kc_alloc(n_out * sizeof *expected);
    void *kv = kv_alloc(row, kc_strided(c->n, ld_kv, c->d), c->special);
    kc_fill_sparse(in, n_in, c->special);
    kc_fill_sparse(found, n_out, c->special);
    memcpy(expected, found, n_out * sizeof *found);
    call_attn(row, row->fn, c, in, ld_in, kv, ld_kv, found, ld_out);
    call_attn(row, row->ref, c, in, ld_in, kv, ld_kv, expected, ld_out);
    bool good = kc_same_f32(row, "out", found, expected, n_out) ||
                kc_differs(row, "with nq=%zu d=%zu n=%zu", c->nq, c->d, c->n);
    return kc_release(row) && good;
}

static bool check(const kc_row *row)
{
    static const size_t heads[] = {64, 80, 96, 128, 256};
    bool good = true;
    for (size_t nq = 0; nq <= 18 && good; nq++) {
        for (size_t i = 0; i < GN_COUNTOF(heads) && good; i++) {
            attn_case c = {nq, heads[i], kc_below(70), i == 0};
            good = check_case(row, &c);
        }
    }
    for (size_t d = 0; d < 68 && good; d++) {
        attn_case c = {1 + kc_below(9), d, kc_below(40), d % 4 == 0};
        good = check_case(row, &c);
    }
    for (size_t n = 0; n < 68 && good; n++) {
        attn_case c = {1 + kc_below(9), 1 + kc_below(100), n, n % 4 == 0};
        good = check_case(row, &c);
    }
    return good;
}

typedef struct bench_ctx {
    const kc_row *row;
    attn_case c;
    float *in;
    void *kv;
    float *out;
} bench_ctx;

static void call_bench(void *ctx)
{
    bench_ctx *b = ctx;
    size_t d = b->c.d;
    call_attn(b->row, b->row->fn, &b->c, b->in, is_scores(b->row) ? d : b->c.n, b->kv, d, b->out,
              is_scores(b->row) ? b->c.n : d);
}

/* One page of 64 tokens, in cache: GB/s are those of KV rows, read once for all queries. */
static void bench(const kc_row *row)
{
    static const size_t heads[] = {64, 128};
    static const size_t n_queries[] = {1, 2, 3, 4, 6, 7, 8, 32};
    for (size_t h = 0; h < GN_COUNTOF(heads); h++) {
        for (size_t i = 0; i < GN_COUNTOF(n_queries); i++) {
            bench_ctx b = {.row = row, .c = {n_queries[i], heads[h], 64, false}};
            size_t rows = b.c.nq > b.c.n ? b.c.nq : b.c.n;
            b.in = kc_bench_floats(rows * 128);
            b.kv = kc_bench_floats(rows * 128);
            b.out = kc_bench_floats(rows * 128);
            memset(b.kv, 0x31, rows * 128 * sizeof(float));
            memset(b.out, 0, rows * 128 * sizeof(float));
            size_t kv_bytes = b.c.n * b.c.d * (is_half(row) ? sizeof(uint16_t) : sizeof(float));
            char label[32];
            (void)snprintf(label, sizeof label, "d=%zu n=64 nq=%zu", b.c.d, b.c.nq);
            kc_time(row, label, call_bench, &b, (double)kv_bytes, (double)(b.c.nq * b.c.n * b.c.d));
            free(b.in);
            free(b.kv);
            free(b.out);
        }
    }
}

const kc_checker kc_attention_checkers[] = {
    {"attn_scores_*", check, bench},
    {"attn_accum_*", check, bench},
    {NULL, NULL, NULL},
};
