/* Checks of kernels/packed: products straight from packed panels, and the way back to the panel form. */
#include "kerncheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct form {
    const char *name;
    gn_packed_type type;
    gn_packed_scales scales;
    size_t group;
    int zero;
    bool has_min;
} form;

static const form forms[] = {
#define FORM_ROW(type, codes, scales, group, zero, has_min)                                        \
    {#type, GN_PACKED_##type, GN_PACKED_##scales, group, zero, (has_min) != 0},
    GN_PACKED_LIST(FORM_ROW)
#undef FORM_ROW
};

/* Random bytes are a valid panel of every type; with `tame` their half-precision factors are small numbers,
 * else they run over all of half precision. */
static void fill_panel(uint8_t *panel, size_t bytes, bool tame)
{
    kc_fill_bytes(panel, bytes);
    for (size_t i = 1; i < bytes && tame; i += 2) {
        panel[i] &= 0xbf; /* no exponent beyond 15 */
    }
}

typedef struct panel_form {
    uint8_t *q;
    float *scale;
    float *min;
} panel_form;

static panel_form panel_alloc(const form *f, size_t k)
{
    panel_form p = {kc_alloc(k * 16), kc_alloc(k / f->group * 64), NULL};
    if (f->has_min) {
        p.min = kc_alloc(k / f->group * 64);
    }
    return p;
}

static bool check_unpack_case(const kc_row *row, const form *f, size_t k)
{
    const size_t bytes = gn_packed_bytes(f->type, k);
    const size_t n_scales = k / f->group * 16;
    uint8_t *panel = kc_alloc(bytes);
    fill_panel(panel, bytes, kc_below(2) != 0);
    panel_form found = panel_alloc(f, k);
    panel_form expected = panel_alloc(f, k);
    ((gn_k_unpack_packed_fn *)row->fn)(f->type, k, panel, found.q, found.scale, found.min);
    ((gn_k_unpack_packed_fn *)row->ref)(f->type, k, panel, expected.q, expected.scale,
                                        expected.min);
    bool good = (kc_same_bytes(row, "q", found.q, expected.q, k * 16) &&
                 kc_same_f32(row, "scale", found.scale, expected.scale, n_scales) &&
                 (!f->has_min || kc_same_f32(row, "min", found.min, expected.min, n_scales))) ||
                kc_differs(row, "with %s k=%zu", f->name, k);
    return kc_release(row) && good;
}

static bool check_unpack(const kc_row *row)
{
    bool good = true;
    for (size_t t = 0; t < GN_COUNTOF(forms) && good; t++) {
        for (size_t blocks = 0; blocks <= 25 && good; blocks++) {
            good = check_unpack_case(row, &forms[t], blocks * 32);
        }
    }
    return good;
}

typedef struct dot_case {
    size_t k;
    size_t m;
    size_t lda;
    bool extreme; /* only the largest codes and activations */
    bool special; /* infinities, NaNs and denormals among scales */
} dot_case;

typedef struct acts {
    int8_t *a;
    float *scale;
    int32_t *sum;
} acts;

static acts fill_acts(const dot_case *c, acts (*alloc)(size_t n))
{
    const size_t n = kc_strided(c->m, c->lda, c->k);
    acts x = alloc(n);
    for (size_t i = 0; i < n; i++) {
        x.a[i] = (int8_t)(c->extreme ? (i / 64 % 2 != 0 ? -127 : 127) : (int)kc_below(255) - 127);
    }
    for (size_t i = 0; i < n / 16; i++) {
        x.sum[i] = 0;
        for (size_t j = 0; j < 16; j++) {
            x.sum[i] += x.a[i * 16 + j];
        }
    }
    if (c->special) {
        kc_fill_special(x.scale, n / 32);
    } else {
        kc_fill_uniform(x.scale, n / 32);
    }
    return x;
}

static acts guarded_acts(size_t n)
{
    return (acts){kc_alloc(n), kc_alloc(n / 8), kc_alloc(n / 4)};
}

/* The contract in two steps: back to the panel form, and the product of that. */
static void dot_in_steps(const form *f, const dot_case *c, const uint8_t *panel, const acts *x,
                         float *y, size_t ldy)
{
    panel_form p = panel_alloc(f, c->k);
    gn_k_unpack_packed_ref(f->type, c->k, panel, p.q, p.scale, p.min);
    gn_k_dot_panel_fn *dot = f->group == 16 ? gn_k_dot_panel_g16_ref : gn_k_dot_panel_g32_ref;
    dot(c->k, p.q, p.scale, p.min, f->zero, c->m, x->a, c->lda, x->scale, x->sum, y, ldy, 0);
}

static bool check_dot_case(const kc_row *row, const form *f, const dot_case *c)
{
    const size_t bytes = gn_packed_bytes(f->type, c->k);
    const size_t ldy = 16 + kc_below(5);
    const size_t n_y = kc_strided(c->m, ldy, 16);
    uint8_t *panel = kc_alloc(bytes);
    if (c->extreme) { /* largest and smallest codes; heads of ordinary numbers */
        memset(panel, kc_below(2) != 0 ? 0xff : 0, bytes);
        for (size_t first = 0; first < c->k; first += GN_PACKED_CHUNK) {
            size_t left = c->k - first < GN_PACKED_CHUNK ? c->k - first : GN_PACKED_CHUNK;
            fill_panel(panel + gn_packed_bytes(f->type, first),
                       gn_packed_head_bytes(f->scales, f->group, left / GN_PACKED_BLOCK), true);
        }
    } else {
        fill_panel(panel, bytes, !c->special);
    }
    acts x = fill_acts(c, guarded_acts);
    float *found = kc_alloc(n_y * sizeof *found);
    float *expected = kc_alloc(n_y * sizeof *expected);
    float *steps = kc_alloc(n_y * sizeof *steps);
    gn_k_dot_packed_fn *fn = (gn_k_dot_packed_fn *)row->fn;
    gn_k_dot_packed_fn *ref = (gn_k_dot_packed_fn *)row->ref;
    fn(f->type, c->k, panel, c->m, x.a, c->lda, x.scale, x.sum, found, ldy);
    ref(f->type, c->k, panel, c->m, x.a, c->lda, x.scale, x.sum, expected, ldy);
    dot_in_steps(f, c, panel, &x, steps, ldy);
    bool good = (kc_same_f32(row, "y", found, expected, n_y) &&
                 kc_same_f32(row, "y in two steps", steps, expected, n_y)) ||
                kc_differs(row, "with %s k=%zu m=%zu lda=%zu ldy=%zu extreme=%d special=%d",
                           f->name, c->k, c->m, c->lda, ldy, c->extreme, c->special);
    return kc_release(row) && good;
}

static bool check_dot(const kc_row *row)
{
    bool good = true;
    for (size_t t = 0; t < GN_COUNTOF(forms) && good; t++) {
        for (size_t m = 0; m <= 19 && good; m++) {
            for (int shape = 0; shape < 4 && good; shape++) {
                dot_case c = {.k = 32 * (1 + kc_below(25)), .m = m};
                c.lda = c.k + 32 * kc_below(3);
                c.extreme = shape == 1;
                c.special = shape == 2;
                good = check_dot_case(row, &forms[t], &c);
            }
        }
    }
    return good;
}

const kc_checker kc_packed_checkers[] = {
    {"dot_packed", check_dot, NULL},
    {"unpack_packed", check_unpack, NULL},
    {NULL, NULL, NULL},
};
