/* BERT encoders, all-MiniLM among them. */
#include "base/alloc.h"
#include "model/encoder.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_CTX    8192u
#define QUERY_ROWS 16u /* query rows that share a pass over the keys of a head */

const gn_arch gn_arch_bert = {.gguf = "bert", .hf = "bert", .encoder = true};

typedef struct bert_layer {
    gn_view q, k, v, o, up, down;
    const float *q_bias, *k_bias, *v_bias, *o_bias, *up_bias, *down_bias;
    const float *attn_norm, *attn_norm_bias, *out_norm, *out_norm_bias;
} bert_layer;

struct gn_encoder {
    const gn_source *source;
    gn_hparams hp;
    gn_arena arena;
    gn_view token_embd, pos_embd;
    const float *type_embd; /* [n_embd], of token type 0 */
    const float *embd_norm, *embd_norm_bias;
    bert_layer *layers;
    gn_compute *compute;
    const gn_kernels *k;
    gn_os_pool *pool;
    int n_workers;
    float **scores;             /* per worker [QUERY_ROWS, n_ctx] */
    float *q, *kk, *vv, *a, *y; /* [n_ctx, n_embd] */
    float *ff;                  /* [n_ctx, n_ff] */
    /* Of one forward pass: */
    float *x; /* [n, n_embd] */
    size_t n;
};

static gn_status read_hparams(gn_encoder *e)
{
    gn_hparams *hp = &e->hp;
    gn_meta m;
    GN_TRY(gn_meta_init(&m, e->source));
    const gn_arch *arch = NULL;
    GN_TRY(gn_arch_find(&m, &arch));
    GN_REQUIRE(arch->encoder, GN_E_UNSUPPORTED, "architecture \"%s\" is no encoder", m.arch);
    GN_TRY(gn_arch_expect_act(&m, "gelu"));
    GN_TRY(gn_meta_need_u32(&m, "embedding_length", "hidden_size", 1, 1u << 16, &hp->n_embd));
    GN_TRY(
        gn_meta_need_u32(&m, "block_count", "num_hidden_layers", 1, GN_MAX_LAYERS, &hp->n_layer));
    GN_TRY(
        gn_meta_need_u32(&m, "attention.head_count", "num_attention_heads", 1, 1024, &hp->n_head));
    GN_TRY(
        gn_meta_need_u32(&m, "feed_forward_length", "intermediate_size", 1, 1u << 18, &hp->n_ff));
    GN_TRY(
        gn_meta_need_u32(&m, "context_length", "max_position_embeddings", 1, MAX_CTX, &hp->n_ctx));
    GN_TRY(gn_meta_f32(&m, "attention.layer_norm_epsilon", "layer_norm_eps", 1e-12f, &hp->norm_eps,
                       NULL));
    GN_REQUIRE(hp->n_embd % hp->n_head == 0, GN_E_FORMAT,
               "heads: found %u for an embedding of %u, expected a divisor", hp->n_head,
               hp->n_embd);
    hp->head_dim = hp->n_embd / hp->n_head;
    hp->n_head_kv = hp->n_head;
    hp->attn_scale = 1.0f / sqrtf((float)hp->head_dim);
    return GN_OK;
}

/* Both names of a role; the form of the source picks one. */
static const char *name(const gn_encoder *e, const char *gguf, const char *hf)
{
    return gn_source_get_kind(e->source) == GN_SOURCE_GGUF ? gguf : hf;
}

static gn_status vec(gn_encoder *e, const char *gguf, const char *hf, uint32_t layer, uint64_t n,
                     const float **out)
{
    return gn_weights_vector(&e->arena, e->source, name(e, gguf, hf), layer, n, true, out);
}

static gn_status mat(const gn_encoder *e, const char *gguf, const char *hf, uint32_t layer,
                     uint64_t rows, uint64_t cols, gn_view *out)
{
    return gn_weights_matrix(e->source, name(e, gguf, hf), layer, rows, cols, out);
}

#define HF_LAYER "encoder.layer.%u."

