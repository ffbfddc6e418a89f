/* The checked step from views to kernels. A weight's rows are taken 16 at a time and in pieces of PIECE
 * elements: unpacked to the panel form in the worker's scratch memory (which stays in its L1 cache) and
 * multiplied with all activation rows. Where the view has packed panels, few rows are multiplied straight
 * from them; the bits are the same. */
#include "tensor/compute.h"

#include "base/alloc.h"
#include "tensor/acts.h"
#include "tensor/panels.h"

#include <assert.h>
#include <string.h>

#define PANEL_ROWS      16u
#define F32_ROWS        16u           /* rows de-quantized at a time on the f32 path */
#define PIECE           GN_ACTS_PIECE /* elements of a row unpacked at a time, a multiple of all blocks */
#define F16_ROWS        4u /* activation rows multiplied with rows of halves as they are */
#define PACKED_ROWS     GN_ACTS_FEW_ROWS /* planes multiplied straight from a packed panel */
#define HANDED_OVER     64u              /* planes whose results go to y together */
#define CHUNKS_A_WORKER 8u               /* chunks of a parallel loop per worker, for balance, */
#define CHUNK_BYTES     65536u           /* and about the most bytes of weights in one */

typedef void panel_fn(const void *rows, size_t row_bytes, size_t n_rows, size_t k,
                      const void *ahead, uint8_t *q, float *scale, float *min);
typedef void dequant_fn(const void *row, size_t k, float *out);

/* What a computed type needs. panel is NULL for float types, which have no packed form either. */
typedef struct type_ops {
    dequant_fn *dequant;
    panel_fn *panel;
    gn_packed_type packed;
    int group;
    int zero;
    bool has_min;
} type_ops;

typedef struct scratch {
    uint8_t *q;   /* [PIECE / 4][16][4] */
    float *scale; /* [PIECE / 16][16] */
    float *min;   /* [PIECE / 16][16] */
    float *tile;  /* [2 max_m][16], a row for each plane */
    float *rows;  /* [F32_ROWS][max_k], also a residual row */
} scratch;

struct gn_compute {
    gn_os_pool *pool;
    const gn_kernels *kernels;
    bool exact;
    size_t max_k;
    size_t max_m;
    int n_workers;
    scratch *scratch; /* [n_workers] */
    gn_q8_acts q8;    /* the quantized form of the current activations */
};

