/* Qwen 2 and 2.5 (biases on q, k and v) and Qwen 3 (norms on q and k). */
#include "model/arch.h"

static gn_status adjust_qwen(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    if (meta->config != NULL && gn_meta_json_bool(meta->config, "use_sliding_window", false)) {
        return gn_arch_read_window(meta, NULL, hp);
    }
    return GN_OK;
}

const gn_arch gn_arch_qwen2 = {
    .gguf = "qwen2", .hf = "qwen2", .names = {GN_NAMES_PRE_NORM}, .adjust = adjust_qwen};

const gn_arch gn_arch_qwen3 = {.gguf = "qwen3",
                               .hf = "qwen3",
                               .names = {GN_NAMES_PRE_NORM, GN_NAMES_QK_NORM},
                               .adjust = adjust_qwen};