static gn_status bind_layer(gn_encoder *e, uint32_t i, bert_layer *l)
{
    uint64_t d = e->hp.n_embd;
    uint64_t f = e->hp.n_ff;
    GN_TRY(mat(e, "blk.%u.attn_q.weight", HF_LAYER "attention.self.query.weight", i, d, d, &l->q));
    GN_TRY(mat(e, "blk.%u.attn_k.weight", HF_LAYER "attention.self.key.weight", i, d, d, &l->k));
    GN_TRY(mat(e, "blk.%u.attn_v.weight", HF_LAYER "attention.self.value.weight", i, d, d, &l->v));
    GN_TRY(mat(e, "blk.%u.attn_output.weight", HF_LAYER "attention.output.dense.weight", i, d, d,
               &l->o));
    GN_TRY(mat(e, "blk.%u.ffn_up.weight", HF_LAYER "intermediate.dense.weight", i, f, d, &l->up));
    GN_TRY(mat(e, "blk.%u.ffn_down.weight", HF_LAYER "output.dense.weight", i, d, f, &l->down));
    GN_TRY(vec(e, "blk.%u.attn_q.bias", HF_LAYER "attention.self.query.bias", i, d, &l->q_bias));
    GN_TRY(vec(e, "blk.%u.attn_k.bias", HF_LAYER "attention.self.key.bias", i, d, &l->k_bias));
    GN_TRY(vec(e, "blk.%u.attn_v.bias", HF_LAYER "attention.self.value.bias", i, d, &l->v_bias));
    GN_TRY(vec(e, "blk.%u.attn_output.bias", HF_LAYER "attention.output.dense.bias", i, d,
               &l->o_bias));
    GN_TRY(vec(e, "blk.%u.ffn_up.bias", HF_LAYER "intermediate.dense.bias", i, f, &l->up_bias));
    GN_TRY(vec(e, "blk.%u.ffn_down.bias", HF_LAYER "output.dense.bias", i, d, &l->down_bias));
    GN_TRY(vec(e, "blk.%u.attn_output_norm.weight", HF_LAYER "attention.output.LayerNorm.weight", i,
               d, &l->attn_norm));
    GN_TRY(vec(e, "blk.%u.attn_output_norm.bias", HF_LAYER "attention.output.LayerNorm.bias", i, d,
               &l->attn_norm_bias));
    GN_TRY(vec(e, "blk.%u.layer_output_norm.weight", HF_LAYER "output.LayerNorm.weight", i, d,
               &l->out_norm));
    return vec(e, "blk.%u.layer_output_norm.bias", HF_LAYER "output.LayerNorm.bias", i, d,
               &l->out_norm_bias);
}

/* Row 0 of the token-type embedding, a small matrix whose number of rows differs. */
static gn_status bind_token_type(gn_encoder *e)
{
    const char *key = name(e, "token_types.weight", "embeddings.token_type_embeddings.weight");
    const gn_view *view = gn_source_find(e->source, key);
    GN_REQUIRE(view != NULL && view->shape[view->n_dims - 1] == e->hp.n_embd &&
                   gn_compute_supports(view->dtype),
               GN_E_FORMAT, "tensor \"%s\" is missing or not %u wide", key, e->hp.n_embd);
    float *row = gn_arena_calloc(&e->arena, e->hp.n_embd, sizeof *row);
    if (row == NULL) {
        return gn_alloc_failed();
    }
    gn_compute_dequant(view, 0, row);
    e->type_embd = row;
    return GN_OK;
}

