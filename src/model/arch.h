/* The architectures: for each its names, and what differs from the shared transformer block. To add one, write
 * arch_NAME.c with a gn_arch and list it in arch.c. */
#ifndef GN_MODEL_ARCH_H
#define GN_MODEL_ARCH_H

#include "model/weights.h"

typedef struct gn_arch {
    const char *gguf; /* general.architecture, or NULL */
    const char *hf;   /* config.json's model_type, or NULL */
    bool encoder;     /* its own forward pass (model/encoder.h); names and adjust are unused */
    gn_layer_names names;
    /* Change what gn_hparams_read() set. */
    gn_status (*adjust)(const gn_meta *meta, gn_hparams *hp);
} gn_arch;

/* The row for this model; GN_E_UNSUPPORTED names the architecture and lists those that are. */
GN_MUST_USE gn_status gn_arch_find(const gn_meta *meta, const gn_arch **out);

extern const gn_arch gn_arch_llama, gn_arch_mistral, gn_arch_mixtral, gn_arch_qwen2, gn_arch_qwen3,
    gn_arch_qwen3moe, gn_arch_gemma3, gn_arch_gemma3_text, gn_arch_phi3, gn_arch_bert;

/* Names of a plain pre-norm block: initialisers for gn_layer_names. */
#define GN_NAMES_PRE_NORM                                                                          \
    .attn_norm = {"blk.%u.attn_norm.weight", "model.layers.%u.input_layernorm.weight"},            \
    .ffn_norm = {"blk.%u.ffn_norm.weight", "model.layers.%u.post_attention_layernorm.weight"}
#define GN_NAMES_QK_NORM                                                                           \
    .q_norm = {"blk.%u.attn_q_norm.weight", "model.layers.%u.self_attn.q_norm.weight"},            \
    .k_norm = {"blk.%u.attn_k_norm.weight", "model.layers.%u.self_attn.k_norm.weight"}

/* Helpers for adjust functions: the activation's name in config.json must be `expected`; */
GN_MUST_USE gn_status gn_arch_expect_act(const gn_meta *meta, const char *expected);
/* every layer has a window of config.json's sliding_window (or `gguf_key`), unless layer_types says which. */
GN_MUST_USE gn_status gn_arch_read_window(const gn_meta *meta, const char *gguf_key,
                                          gn_hparams *hp);

#endif
