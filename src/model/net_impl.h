/* What the files of the forward pass share: net.c (life), forward.c (the block), attend.c, moe.c. */
#ifndef GN_MODEL_NET_IMPL_H
#define GN_MODEL_NET_IMPL_H

#include "model/net.h"

#define GN_ATTN_SPLIT 256u /* tokens of one softmax part; parts are merged in ascending order */

/* Per worker, for nq query rows of one key-value head. */
typedef struct gn_attn_scratch {
    float *memory;         /* one block for all below */
    float *q;              /* [d_kv, nq] */
    float *scores;         /* [nq, GN_ATTN_SPLIT] */
    float *out, *part_out; /* [nq, d_kv] */
    float *max, *part_max; /* [nq] */
    float *sum, *part_sum; /* [nq] */
    float *head;           /* [d_kv] */
    uint16_t *half;        /* [d_kv] */
} gn_attn_scratch;

/* Rows of one sequence at positions that follow each other. */
typedef struct gn_attn_block {
    uint32_t first;
    uint32_t n;
} gn_attn_block;

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
    bool exact;         /* f32 activations for every weight */
    gn_kv_type kv_type;
    bool rotated;       /* heads in pages are Hadamard transforms: all types of 8 bits or fewer */
    float *key_offsets; /* [n_layer, n_head_kv·head_dim] taken off all keys, or NULL */
    size_t d_kv;        /* elements of a head in pages: head_dim, padded */

    /* Of one forward pass: */
    const gn_row *rows;
    size_t n_rows;
    gn_attn_scratch *attn; /* [n_workers] */
    gn_attn_block *blocks; /* [n_blocks], room for a block a row */
    size_t n_blocks;
    size_t attn_rows;  /* most query rows of a block and head */
    float *attn_slots; /* [n_attn_slots, n_group, d_kv + 2] parts that wait for their merge */
    size_t n_attn_slots;
    _Atomic uint32_t *parts_done; /* [n_attn_slots] of a block and head, in this loop */
    float *memory;                /* one block for all below */
    float *x;                     /* [rows, n_embd] the residual stream */
    float *h;                     /* [rows, n_embd] normed */
    float *q;                     /* [rows, n_head·head_dim] */
    float *kk, *vv;               /* [rows, n_head_kv·head_dim] */
    float *a;                     /* [rows, n_head·head_dim] attention's output */
    float *y;                     /* [rows, n_embd] a half block's output */
    float *gate, *up;             /* [rows, n_ff or n_ff_expert] */
    float *cos, *sin;             /* [rows, n_rot/2], of layers without a window */
    float *cos_local, *sin_local;
    float *router;      /* [rows, n_expert] */
    float *xe, *ye;     /* [rows, n_embd] one expert's rows */
    uint32_t *chosen;   /* [rows, n_expert_used] */
    uint32_t *gathered; /* [rows] */
    float *gathered_w;  /* [rows] */
};

/* Softmax attention of all rows over their pages: q → a. */
void gn_net_attend(gn_net *net, uint32_t layer);
/* Write the keys (value 0) or values (1) [n_head_kv, head_dim] of one row to its page. */
void gn_net_store(const gn_net *net, const gn_row *row, uint32_t layer, uint32_t value,
                  const float *x, int worker);
/* Fill key_offsets where the model and the KV type want some. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_net_init_key_offsets(gn_net *net);
/* The rotation of a head's d elements that goes with `rotated`, its own inverse. */
void gn_net_rotate_head(float *x, size_t d);
/* The feed-forward half of a layer with experts: h → y. */
void gn_net_moe(gn_net *net, const gn_layer *layer);
/* y[n] = act(gate) * up, rows [m, n], both contiguous; the result replaces gate. */
void gn_net_gated_act(gn_net *net, float *gate, const float *up, size_t m, size_t n);

#endif
