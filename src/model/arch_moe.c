/* Mixture of experts: Mixtral (in GGUF it is a "llama" with experts) and Qwen 3 MoE. */
#include "model/arch.h"

static gn_status adjust_mixtral(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    return gn_arch_read_window(meta, NULL, hp);
}

static gn_status adjust_qwen3moe(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    if (meta->config != NULL) {
        hp->expert_norm_topk = gn_meta_json_bool(meta->config, "norm_topk_prob", false);
        if (gn_meta_json_bool(meta->config, "use_sliding_window", false)) {
            return gn_arch_read_window(meta, NULL, hp);
        }
    }
    return GN_OK;
}

const gn_arch gn_arch_mixtral = {.hf = "mixtral",
                                 .names = {GN_NAMES_PRE_NORM, .hf_experts = "block_sparse_moe",
                                           .hf_expert_gate = "w1", .hf_expert_up = "w3",
                                           .hf_expert_down = "w2"},
                                 .adjust = adjust_mixtral};

const gn_arch gn_arch_qwen3moe = {.gguf = "qwen3moe",
                                  .hf = "qwen3_moe",
                                  .names = {GN_NAMES_PRE_NORM, GN_NAMES_QK_NORM,
                                            .hf_experts = "mlp", .hf_expert_gate = "gate_proj",
                                            .hf_expert_up = "up_proj",
                                            .hf_expert_down = "down_proj"},
                                  .adjust = adjust_qwen3moe};
