#include "serve/fim.h"

#include <string.h>

typedef struct form {
    const char *prefix, *suffix, *middle;
    bool suffix_first;
} form;

static const form forms[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", false},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", false},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", false},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", false},
    {"▁<PRE>", "▁<SUF>", "▁<MID>", false},
    {"[PREFIX]", "[SUFFIX]", "", true},
};

static bool is_token(const gn_model *model, const char *text)
{
    int32_t *ids = NULL;
    size_t n = 0;
    if (text[0] == '\0') {
        return true;
    }
    if (gn_model_tokenize(model, text, strlen(text), GN_TOKENIZE_SPECIAL, &ids, &n) != GN_OK) {
        return false;
    }
    gn_release(ids);
    return n == 1;
}

static const form *find(const gn_model *model)
{
    for (size_t i = 0; i < GN_COUNTOF(forms); i++) {
        const form *f = &forms[i];
        if (is_token(model, f->prefix) && is_token(model, f->suffix) &&
            is_token(model, f->middle)) {
            return f;
        }
    }
    return NULL;
}

bool gn_fim_supported(const gn_model *model)
{
    return find(model) != NULL;
}

gn_status gn_fim_prompt(const gn_model *model, const char *prefix, size_t prefix_len,
                        const char *suffix, size_t suffix_len, gn_buf *out)
{
    const form *f = find(model);
    GN_REQUIRE(f != NULL, GN_E_UNSUPPORTED,
               "the model has no tokens for filling in the middle of a text");
    if (f->suffix_first) {
        GN_TRY(gn_buf_puts(out, f->suffix));
        GN_TRY(gn_buf_append(out, suffix, suffix_len));
        GN_TRY(gn_buf_puts(out, f->prefix));
        return gn_buf_append(out, prefix, prefix_len);
    }
    GN_TRY(gn_buf_puts(out, f->prefix));
    GN_TRY(gn_buf_append(out, prefix, prefix_len));
    GN_TRY(gn_buf_puts(out, f->suffix));
    GN_TRY(gn_buf_append(out, suffix, suffix_len));
    return gn_buf_puts(out, f->middle);
}
