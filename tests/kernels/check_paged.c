/* Checks of kernels/paged. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOK = GN_PAGED_TOK };

static const char *type_of(const kc_row *row)
{
    return strrchr(row->op, '_') + 1;
}

static bool is_type(const kc_row *row, const char *type)
{
    return strcmp(type_of(row), type) == 0;
}

static bool is_scores(const kc_row *row)
{
    return strncmp(row->op, "paged_scores", 12) == 0;
}

static size_t block_bytes(const kc_row *row, size_t d)
{
    if (is_type(row, "f32") || is_type(row, "f16")) {
        return d * TOK * (is_type(row, "f32") ? 4 : 2);
    }
    return is_type(row, "q4") ? d / 2 * TOK + d / 32 * TOK * 2 : d * TOK + TOK * 4;
}

/* Any codes; scales and floats of all kinds. */
static void fill_block(const kc_row *row, void *block, size_t d, bool special)
{
    unsigned char *bytes = block;
    size_t all = block_bytes(row, d);
    kc_fill_bytes(bytes, all);
    if (is_type(row, "f32")) {
        kc_fill_sparse(block, d * TOK, special);
    } else if (is_type(row, "f16")) {
        uint16_t *half = block;
        for (size_t i = 0; i < d * TOK; i++) {
            bool infinite = (half[i] & 0x7c00) == 0x7c00;
            half[i] = (uint16_t)(infinite && !special ? half[i] & 0xbfff : half[i]);
        }
    } else if (is_type(row, "q4")) {
        for (size_t i = d / 2 * TOK; i < all; i += 2) {
            float scale = kc_uniform();
            memcpy(bytes + i, (const char *)&scale + 2, 2);
        }
    } else {
        float scale[TOK];
        kc_fill_uniform(scale, TOK);
        if (special) {
            kc_fill_sparse(scale, TOK, true);
        }
        memcpy(bytes + d * TOK, scale, sizeof scale);
    }
}

typedef struct paged_case {
    size_t nq;
    size_t d;
    size_t begin, end; /* of sums */
    bool special;
} paged_case;

/* For scores: in = q [d, nq], out = s [nq, 64]. For sums: in = p [nq, 64], out = o [nq, d]. */
static void call(const kc_row *row, kc_fn *fn, const paged_case *c, const float *in, size_t ld_in,
                 const void *block, float *out, size_t ld_out)
{
    if (is_scores(row)) {
        ((gn_k_paged_scores_fn *)fn)(c->nq, in, ld_in, c->d, block, out, ld_out);
    } else {
        ((gn_k_paged_accum_fn *)fn)(c->nq, in, ld_in, block, c->begin, c->end, c->d, out, ld_out);
    }
}

static bool check_case(const kc_row *row, const paged_case *c)
{
    size_t in_row = is_scores(row) ? c->nq : TOK;
    size_t out_row = is_scores(row) ? TOK : c->d;
    size_t ld_in = in_row + kc_below(4);
    size_t ld_out = out_row + kc_below(4);
    size_t n_in = kc_strided(is_scores(row) ? c->d : c->nq, ld_in, in_row);
    size_t n_out = kc_strided(c->nq, ld_out, out_row);
    float *in = kc_alloc(n_in * sizeof *in);
    float *found = kc_alloc(n_out * sizeof *found);
    float *expected = kc_alloc(n_out * sizeof *expected);
    void *block = kc_alloc(block_bytes(row, c->d));
    fill_block(row, block, c->d, c->special);
    kc_fill_sparse(in, n_in, c->special);
    kc_fill_sparse(found, n_out, c->special);
    memcpy(expected, found, n_out * sizeof *found);
    call(row, row->fn, c, in, ld_in, block, found, ld_out);
    call(row, row->ref, c, in, ld_in, block, expected, ld_out);
    bool good =
        kc_same_f32(row, "out", found, expected, n_out) ||
        kc_differs(row, "with nq=%zu d=%zu tokens %zu to %zu", c->nq, c->d, c->begin, c->end);
    return kc_release(row) && good;
}

static bool check(const kc_row *row)
{
    static const size_t heads[] = {32, 64, 96, 128, 256, 160};
    bool good = true;
    for (size_t nq = 0; nq <= 20 && good; nq++) {
        for (size_t i = 0; i < GN_COUNTOF(heads) && good; i++) {
            size_t begin = i % 2 != 0 ? 0 : kc_below(TOK);
            size_t end = i % 2 != 0 ? TOK : begin + kc_below((uint32_t)(TOK - begin + 1));
            paged_case c = {nq, heads[i], begin, end, i == 0};
            good = check_case(row, &c);
        }
    }
    for (size_t d = 16; d <= 272 && !is_type(row, "q4") && good; d += 16) {
        paged_case c = {1 + kc_below(9), d, 0, TOK, d % 64 == 0};
        good = check_case(row, &c);
    }
    return good;
}

typedef struct bench_ctx {
    const kc_row *row;
    paged_case c;
    float *in;
    void *block;
    float *out;
} bench_ctx;

static void call_bench(void *ctx)
{
    bench_ctx *b = ctx;
    call(b->row, b->row->fn, &b->c, b->in, is_scores(b->row) ? b->c.nq : TOK, b->block, b->out,
         is_scores(b->row) ? TOK : b->c.d);
}

/* A page in cache: GB/s are those of the block, read once for all queries. */
static void bench(const kc_row *row)
{
    static const size_t heads[] = {64, 128};
    static const size_t n_queries[] = {1, 3, 4, 6, 7, 8, 42};
    for (size_t h = 0; h < GN_COUNTOF(heads); h++) {
        for (size_t i = 0; i < GN_COUNTOF(n_queries); i++) {
            bench_ctx b = {.row = row, .c = {n_queries[i], heads[h], 0, TOK, false}};
            b.in = kc_bench_floats(48 * 128);
            b.block = kc_bench_floats(TOK * 128);
            b.out = kc_bench_floats(48 * 128);
            fill_block(row, b.block, b.c.d, false);
            char label[32];
            (void)snprintf(label, sizeof label, "d=%zu nq=%zu", b.c.d, b.c.nq);
            kc_time(row, label, call_bench, &b, (double)block_bytes(row, b.c.d),
                    (double)(b.c.nq * TOK * b.c.d));
            free(b.in);
            free(b.block);
            free(b.out);
        }
    }
}

const kc_checker kc_paged_checkers[] = {
    {"paged_*", check, bench},
    {NULL, NULL, NULL},
};
