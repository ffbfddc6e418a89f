/* A model's tensors by role. Matrices stay where the file has them; norms and biases, small and read by
 * float kernels, are kept as f32 (in place where the file has f32, aligned). */
#ifndef GN_MODEL_WEIGHTS_H
#define GN_MODEL_WEIGHTS_H

#include "base/arena.h"
#include "model/hparams.h"

/* A matrix whose data is NULL is absent. */
typedef struct gn_layer {
    const float *attn_norm, *attn_post_norm; /* [n_embd] */
    const float *q_norm, *k_norm;            /* [head_dim] */
    gn_view q, k, v, o; /* [n_head·head_dim | n_head_kv·head_dim, n_embd], o transposed */
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    const float *ffn_norm, *ffn_post_norm;          /* [n_embd] */
    gn_view gate, up, down;                         /* [n_ff, n_embd] ×2, [n_embd, n_ff] */
    gn_view router;                                 /* [n_expert, n_embd]; absent: a dense layer */
    gn_view *expert_gate, *expert_up, *expert_down; /* [n_expert] matrices each */
} gn_layer;

typedef struct gn_weights {
    gn_arena arena;
    gn_view token_embd;       /* [n_vocab, n_embd] */
    gn_view output;           /* [n_vocab, n_embd]; the embedding itself where tied */
    const float *output_norm; /* [n_embd] */
    const float *rope_factors, *rope_factors_long; /* [n_rot / 2], or NULL */
    gn_layer *layers;                              /* [n_layer] */
} gn_weights;

/* A role's names in both forms. `%u` stands for the layer, in expert names a second one for the expert. */
typedef struct gn_tensor_name {
    const char *gguf;
    const char *hf;
} gn_tensor_name;

/* Names that differ between architectures; NULL members: the architecture has no such tensor. */
typedef struct gn_layer_names {
    gn_tensor_name attn_norm, attn_post_norm, ffn_norm, ffn_post_norm;
    gn_tensor_name qkv;     /* fused q, k, v rows, or NULL */
    gn_tensor_name gate_up; /* fused gate and up rows, or NULL */
    gn_tensor_name q_norm, k_norm;
    const char *hf_experts; /* "block_sparse_moe" or "mlp": folder of router and experts */
    const char *hf_expert_gate, *hf_expert_up, *hf_expert_down; /* "w1" … or "gate_proj" … */
} gn_layer_names;

/* Find and check every tensor: shape against hp, type computed. hp->n_vocab is set from the embedding where
 * it is 0. GN_E_FORMAT (missing, or shape: found, expected), GN_E_UNSUPPORTED (type: named), GN_E_NOMEM.
 * `out` must be zeroed; gn_weights_fini() after failure too. */
GN_MUST_USE gn_status gn_weights_bind(gn_weights *out, const gn_source *source, gn_hparams *hp,
                                      const gn_layer_names *names);
void gn_weights_fini(gn_weights *weights);

/* Each matrix that products read, in a fixed order: of each layer, then the output. */
void gn_weights_each(gn_weights *weights, const gn_hparams *hp,
                     void (*fn)(void *ctx, gn_view *weight), void *ctx);

/* For architectures with tensors of their own (encoders). `name` may hold %u for the layer.
 * A matrix [rows, cols]: */
GN_MUST_USE gn_status gn_weights_matrix(const gn_source *source, const char *name, uint32_t layer,
                                        uint64_t rows, uint64_t cols, gn_view *out);
/* A vector of n as f32; absent gives NULL unless `required`. */
GN_MUST_USE gn_status gn_weights_vector(gn_arena *arena, const gn_source *source, const char *name,
                                        uint32_t layer, uint64_t n, bool required,
                                        const float **out);

/* Name of a tensor that holds a NaN or an infinity, or NULL. Reads every weight: for telling why logits are
 * not finite. */
const char *gn_weights_find_nonfinite(const gn_source *source);

#endif