static gn_status bind(gn_encoder *e)
{
    gn_hparams *hp = &e->hp;
    const char *embd = name(e, "token_embd.weight", "embeddings.word_embeddings.weight");
    const gn_view *view = gn_source_find(e->source, embd);
    GN_REQUIRE(view != NULL && view->shape[0] <= (1u << 24), GN_E_FORMAT,
               "tensor \"%s\" is missing or too large", embd);
    hp->n_vocab = (uint32_t)view->shape[0];
    GN_TRY(gn_weights_matrix(e->source, embd, 0, hp->n_vocab, hp->n_embd, &e->token_embd));
    GN_TRY(mat(e, "position_embd.weight", "embeddings.position_embeddings.weight", 0, hp->n_ctx,
               hp->n_embd, &e->pos_embd));
    GN_TRY(bind_token_type(e));
    GN_TRY(vec(e, "token_embd_norm.weight", "embeddings.LayerNorm.weight", 0, hp->n_embd,
               &e->embd_norm));
    GN_TRY(vec(e, "token_embd_norm.bias", "embeddings.LayerNorm.bias", 0, hp->n_embd,
               &e->embd_norm_bias));
    e->layers = gn_arena_calloc(&e->arena, hp->n_layer, sizeof *e->layers);
    if (e->layers == NULL) {
        return gn_alloc_failed();
    }
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        GN_TRY(bind_layer(e, i, &e->layers[i]));
    }
    return GN_OK;
}

static gn_status init_buffers(gn_encoder *e, bool exact)
{
    const gn_hparams *hp = &e->hp;
    float **const buffers[] = {&e->q, &e->kk, &e->vv, &e->a, &e->y};
    for (size_t i = 0; i < GN_COUNTOF(buffers); i++) {
        *buffers[i] = gn_alloc_aligned(hp->n_ctx, hp->n_embd * sizeof(float));
        if (*buffers[i] == NULL) {
            return gn_alloc_failed();
        }
    }
    e->ff = gn_alloc_aligned(hp->n_ctx, hp->n_ff * sizeof(float));
    e->scores = gn_calloc((size_t)e->n_workers, sizeof *e->scores);
    if (e->ff == NULL || e->scores == NULL) {
        return gn_alloc_failed();
    }
    for (int i = 0; i < e->n_workers; i++) {
        e->scores[i] = gn_alloc_aligned(hp->n_ctx, QUERY_ROWS * sizeof(float));
        if (e->scores[i] == NULL) {
            return gn_alloc_failed();
        }
    }
    size_t max_k = hp->n_ff > hp->n_embd ? hp->n_ff : hp->n_embd;
    return gn_compute_create(e->pool, max_k, hp->n_ctx, exact, &e->compute);
}

gn_status gn_encoder_create(const gn_source *source, gn_os_pool *pool, bool exact, gn_encoder **out)
{
    gn_encoder *e = gn_calloc(1, sizeof *e);
    if (e == NULL) {
        return gn_alloc_failed();
    }
    *e = (gn_encoder){.source = source,
                      .pool = pool,
                      .n_workers = gn_os_pool_threads(pool),
                      .k = gn_kernels_get()};
    gn_status status = read_hparams(e);
    status = status == GN_OK ? bind(e) : status;
    status = status == GN_OK ? init_buffers(e, exact) : status;
    if (status != GN_OK) {
        gn_encoder_destroy(e);
        return status;
    }
    *out = e;
    return GN_OK;
}

void gn_encoder_destroy(gn_encoder *e)
{
    if (e == NULL) {
        return;
    }
    gn_compute_destroy(e->compute);
    for (int i = 0; e->scores != NULL && i < e->n_workers; i++) {
        gn_free_aligned(e->scores[i]);
    }
    gn_free(e->scores);
    gn_free_aligned(e->q);
    gn_free_aligned(e->kk);
    gn_free_aligned(e->vv);
    gn_free_aligned(e->a);
    gn_free_aligned(e->y);
    gn_free_aligned(e->ff);
    gn_arena_fini(&e->arena);
    gn_free(e);
}

const gn_hparams *gn_encoder_hparams(const gn_encoder *encoder)
{
    return &encoder->hp;
}

static void embed(gn_encoder *e, const int32_t *ids)
{
    size_t d = e->hp.n_embd;
    for (size_t i = 0; i < e->n; i++) {
        float *x = e->x + i * d;
        gn_compute_dequant(&e->token_embd, (size_t)ids[i], x);
        e->k->add(x, e->type_embd, d);
        gn_compute_dequant(&e->pos_embd, i, e->y);
        e->k->add(x, e->y, d);
        e->k->layernorm(x, d, e->hp.norm_eps, e->embd_norm, e->embd_norm_bias, x);
    }
}

