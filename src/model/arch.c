#include "model/arch.h"

#include "base/attr.h"

#include <stdio.h>
#include <string.h>

static const gn_arch *const all[] = {
    &gn_arch_llama,    &gn_arch_mistral, &gn_arch_mixtral,     &gn_arch_qwen2, &gn_arch_qwen3,
    &gn_arch_qwen3moe, &gn_arch_gemma3,  &gn_arch_gemma3_text, &gn_arch_phi3,  &gn_arch_bert,
};

gn_status gn_arch_find(const gn_meta *meta, const gn_arch **out)
{
    char known[256] = "";
    for (size_t i = 0; i < GN_COUNTOF(all); i++) {
        const char *name = meta->gguf != NULL ? all[i]->gguf : all[i]->hf;
        if (name == NULL) {
            continue;
        }
        if (strcmp(name, meta->arch) == 0) {
            *out = all[i];
            return GN_OK;
        }
        size_t n = strlen(known);
        (void)snprintf(known + n, sizeof known - n, "%s%s", n != 0 ? ", " : "", name);
    }
    return gn_base_fail(GN_E_UNSUPPORTED,
                        "architecture \"%s\" is not supported (those that are: %s)", meta->arch,
                        known);
}

gn_status gn_arch_expect_act(const gn_meta *meta, const char *expected)
{
    if (meta->config == NULL) {
        return GN_OK;
    }
    const char *name = gn_meta_json_str(meta->config, "hidden_activation");
    name = *name != '\0' ? name : gn_meta_json_str(meta->config, "hidden_act");
    GN_REQUIRE(*name == '\0' || strcmp(name, expected) == 0, GN_E_UNSUPPORTED,
               "config.json: hidden_act: found \"%s\", expected \"%s\"", name, expected);
    return GN_OK;
}

gn_status gn_arch_read_window(const gn_meta *meta, const char *gguf_key, gn_hparams *hp)
{
    GN_TRY(gn_meta_u32(meta, gguf_key, "sliding_window", 0, 1u << 30, 0, &hp->n_window, NULL));
    bool found = false;
    GN_TRY(gn_hparams_layer_types(meta, hp, &found));
    for (uint32_t i = 0; !found && i < hp->n_layer; i++) {
        hp->windowed[i] = hp->n_window != 0;
    }
    GN_REQUIRE(hp->n_window != 0 || !found || memchr(hp->windowed, 1, hp->n_layer) == NULL,
               GN_E_FORMAT,
               "config.json: layer_types has sliding_attention, but sliding_window is absent");
    return GN_OK;
}
