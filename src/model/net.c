/* Life of a net: description, weights, RoPE tables, and all memory of the forward pass. */
#include "base/alloc.h"
#include "base/checked.h"
#include "model/net_impl.h"

#define ATTN_ROWS      48 /* query rows that share a read of a page: 8 tiles of the kernels */
#define SLOTS_A_WORKER 64 /* parts of decoding rows that wait for their merge */

static size_t max_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Lay the buffers out in one block; with memory NULL only the size is counted (in floats). */
static size_t lay_out(gn_net *net, float *memory)
{
    const gn_hparams *hp = &net->hp;
    size_t n_q = (size_t)hp->n_head * hp->head_dim;
    size_t n_kv = (size_t)hp->n_head_kv * hp->head_dim;
    size_t n_ff = max_of(hp->n_ff, hp->n_expert != 0 ? hp->n_ff_expert : 0);
    size_t half = hp->n_rot / 2;
    size_t moe = hp->n_expert != 0 ? hp->n_embd : 0;
    struct {
        float **buffer;
        size_t width;
    } parts[] = {
        {&net->x, hp->n_embd},   {&net->h, hp->n_embd},
        {&net->q, n_q},          {&net->kk, n_kv},
        {&net->vv, n_kv},        {&net->a, n_q},
        {&net->y, hp->n_embd},   {&net->gate, n_ff},
        {&net->up, n_ff},        {&net->cos, half},
        {&net->sin, half},       {&net->cos_local, half},
        {&net->sin_local, half}, {&net->router, hp->n_expert},
        {&net->xe, moe},         {&net->ye, moe},
    };
    size_t used = 0;
    for (size_t i = 0; i < GN_COUNTOF(parts); i++) {
        if (memory != NULL) {
            *parts[i].buffer = memory + used;
        }
        used += (GN_NET_MAX_ROWS * parts[i].width + 15) / 16 * 16;
    }
    return used;
}

/* Cut one worker's scratch out of its block; with memory NULL only the size is counted (in floats). */
static size_t lay_out_attention(const gn_net *net, gn_attn_scratch *s, float *memory)
{
    size_t nq = net->attn_rows;
    struct {
        float **buffer;
        size_t n;
    } parts[] = {
        {&s->q, net->d_kv * nq},
        {&s->scores, nq * GN_ATTN_SPLIT},
        {&s->out, nq * net->d_kv},
        {&s->part_out, nq * net->d_kv},
        {&s->max, nq},
        {&s->part_max, nq},
        {&s->sum, nq},
        {&s->part_sum, nq},
        {&s->head, net->d_kv},
    };
    size_t used = 0;
    for (size_t i = 0; i < GN_COUNTOF(parts); i++) {
        *parts[i].buffer = memory != NULL ? memory + used : NULL;
        used += (parts[i].n + 15) / 16 * 16;
    }
    return used;
}

static gn_status init_attention(gn_net *net)
{
    const gn_hparams *hp = &net->hp;
    size_t group = hp->n_head / hp->n_head_kv;
    gn_kv_shape shape = gn_net_kv_shape(net);
    net->d_kv = gn_kv_padded_dim(&shape);
    net->rotated = net->kv_type != GN_KV_F16 && net->kv_type != GN_KV_F32;
    GN_TRY(gn_net_init_key_offsets(net));
    net->attn_rows = max_of(ATTN_ROWS / group, 1) * group;
    net->n_attn_slots = (size_t)net->n_workers * SLOTS_A_WORKER;
    net->attn_slots = gn_alloc_aligned(net->n_attn_slots * group * (net->d_kv + 2), sizeof(float));
    net->blocks = gn_alloc_array(GN_NET_MAX_ROWS, sizeof *net->blocks);
    net->attn = gn_calloc((size_t)net->n_workers, sizeof *net->attn);
    net->parts_done = gn_calloc(net->n_attn_slots, sizeof *net->parts_done);
    if (net->attn_slots == NULL || net->parts_done == NULL || net->blocks == NULL ||
        net->attn == NULL) {
        return gn_alloc_failed();
    }
    for (int i = 0; i < net->n_workers; i++) {
        gn_attn_scratch *s = &net->attn[i];
        s->memory = gn_alloc_aligned(lay_out_attention(net, s, NULL), sizeof(float));
        s->half = gn_alloc_array(net->d_kv, sizeof *s->half);
        if (s->memory == NULL || s->half == NULL) {
            return gn_alloc_failed();
        }
        (void)lay_out_attention(net, s, s->memory);
    }
    return GN_OK;
}