/* Items are pairs (block of query rows, head), the head running fastest. */
static void attend(void *ctx, size_t begin, size_t end, int worker)
{
    gn_encoder *e = ctx;
    size_t d = e->hp.head_dim;
    size_t width = e->hp.n_embd;
    float *scores = e->scores[worker];
    for (size_t item = begin; item < end; item++) {
        size_t row = item / e->hp.n_head * QUERY_ROWS;
        size_t offset = item % e->hp.n_head * d;
        size_t rows = e->n - row < QUERY_ROWS ? e->n - row : QUERY_ROWS;
        float *out = e->a + row * width + offset;
        e->k->attn_scores_f32(rows, e->q + row * width + offset, width, d, e->kk + offset, width,
                              e->n, e->hp.attn_scale, scores, e->n);
        float sum[QUERY_ROWS];
        for (size_t i = 0; i < rows; i++) {
            float max;
            e->k->max(scores + i * e->n, e->n, &max);
            e->k->exp_sum(scores + i * e->n, e->n, max, &sum[i]);
            memset(out + i * width, 0, d * sizeof(float));
        }
        e->k->attn_accum_f32(rows, scores, e->n, e->vv + offset, width, e->n, d, out, width);
        for (size_t i = 0; i < rows; i++) {
            e->k->scale(out + i * width, d, 1.0f / sum[i]);
        }
    }
}

static void add_bias(const gn_encoder *e, float *y, const float *bias, size_t n)
{
    for (size_t i = 0; i < e->n; i++) {
        e->k->add(y + i * n, bias, n);
    }
}

/* x = layernorm(x + y + bias) */
static void add_norm(gn_encoder *e, const float *bias, const float *w, const float *b)
{
    size_t d = e->hp.n_embd;
    add_bias(e, e->y, bias, d);
    e->k->add(e->x, e->y, e->n * d);
    for (size_t i = 0; i < e->n; i++) {
        e->k->layernorm(e->x + i * d, d, e->hp.norm_eps, w, b, e->x + i * d);
    }
}

static void run_layer(gn_encoder *e, const bert_layer *l)
{
    size_t d = e->hp.n_embd;
    size_t f = e->hp.n_ff;
    gn_acts acts = {.x = e->x, .ldx = d, .m = e->n, .k = d};
    const gn_matmul qkv[] = {{&l->q, e->q, d}, {&l->k, e->kk, d}, {&l->v, e->vv, d}};
    gn_compute_matmul(e->compute, &acts, qkv, 3);
    add_bias(e, e->q, l->q_bias, d);
    add_bias(e, e->kk, l->k_bias, d);
    add_bias(e, e->vv, l->v_bias, d);
    gn_os_pool_run(e->pool, (e->n + QUERY_ROWS - 1) / QUERY_ROWS * e->hp.n_head, 1, attend, e);
    acts.x = e->a;
    const gn_matmul o = {&l->o, e->y, d};
    gn_compute_matmul(e->compute, &acts, &o, 1);
    add_norm(e, l->o_bias, l->attn_norm, l->attn_norm_bias);
    acts.x = e->x;
    const gn_matmul up = {&l->up, e->ff, f};
    gn_compute_matmul(e->compute, &acts, &up, 1);
    add_bias(e, e->ff, l->up_bias, f);
    e->k->gelu_erf(e->ff, e->n * f, e->ff);
    acts = (gn_acts){.x = e->ff, .ldx = f, .m = e->n, .k = f};
    const gn_matmul down = {&l->down, e->y, d};
    gn_compute_matmul(e->compute, &acts, &down, 1);
    add_norm(e, l->down_bias, l->out_norm, l->out_norm_bias);
}

void gn_encoder_forward(gn_encoder *e, const int32_t *ids, size_t n, float *hidden)
{
    assert(n >= 1 && n <= e->hp.n_ctx);
    e->x = hidden;
    e->n = n;
    embed(e, ids);
    for (uint32_t i = 0; i < e->hp.n_layer; i++) {
        run_layer(e, &e->layers[i]);
    }
    e->x = NULL;
}
