/* What the files of the forward pass share: net.c (life), forward.c (the block), attend.c, moe.c. */
#ifndef GN_MODEL_NET_IMPL_H
#define GN_MODEL_NET_IMPL_H

#include "model/net.h"

#define GN_ATTN_SPLIT 256u /* tokens of one softmax part; parts are merged in ascending order */

/* Per worker: scores and partial outputs of one group of query heads. */
typedef struct gn_attn_scratch {
    float *scores; /* [n_group, GN_ATTN_SPLIT] */
    float *out;    /* [n_group, head_dim] */
    float *max;    /* [n_group] */
    float *sum;    /* [n_group] */
} gn_attn_scratch;

struct gn_net {
    const gn_source *source;
    const gn_arch *arch;
    gn_hparams hp;
    gn_weights w;
    gn_rope rope;       /* layers without a window */
    gn_rope rope_local; /* layers with one */
    gn_compute *compute;
    const gn_kernels *k;
    gn_os_pool *pool;
    int n_workers;
    int n_threads_few;  /* that passes of up to FEW_ROWS rows use */
    int n_threads_many; /* that larger ones use */
    gn_kv_type kv_type;

    /* Of one forward pass: */
    const gn_row *rows;
    size_t n_rows;
    gn_attn_scratch *attn; /* [n_workers] */
    float *memory;         /* one block for all below */
    float *x;              /* [rows, n_embd] the residual stream */
    float *h;              /* [rows, n_embd] normed */
    float *q;              /* [rows, n_head·head_dim] */
    float *kk, *vv;        /* [rows, n_head_kv·head_dim] */
    float *a;              /* [rows, n_head·head_dim] attention's output */
    float *y;              /* [rows, n_embd] a half block's output */
    float *gate, *up;      /* [rows, n_ff or n_ff_expert] */
    float *cos, *sin;      /* [rows, n_rot/2], of layers without a window */
    float *cos_local, *sin_local;
    float *router;      /* [rows, n_expert] */
    float *xe, *ye;     /* [rows, n_embd] one expert's rows */
    uint32_t *chosen;   /* [rows, n_expert_used] */
    uint32_t *gathered; /* [rows] */
    float *gathered_w;  /* [rows] */
};

/* Softmax attention of all rows over their pages: q → a. */
void gn_net_attend(gn_net *net, uint32_t layer);
/* The feed-forward half of a layer with experts: h → y. */
void gn_net_moe(gn_net *net, const gn_layer *layer);
/* y[n] = act(gate) * up, rows [m, n], both contiguous; the result replaces gate. */
void gn_net_gated_act(gn_net *net, float *gate, const float *up, size_t m, size_t n);

#endif
