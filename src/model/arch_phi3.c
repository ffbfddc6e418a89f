/* Phi 3: q, k, v in one matrix, gate and up in another; LongRoPE in the long-context versions. */
#include "model/arch.h"

static gn_status adjust(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    return gn_arch_read_window(meta, "attention.sliding_window", hp);
}

const gn_arch gn_arch_phi3 = {
    .gguf = "phi3",
    .hf = "phi3",
    .names = {GN_NAMES_PRE_NORM,
              .qkv = {"blk.%u.attn_qkv.weight", "model.layers.%u.self_attn.qkv_proj.weight"},
              .gate_up = {"blk.%u.ffn_up.weight", "model.layers.%u.mlp.gate_up_proj.weight"}},
    .adjust = adjust};
