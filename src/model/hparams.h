/* What a transformer's shape and arithmetic are, read from the model's description and checked: every
 * count is in a range that later products cannot overflow. */
#ifndef GN_MODEL_HPARAMS_H
#define GN_MODEL_HPARAMS_H

#include "model/meta.h"

#include <stdbool.h>
#include <stdint.h>

#define GN_MAX_LAYERS 1024u
#define GN_MAX_GROUP  128u /* query heads that share one key-value head */

typedef enum gn_act { GN_ACT_SILU, GN_ACT_GELU_TANH, GN_ACT_GELU_ERF } gn_act;
typedef enum gn_rope_pairs { GN_ROPE_NORM, GN_ROPE_NEOX } gn_rope_pairs;
typedef enum gn_rope_scaling {
    GN_ROPE_SCALING_NONE,
    GN_ROPE_SCALING_LINEAR,
    GN_ROPE_SCALING_YARN,
    GN_ROPE_SCALING_LLAMA3,
    GN_ROPE_SCALING_LONGROPE
} gn_rope_scaling;

typedef struct gn_rope_params {
    float base;
    gn_rope_scaling scaling;
    float factor;               /* positions are divided by it (in part, for yarn and llama3) */
    uint32_t n_ctx_orig;        /* context before scaling */
    float attn_factor;          /* scales cos and sin; 0: by the method's own rule */
    float beta_fast, beta_slow; /* yarn */
    bool truncate;              /* yarn: whole correction dimensions */
    float low_freq_factor, high_freq_factor;  /* llama3 */
    const json_t *short_factor, *long_factor; /* longrope in config.json: arrays; borrowed */
} gn_rope_params;

typedef struct gn_hparams {
    bool untied; /* the file says that the output has a matrix of its own */
    uint32_t n_vocab, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, n_ctx;
    float norm_eps;
    float norm_add; /* 1: RMS norm weights are stored minus one */
    gn_act act;
    float embd_scale;                  /* embeddings are multiplied by it; 1: not */
    float attn_scale;                  /* of q·k */
    float attn_softcap, logit_softcap; /* 0: off */
    gn_rope_pairs rope_pairs;
    uint32_t n_rot;                  /* rotated elements of a head */
    gn_rope_params rope, rope_local; /* local: layers with a window */
    uint32_t
        n_window; /* tokens a windowed layer looks back at, itself included; 0: no layer has one */
    bool windowed[GN_MAX_LAYERS];
    uint32_t n_expert, n_expert_used, n_ff_expert;
    bool expert_norm_topk; /* the chosen experts' weights are scaled to a sum of 1 */
} gn_hparams;

/* Read what all decoder architectures share. The architecture's own file then changes what differs. */
GN_MUST_USE gn_status gn_hparams_read(const gn_meta *meta, gn_hparams *out);

/* Mark the layers with a window from config.json's layer_types; *found says whether there was one. */
GN_MUST_USE gn_status gn_hparams_layer_types(const gn_meta *meta, gn_hparams *hp, bool *found);

/* Check the numbers against each other, after the architecture's changes. */
GN_MUST_USE gn_status gn_hparams_check(const gn_hparams *hp);

#endif
