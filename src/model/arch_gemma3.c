/* Gemma 3 (text): norms before and after each half of a block, norms on q and k, scaled embeddings, and
 * five layers with a window and a RoPE base of their own to each one without. */
#include "model/arch.h"

#include <math.h>

#define WINDOW_PERIOD 6u /* every sixth layer sees everything */

static gn_status read_windows(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_meta_u32(meta, "attention.sliding_window", "sliding_window", 1, 1u << 30, 512,
                       &hp->n_window, NULL));
    bool found = false;
    GN_TRY(gn_hparams_layer_types(meta, hp, &found));
    uint32_t period = WINDOW_PERIOD;
    GN_TRY(gn_meta_u32(meta, NULL, "sliding_window_pattern", 1, GN_MAX_LAYERS, WINDOW_PERIOD,
                       &period, NULL));
    for (uint32_t i = 0; !found && i < hp->n_layer; i++) {
        hp->windowed[i] = (i + 1) % period != 0;
    }
    return GN_OK;
}

static gn_status adjust(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "gelu_pytorch_tanh"));
    GN_TRY(read_windows(meta, hp));
    hp->act = GN_ACT_GELU_TANH;
    hp->embd_scale = sqrtf((float)hp->n_embd);
    /* GGUF's converter has already added the 1. */
    hp->norm_add = meta->gguf != NULL ? 0.0f : 1.0f;
    float scalar = (float)hp->head_dim;
    GN_TRY(gn_meta_f32(meta, NULL, "query_pre_attn_scalar", scalar, &scalar, NULL));
    if (meta->gguf != NULL && hp->n_layer == 62) {
        scalar = (float)hp->n_embd / (float)hp->n_head; /* the 27B model; GGUF has no key for it */
    }
    GN_REQUIRE(scalar > 0.0f, GN_E_FORMAT, "query_pre_attn_scalar: found %g, expected above 0",
               (double)scalar);
    hp->attn_scale = 1.0f / sqrtf(scalar);
    GN_TRY(gn_meta_f32(meta, "attn_logit_softcapping", "attn_logit_softcapping", 0.0f,
                       &hp->attn_softcap, NULL));
    GN_TRY(gn_meta_f32(meta, "final_logit_softcapping", "final_logit_softcapping", 0.0f,
                       &hp->logit_softcap, NULL));
    if (meta->gguf != NULL) {
        return gn_meta_f32(meta, "rope.freq_base_swa", NULL, 10000.0f, &hp->rope_local.base, NULL);
    }
    if (json_object_get(meta->config, "rope_parameters") == NULL) {
        hp->rope_local = (gn_rope_params){.factor = 1.0f, .n_ctx_orig = hp->n_ctx};
        return gn_meta_f32(meta, NULL, "rope_local_base_freq", 10000.0f, &hp->rope_local.base,
                           NULL);
    }
    return GN_OK;
}

#define GEMMA3_NAMES                                                                               \
    {                                                                                              \
        .attn_norm = {"blk.%u.attn_norm.weight", "model.layers.%u.input_layernorm.weight"},        \
        .attn_post_norm = {"blk.%u.post_attention_norm.weight",                                    \
                           "model.layers.%u.post_attention_layernorm.weight"},                     \
        .ffn_norm = {"blk.%u.ffn_norm.weight",                                                     \
                     "model.layers.%u.pre_feedforward_layernorm.weight"},                          \
        .ffn_post_norm = {"blk.%u.post_ffw_norm.weight",                                           \
                          "model.layers.%u.post_feedforward_layernorm.weight"},                    \
        GN_NAMES_QK_NORM                                                                           \
    }

const gn_arch gn_arch_gemma3 = {
    .gguf = "gemma3", .hf = "gemma3", .names = GEMMA3_NAMES, .adjust = adjust};

const gn_arch gn_arch_gemma3_text = {.hf = "gemma3_text", .names = GEMMA3_NAMES, .adjust = adjust};
