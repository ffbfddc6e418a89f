/* The shared decoder block: norm → q, k, v → RoPE → attention → output projection → norm → feed-forward,
 * with the residual stream in x. Parallel loops run over rows, over panels of weights, or over pairs of row
 * and head; each row is always computed by the same operations in the same order. */
#include "model/net_impl.h"

#include <assert.h>
#include <string.h>

#define ROW_GRAIN 8 /* rows of a small per-row job that one worker takes at a time */
#define FEW_ROWS                                                                                   \
    16u /* a pass of so many is bound by the memory's bandwidth, a larger one by arithmetic */

/* --- norms --- */

typedef struct norm_job {
    const gn_net *net;
    const float *x;
    const float *w;
    float *out;
} norm_job;

static void norm_rows(void *ctx, size_t begin, size_t end, int worker)
{
    const norm_job *job = ctx;
    const gn_net *net = job->net;
    size_t n = net->hp.n_embd;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        net->k->rmsnorm(job->x + i * n, n, net->hp.norm_eps, job->w, net->hp.norm_add,
                        job->out + i * n);
    }
}

static void norm(const gn_net *net, const float *x, const float *w, float *out)
{
    norm_job job = {net, x, w, out};
    gn_os_pool_run(net->pool, net->n_rows, ROW_GRAIN, norm_rows, &job);
}

/* x += norm(y), or x += y where the block has no norm there. */
static void add_rows(const gn_net *net, const float *post_norm)
{
    if (post_norm != NULL) {
        norm(net, net->y, post_norm, net->y);
    }
    net->k->add(net->x, net->y, net->n_rows * net->hp.n_embd);
}

/* --- q, k, v --- */

typedef struct qkv_job {
    gn_net *net;
    const gn_layer *layer;
    uint32_t index;
} qkv_job;

static void add_bias(const gn_net *net, float *y, const float *bias, size_t n)
{
    if (bias != NULL) {
        net->k->add(y, bias, n);
    }
}

/* Norm (where the model has it) and rotate the heads of one row. */
static void rotate(const gn_net *net, float *heads, uint32_t n_heads, const float *head_norm,
                   const float *cos, const float *sin)
{
    const gn_hparams *hp = &net->hp;
    for (uint32_t h = 0; h < n_heads; h++) {
        float *head = heads + (size_t)h * hp->head_dim;
        if (head_norm != NULL) {
            net->k->rmsnorm(head, hp->head_dim, hp->norm_eps, head_norm, hp->norm_add, head);
        }
        if (hp->rope_pairs == GN_ROPE_NORM) {
            net->k->rope_norm(head, hp->n_rot, cos, sin);
        } else {
            net->k->rope_neox(head, hp->n_rot, cos, sin);
        }
    }
}

static void finish_qkv(void *ctx, size_t begin, size_t end, int worker)
{
    const qkv_job *job = ctx;
    gn_net *net = job->net;
    const gn_hparams *hp = &net->hp;
    const gn_layer *layer = job->layer;
    bool local = hp->windowed[job->index];
    size_t n_q = (size_t)hp->n_head * hp->head_dim;
    size_t n_kv = (size_t)hp->n_head_kv * hp->head_dim;
    size_t half = hp->n_rot / 2;
    for (size_t i = begin; i < end; i++) {
        const float *cos = (local ? net->cos_local : net->cos) + i * half;
        const float *sin = (local ? net->sin_local : net->sin) + i * half;
        float *q = net->q + i * n_q;
        float *k = net->kk + i * n_kv;
        float *v = net->vv + i * n_kv;
        add_bias(net, q, layer->q_bias, n_q);
        add_bias(net, k, layer->k_bias, n_kv);
        add_bias(net, v, layer->v_bias, n_kv);
        rotate(net, q, hp->n_head, layer->q_norm, cos, sin);
        rotate(net, k, hp->n_head_kv, layer->k_norm, cos, sin);
        gn_net_store(net, &net->rows[i], job->index, 0, k, worker);
        gn_net_store(net, &net->rows[i], job->index, 1, v, worker);
    }
}

static gn_acts acts_of(const gn_net *net, const float *x, size_t k)
{
    return (gn_acts){.x = x, .ldx = k, .m = net->n_rows, .k = k};
}

static void attention_half(gn_net *net, uint32_t index)
{
    const gn_hparams *hp = &net->hp;
    const gn_layer *layer = &net->w.layers[index];
    size_t n_q = (size_t)hp->n_head * hp->head_dim;
    size_t n_kv = (size_t)hp->n_head_kv * hp->head_dim;
    norm(net, net->x, layer->attn_norm, net->h);
    gn_acts acts = acts_of(net, net->h, hp->n_embd);
    const gn_matmul qkv[] = {
        {&layer->q, net->q, n_q}, {&layer->k, net->kk, n_kv}, {&layer->v, net->vv, n_kv}};
    gn_compute_matmul(net->compute, &acts, qkv, 3);
    qkv_job job = {net, layer, index};
    gn_os_pool_run(net->pool, net->n_rows, ROW_GRAIN, finish_qkv, &job);
    gn_net_attend(net, index);
    acts = acts_of(net, net->a, n_q);
    const gn_matmul o = {&layer->o, net->y, hp->n_embd};
    gn_compute_matmul(net->compute, &acts, &o, 1);
    for (size_t i = 0; layer->o_bias != NULL && i < net->n_rows; i++) {
        net->k->add(net->y + i * hp->n_embd, layer->o_bias, hp->n_embd);
    }
    add_rows(net, layer->attn_post_norm);
}

