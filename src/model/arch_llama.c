/* Llama 1 to 3, SmolLM2 and others of their form; Mistral adds a window over all layers. */
#include "model/arch.h"

static gn_status adjust_llama(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    /* GGUF's converter permutes the rows of q and k so that rotated pairs are neighbours. */
    hp->rope_pairs = meta->gguf != NULL ? GN_ROPE_NORM : GN_ROPE_NEOX;
    return GN_OK;
}

static gn_status adjust_mistral(const gn_meta *meta, gn_hparams *hp)
{
    GN_TRY(gn_arch_expect_act(meta, "silu"));
    return gn_arch_read_window(meta, NULL, hp);
}

const gn_arch gn_arch_llama = {
    .gguf = "llama", .hf = "llama", .names = {GN_NAMES_PRE_NORM}, .adjust = adjust_llama};

const gn_arch gn_arch_mistral = {
    .hf = "mistral", .names = {GN_NAMES_PRE_NORM}, .adjust = adjust_mistral};