/* All zero where the type is not computed. */
static type_ops find_ops(const gn_kernels *k, gn_dtype dtype)
{
    switch (dtype) {
#define FLOAT_TYPE(NAME, name)                                                                     \
    case GN_DTYPE_##NAME:                                                                          \
        return (type_ops){.dequant = k->dequant_##name};
#define QUANT_TYPE(NAME, name, g, z, m)                                                            \
    case GN_DTYPE_##NAME:                                                                          \
        return (type_ops){k->dequant_##name, k->panel_##name, GN_PACKED_##name, g, z, m};
        FLOAT_TYPE(F32, f32)
        FLOAT_TYPE(F16, f16)
        FLOAT_TYPE(BF16, bf16)
        QUANT_TYPE(Q4_0, q4_0, 32, 8, false)
        QUANT_TYPE(Q4_1, q4_1, 32, 0, true)
        QUANT_TYPE(Q5_0, q5_0, 32, 16, false)
        QUANT_TYPE(Q5_1, q5_1, 32, 0, true)
        QUANT_TYPE(Q8_0, q8_0, 32, 128, false)
        QUANT_TYPE(Q2_K, q2_k, 16, 0, true)
        QUANT_TYPE(Q3_K, q3_k, 16, 4, false)
        QUANT_TYPE(Q4_K, q4_k, 32, 0, true)
        QUANT_TYPE(Q5_K, q5_k, 32, 0, true)
        QUANT_TYPE(Q6_K, q6_k, 16, 32, false)
        QUANT_TYPE(IQ4_NL, iq4_nl, 32, 128, false)
        QUANT_TYPE(IQ4_XS, iq4_xs, 32, 128, false)
        QUANT_TYPE(MXFP4, mxfp4, 32, 128, false)
#undef FLOAT_TYPE
#undef QUANT_TYPE
    default: return (type_ops){0};
    }
}

bool gn_compute_supports(gn_dtype dtype)
{
    return find_ops(gn_kernels_get(), dtype).dequant != NULL;
}

static void scratch_fini(scratch *s)
{
    gn_free_aligned(s->q);
    gn_free_aligned(s->scale);
    gn_free_aligned(s->min);
    gn_free_aligned(s->tile);
    gn_free_aligned(s->rows);
}

static gn_status scratch_init(scratch *s, size_t max_k, size_t max_m)
{
    s->q = gn_alloc_aligned(PIECE, PANEL_ROWS);
    s->scale = gn_alloc_aligned(PIECE, sizeof *s->scale);
    s->min = gn_alloc_aligned(PIECE, sizeof *s->min);
    s->tile = gn_alloc_aligned(2 * max_m, PANEL_ROWS * sizeof *s->tile);
    s->rows = gn_alloc_aligned(max_k, F32_ROWS * sizeof *s->rows);
    if (s->q == NULL || s->scale == NULL || s->min == NULL || s->tile == NULL || s->rows == NULL) {
        return gn_alloc_failed();
    }
    return GN_OK;
}

gn_status gn_compute_create(gn_os_pool *pool, size_t max_k, size_t max_m, bool exact,
                            gn_compute **out)
{
    assert(max_k >= 1 && max_m >= 1);
    gn_compute *c = gn_calloc(1, sizeof *c);
    if (c == NULL) {
        return gn_alloc_failed();
    }
    *c = (gn_compute){.pool = pool,
                      .kernels = gn_kernels_get(),
                      .exact = exact,
                      .max_k = (max_k + 63) / 64 * 64,
                      .max_m = max_m,
                      .n_workers = gn_os_pool_threads(pool)};
    c->scratch = gn_calloc((size_t)c->n_workers, sizeof *c->scratch);
    bool ok = c->scratch != NULL && (exact || gn_q8_acts_init(&c->q8, max_m, max_k) == GN_OK);
    for (int i = 0; ok && i < c->n_workers; i++) {
        ok = scratch_init(&c->scratch[i], c->max_k, max_m) == GN_OK;
    }
    if (!ok) {
        gn_compute_destroy(c);
        return gn_alloc_failed();
    }
    *out = c;
    return GN_OK;
}

void gn_compute_destroy(gn_compute *c)
{
    if (c == NULL) {
        return;
    }
    for (int i = 0; c->scratch != NULL && i < c->n_workers; i++) {
        scratch_fini(&c->scratch[i]);
    }
    gn_free(c->scratch);
    gn_q8_acts_fini(&c->q8);
    gn_free(c);
}

gn_os_pool *gn_compute_pool(const gn_compute *compute)
{
    return compute->pool;
}

const gn_kernels *gn_compute_kernels(const gn_compute *compute)
{
    return compute->kernels;
}

bool gn_compute_is_exact(const gn_compute *compute)
{
    return compute->exact;
}

/* --- quantizing activations --- */

typedef struct quantize_job {
    gn_compute *c;
    const gn_acts *acts;
} quantize_job;

static void quantize_rows(void *ctx, size_t begin, size_t end, int worker)
{
    quantize_job *job = ctx;
    gn_compute *c = job->c;
    for (size_t i = begin; i < end; i++) {
        gn_q8_acts_put(&c->q8, c->kernels, i, job->acts->x + i * job->acts->ldx,
                       job->acts->two_planes, c->scratch[worker].rows);
    }
}

static void quantize(gn_compute *c, const gn_acts *acts)
{
    gn_q8_acts_begin(&c->q8, acts->m, acts->k);
    quantize_job job = {c, acts};
    gn_os_pool_run(c->pool, acts->m, 4, quantize_rows, &job);
}

/* --- products --- */

typedef struct product {
    type_ops ops;
    const gn_view *w;
    float *y;
    size_t ldy;
    size_t n_out;
    size_t first_panel; /* of this product in the loop over all */
    size_t piece_bytes; /* of PIECE elements of a row */
    size_t panel_bytes; /* of a packed panel */
    bool int8;
} product;

#define MAX_PRODUCTS 8

typedef struct matmul_job {
    gn_compute *c;
    const gn_acts *acts;
    size_t n;
    product products[MAX_PRODUCTS];
} matmul_job;

static const uint8_t *row_at(const gn_view *w, size_t row)
{
    return (const uint8_t *)w->data + row * w->row_bytes;
}

/* One product of all planes with the 16 weight rows from `row` on, n_rows of which exist. */
typedef struct strip {
    const gn_compute *c;
    const product *p;
    size_t m;        /* rows of activations */
    size_t n_planes; /* with the second planes */
    size_t k;
    size_t row;
    size_t n_rows;
    scratch *s;
} strip;

/* Results of planes [first, end) from the tile to y, a row's second plane added to its first. */
static void hand_over(const strip *t, size_t first, size_t end)
{
    float *y = t->p->y + t->row;
    const float *tile = t->s->tile;
    for (size_t i = first; i < end && i < t->m; i++) {
        memcpy(y + i * t->p->ldy, tile + i * PANEL_ROWS, t->n_rows * sizeof(float));
    }
    for (size_t i = first < t->m ? t->m : first; i < end; i++) {
        float *sum = y + t->c->q8.second_of[i - t->m] * t->p->ldy;
        for (size_t r = 0; r < t->n_rows; r++) {
            sum[r] += tile[i * PANEL_ROWS + r];
        }
    }
}

/* All planes with elements [first, first + n) of the panel, which lie unpacked in the scratch memory. The
 * last piece goes by blocks of planes: their lines of y, which are far apart, are asked for while the block
 * is computed, and take its results from the first-level cache. */
static void multiply_piece(const strip *t, size_t first, size_t n)
{
    const type_ops *ops = &t->p->ops;
    const scratch *s = t->s;
    gn_k_dot_panel_fn *dot =
        ops->group == 32 ? t->c->kernels->dot_panel_g32 : t->c->kernels->dot_panel_g16;
    const bool last = first + n == t->k;
    const size_t step = last ? HANDED_OVER : t->n_planes;
    for (size_t i = 0; i < t->n_planes; i += step) {
        size_t m = t->n_planes - i < step ? t->n_planes - i : step;
        for (size_t j = i; last && j < i + m && j < t->m; j++) {
            GN_WILL_WRITE(t->p->y + j * t->p->ldy + t->row);
        }
        gn_q8_part part = gn_q8_acts_part(&t->c->q8, i, first);
        dot(n, s->q, s->scale, ops->has_min ? s->min : NULL, ops->zero, m, part.q, part.ld,
            part.scale, part.sum, s->tile + i * PANEL_ROWS, PANEL_ROWS, first != 0);
        if (last) {
            hand_over(t, i, i + m);
        }
    }
}

/* The panel's rows come from the file's blocks. */
static void multiply_blocks(const strip *t)
{
    const product *p = t->p;
    const scratch *s = t->s;
    const uint8_t *rows = row_at(p->w, t->row);
    const uint8_t *ahead = rows; /* the same piece of the next panel, its bytes taken in order */
    if (t->row + 2 * PANEL_ROWS <= p->n_out) {
        ahead = row_at(p->w, t->row + PANEL_ROWS);
    }
    for (size_t first = 0; first < t->k; first += PIECE) {
        size_t n = t->k - first < PIECE ? t->k - first : PIECE;
        p->ops.panel(rows, p->w->row_bytes, t->n_rows, n, ahead, s->q, s->scale, s->min);
        multiply_piece(t, first, n);
        rows += p->piece_bytes;
        ahead += PANEL_ROWS * p->piece_bytes;
    }
}

/* The panel is packed: few planes are multiplied straight from it, many by way of the unpacked form, which
 * then pays. */
static void multiply_packed(const strip *t)
{
    const type_ops *ops = &t->p->ops;
    const scratch *s = t->s;
    const gn_kernels *kernels = t->c->kernels;
    const uint8_t *panel =
        (const uint8_t *)t->p->w->panels + t->row / PANEL_ROWS * t->p->panel_bytes;
    if (t->n_planes <= PACKED_ROWS) {
        gn_q8_part part = gn_q8_acts_part(&t->c->q8, 0, 0);
        kernels->dot_packed(ops->packed, t->k, panel, t->n_planes, part.q, part.ld, part.scale,
                            part.sum, s->tile, PANEL_ROWS);
        hand_over(t, 0, t->n_planes);
        return;
    }
    for (size_t first = 0; first < t->k; first += PIECE) {
        size_t n = t->k - first < PIECE ? t->k - first : PIECE;
        kernels->unpack_packed(ops->packed, n, panel + gn_packed_bytes(ops->packed, first), s->q,
                               s->scale, s->min);
        multiply_piece(t, first, n);
    }
}

/* Rows [row, row + n_rows) of one product, n_rows ≤ 16, on the integer path. */
static void run_panel(const gn_compute *c, const product *p, const gn_acts *acts, size_t row,
                      size_t n_rows, scratch *s)
{
    const strip t = {c, p, acts->m, gn_q8_acts_planes(&c->q8), acts->k, row, n_rows, s};
    if (p->panel_bytes != 0) {
        multiply_packed(&t);
    } else {
        multiply_blocks(&t);
    }
}

static void run_f32(const gn_compute *c, const product *p, const gn_acts *acts, size_t row,
                    size_t n_rows, scratch *s)
{
    if (p->w->dtype == GN_DTYPE_F16 && acts->m <= F16_ROWS &&
        (uintptr_t)p->w->data % sizeof(uint16_t) == 0) {
        /* The product converts what it loads, in the same order of sums. */
        c->kernels->attn_scores_f16(acts->m, acts->x, acts->ldx, acts->k, row_at(p->w, row),
                                    acts->k, n_rows, 1.0f, p->y + row, p->ldy);
        return;
    }
    for (size_t r = row; r < row + n_rows; r += F32_ROWS) {
        size_t n = row + n_rows - r < F32_ROWS ? row + n_rows - r : F32_ROWS;
        for (size_t i = 0; i < n; i++) {
            p->ops.dequant(row_at(p->w, r + i), acts->k, s->rows + i * acts->k);
        }
        c->kernels->matmul_f32(acts->k, s->rows, n, acts->k, acts->m, acts->x, acts->ldx, p->y + r,
                               p->ldy);
    }
}

static void run_products(void *ctx, size_t begin, size_t end, int worker)
{
    matmul_job *job = ctx;
    size_t which = 0;
    for (size_t panel = begin; panel < end; panel++) {
        while (which + 1 < job->n && panel >= job->products[which + 1].first_panel) {
            which++;
        }
        const product *p = &job->products[which];
        size_t row = (panel - p->first_panel) * PANEL_ROWS;
        size_t n_rows = p->n_out - row < PANEL_ROWS ? p->n_out - row : PANEL_ROWS;
        if (p->int8) {
            run_panel(job->c, p, job->acts, row, n_rows, &job->c->scratch[worker]);
        } else {
            run_f32(job->c, p, job->acts, row, n_rows, &job->c->scratch[worker]);
        }
    }
}

void gn_compute_matmul(gn_compute *c, const gn_acts *acts, const gn_matmul *jobs, size_t n_jobs)
{
    assert(n_jobs >= 1 && n_jobs <= MAX_PRODUCTS);
    matmul_job job = {.c = c, .acts = acts, .n = n_jobs};
    size_t n_panels = 0;
    size_t n_bytes = 0;
    bool any_int8 = false;
    for (size_t i = 0; i < n_jobs; i++) {
        product *p = &job.products[i];
        const gn_view *w = jobs[i].w;
        assert(w->n_dims == 2 && w->shape[1] == acts->k);
        *p = (product){.w = w,
                       .y = jobs[i].y,
                       .ldy = jobs[i].ldy,
                       .n_out = (size_t)w->shape[0],
                       .first_panel = n_panels};
        p->ops = find_ops(c->kernels, w->dtype);
        assert(p->ops.dequant != NULL);
        const gn_dtype_info *info = gn_dtype_find(w->dtype);
        p->piece_bytes = PIECE / info->block_len * info->block_bytes;
        p->panel_bytes = w->panels != NULL ? gn_panels_stride(w) : 0;
        p->int8 = p->ops.panel != NULL && !c->exact;
        any_int8 = any_int8 || p->int8;
        n_panels += (p->n_out + PANEL_ROWS - 1) / PANEL_ROWS;
        n_bytes += w->bytes;
    }
    if (any_int8) {
        quantize(c, acts);
    }
    size_t grain = n_panels / ((size_t)c->n_workers * CHUNKS_A_WORKER);
    size_t most = CHUNK_BYTES * n_panels / n_bytes;
    grain = grain < most ? grain : most;
    gn_os_pool_run(c->pool, n_panels, grain != 0 ? grain : 1, run_products, &job);
}

void gn_compute_dequant(const gn_view *w, size_t row, float *out)
{
    type_ops ops = find_ops(gn_kernels_get(), w->dtype);
    assert(ops.dequant != NULL && row < w->bytes / w->row_bytes);
    ops.dequant(row_at(w, row), (size_t)w->shape[w->n_dims - 1], out);
}
