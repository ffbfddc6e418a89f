/* A tokenizer from tokenizer.json. */
#include "text/tokenizer_impl.h"

gn_status gn_tokenizer_create_hf(const json_t *tokenizer, const json_t *config, gn_tokenizer **out)
{
    (void)tokenizer;
    (void)config;
    (void)out;
    return gn_base_fail(GN_E_UNSUPPORTED, "tokenizer.json: not read yet");
}

gn_status gn_tokenizer_create(const gn_source *source, gn_tokenizer **out)
{
    if (gn_source_get_kind(source) == GN_SOURCE_GGUF) {
        return gn_tokenizer_create_gguf(gn_source_gguf(source), out);
    }
    return gn_tokenizer_create_hf(gn_source_tokenizer(source), gn_source_tokenizer_config(source),
                                  out);
}