/* --- feed-forward --- */

typedef struct act_job {
    gn_net *net;
    float *gate;
    const float *up;
    size_t n;
} act_job;

static void act_rows(void *ctx, size_t begin, size_t end, int worker)
{
    const act_job *job = ctx;
    const gn_kernels *k = job->net->k;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        float *gate = job->gate + i * job->n;
        if (job->net->hp.act == GN_ACT_GELU_TANH) {
            k->gelu_tanh_mul(gate, job->up + i * job->n, job->n, gate);
        } else {
            k->silu_mul(gate, job->up + i * job->n, job->n, gate);
        }
    }
}

void gn_net_gated_act(gn_net *net, float *gate, const float *up, size_t m, size_t n)
{
    act_job job = {net, gate, up, n};
    gn_os_pool_run(net->pool, m, ROW_GRAIN, act_rows, &job);
}

static void dense_ffn(gn_net *net, const gn_layer *layer)
{
    const gn_hparams *hp = &net->hp;
    gn_acts acts = acts_of(net, net->h, hp->n_embd);
    const gn_matmul both[] = {{&layer->gate, net->gate, hp->n_ff}, {&layer->up, net->up, hp->n_ff}};
    gn_compute_matmul(net->compute, &acts, both, 2);
    gn_net_gated_act(net, net->gate, net->up, net->n_rows, hp->n_ff);
    acts = acts_of(net, net->gate, hp->n_ff);
    const gn_matmul down = {&layer->down, net->y, hp->n_embd};
    gn_compute_matmul(net->compute, &acts, &down, 1);
}

static void ffn_half(gn_net *net, uint32_t index)
{
    const gn_layer *layer = &net->w.layers[index];
    norm(net, net->x, layer->ffn_norm, net->h);
    if (layer->router.data != NULL) {
        gn_net_moe(net, layer);
    } else {
        dense_ffn(net, layer);
    }
    add_rows(net, layer->ffn_post_norm);
}

/* --- the whole --- */

static void embed(gn_net *net)
{
    const gn_hparams *hp = &net->hp;
    size_t half = hp->n_rot / 2;
    for (size_t i = 0; i < net->n_rows; i++) {
        const gn_row *row = &net->rows[i];
        assert(row->id >= 0 && (uint32_t)row->id < hp->n_vocab);
        float *x = net->x + i * hp->n_embd;
        gn_compute_dequant(&net->w.token_embd, (size_t)row->id, x);
        if (hp->embd_scale > 1.0f || hp->embd_scale < 1.0f) {
            net->k->scale(x, hp->n_embd, hp->embd_scale);
        }
        gn_rope_angles(&net->rope, row->pos, row->long_context, net->cos + i * half,
                       net->sin + i * half);
        if (hp->n_window != 0) {
            gn_rope_angles(&net->rope_local, row->pos, row->long_context, net->cos_local + i * half,
                           net->sin_local + i * half);
        }
    }
}

/* Final norm and output matrix for the rows that want them, gathered to the front of h. */
static void output(gn_net *net, float *logits, float *hidden)
{
    const gn_hparams *hp = &net->hp;
    size_t n_out = 0;
    for (size_t i = 0; i < net->n_rows; i++) {
        if (net->rows[i].wants_output) {
            memmove(net->h + n_out * hp->n_embd, net->x + i * hp->n_embd,
                    hp->n_embd * sizeof(float));
            n_out++;
        }
    }
    if (n_out == 0) {
        return;
    }
    net->n_rows = n_out;
    norm(net, net->h, net->w.output_norm, net->h);
    if (hidden != NULL) {
        memcpy(hidden, net->h, n_out * hp->n_embd * sizeof(float));
    }
    if (logits == NULL) {
        return;
    }
    gn_acts acts = acts_of(net, net->h, hp->n_embd);
    /* Nothing averages out what is lost here, and it is one row of a sequence: all of it is kept. */
    acts.two_planes = true;
    const gn_matmul head = {&net->w.output, logits, hp->n_vocab};
    gn_compute_matmul(net->compute, &acts, &head, 1);
    if (hp->logit_softcap > 0.0f) {
        net->k->tanh_cap(logits, n_out * hp->n_vocab, hp->logit_softcap);
    }
}

void gn_net_forward(gn_net *net, const gn_row *rows, size_t n_rows, float *logits, float *hidden)
{
    assert(n_rows >= 1 && n_rows <= GN_NET_MAX_ROWS);
    net->rows = rows;
    net->n_rows = n_rows;
    gn_os_pool_use(net->pool, n_rows <= FEW_ROWS ? net->n_threads_few : net->n_threads_many);
    embed(net);
    for (uint32_t i = 0; i < net->hp.n_layer; i++) {
        attention_half(net, i);
        ffn_half(net, i);
    }
    output(net, logits, hidden);
    net->rows = NULL;
}