static gn_status init_buffers(gn_net *net)
{
    const gn_hparams *hp = &net->hp;
    net->memory = gn_alloc_aligned(lay_out(net, NULL), sizeof(float));
    net->gathered = gn_alloc_array(GN_NET_MAX_ROWS, sizeof *net->gathered);
    net->gathered_w = gn_alloc_array(GN_NET_MAX_ROWS, sizeof *net->gathered_w);
    net->chosen =
        gn_alloc_array(GN_NET_MAX_ROWS, max_of(hp->n_expert_used, 1) * sizeof *net->chosen);
    if (net->memory == NULL || net->gathered == NULL || net->gathered_w == NULL ||
        net->chosen == NULL) {
        return gn_alloc_failed();
    }
    (void)lay_out(net, net->memory);
    GN_TRY(init_attention(net));
    size_t max_k = max_of(max_of(hp->n_embd, (size_t)hp->n_head * hp->head_dim),
                          max_of(hp->n_ff, hp->n_ff_expert));
    GN_TRY(gn_compute_create(net->pool, max_k, GN_NET_MAX_ROWS, net->exact, &net->compute));
    net->k = gn_compute_kernels(net->compute);
    return GN_OK;
}

static gn_status init(gn_net *net)
{
    gn_meta meta;
    GN_TRY(gn_meta_init(&meta, net->source));
    GN_TRY(gn_arch_find(&meta, &net->arch));
    GN_REQUIRE(!net->arch->encoder, GN_E_UNSUPPORTED,
               "architecture \"%s\" is an encoder: it makes embeddings and can't generate",
               meta.arch);
    GN_TRY(gn_hparams_read(&meta, &net->hp));
    GN_TRY(net->arch->adjust(&meta, &net->hp));
    GN_TRY(gn_hparams_check(&net->hp));
    GN_TRY(gn_weights_bind(&net->w, net->source, &net->hp, &net->arch->names));
    GN_TRY(gn_rope_init(&net->rope, &net->hp.rope, net->hp.n_rot, net->hp.n_ctx,
                        net->w.rope_factors, net->w.rope_factors_long));
    GN_TRY(gn_rope_init(&net->rope_local, &net->hp.rope_local, net->hp.n_rot, net->hp.n_ctx, NULL,
                        NULL));
    return init_buffers(net);
}

gn_status gn_net_create(const gn_source *source, gn_os_pool *pool, bool exact, gn_kv_type kv_type,
                        gn_net **out)
{
    gn_net *net = gn_calloc(1, sizeof *net);
    if (net == NULL) {
        return gn_alloc_failed();
    }
    net->source = source;
    net->pool = pool;
    net->exact = exact;
    net->n_workers = gn_os_pool_threads(pool);
    gn_net_set_threads(net, net->n_workers, net->n_workers);
    net->kv_type = kv_type;
    gn_status status = init(net);
    if (status != GN_OK) {
        gn_net_destroy(net);
        return status;
    }
    *out = net;
    return GN_OK;
}

void gn_net_destroy(gn_net *net)
{
    if (net == NULL) {
        return;
    }
    gn_compute_destroy(net->compute);
    for (int i = 0; net->attn != NULL && i < net->n_workers; i++) {
        gn_free_aligned(net->attn[i].memory);
        gn_free(net->attn[i].half);
    }
    gn_free_aligned(net->attn_slots);
    gn_free(net->key_offsets);
    gn_free((void *)net->parts_done);
    gn_free(net->blocks);
    gn_free(net->attn);
    gn_free_aligned(net->memory);
    gn_free(net->gathered);
    gn_free(net->gathered_w);
    gn_free(net->chosen);
    gn_rope_fini(&net->rope);
    gn_rope_fini(&net->rope_local);
    gn_weights_fini(&net->w);
    gn_free(net);
}

void gn_net_set_threads(gn_net *net, int few_rows, int many_rows)
{
    net->n_threads_few = few_rows;
    net->n_threads_many = many_rows;
}

const gn_hparams *gn_net_hparams(const gn_net *net)
{
    return &net->hp;
}

const gn_arch *gn_net_arch(const gn_net *net)
{
    return net->arch;
}

void gn_net_each_weight(gn_net *net, void (*fn)(void *ctx, gn_view *weight), void *ctx)
{
    gn_weights_each(&net->w, &net->hp, fn, ctx);
}

gn_kv_shape gn_net_kv_shape(const gn_net *net)
{
    return (gn_kv_shape){.n_layer = net->hp.n_layer,
                         .n_head_kv = net->hp.n_head_kv,
                         .head_dim = net->hp.head_dim,
                         .type = net->kv_type,
                         .n_window = net->hp.n_window,
                         .windowed = net->hp.windowed};
}
