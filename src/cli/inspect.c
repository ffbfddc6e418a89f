/* Facts of a model file from its metadata alone. Nothing here trusts a number: sizes that do not fit are
 * "unknown", since the file may be of an architecture that nothing else has checked. */
#include "cli/inspect.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAYERS 4096

/* Integer metadata of a GGUF under its architecture's prefix. */
static uint64_t gguf_u64(const gn_gguf *gguf, const char *arch, const char *key, uint64_t fallback)
{
    char name[160];
    (void)snprintf(name, sizeof name, "%s.%s", arch, key);
    uint64_t v;
    return gn_gguf_get_u64(gguf, name, &v) == GN_OK ? v : fallback;
}

/* Key-value heads of a layer: one number for all, or an array. */
static uint64_t gguf_kv_heads(const gn_gguf *gguf, const char *arch, uint64_t layer,
                              uint64_t n_head)
{
    char name[160];
    (void)snprintf(name, sizeof name, "%s.attention.head_count_kv", arch);
    const gn_gguf_value *value = gn_gguf_find(gguf, name);
    if (value == NULL || value->type != GN_GGUF_ARRAY) {
        return gguf_u64(gguf, arch, "attention.head_count_kv", n_head);
    }
    bool integers = value->elem != GN_GGUF_STRING && value->elem != GN_GGUF_ARRAY &&
                    value->elem != GN_GGUF_F32 && value->elem != GN_GGUF_F64;
    return integers && layer < value->n ? gn_gguf_elem_u64(value, layer) : 0;
}

/* Bytes of `heads` keys and values in f16, added to *sum; false where the size makes no sense. */
static bool add_kv(uint64_t heads, uint64_t key_len, uint64_t value_len, size_t *sum)
{
    size_t width;
    size_t bytes;
    return gn_checked_add(key_len, value_len, &width) && gn_checked_mul(heads, width, &bytes) &&
           gn_checked_mul(bytes, 2, &bytes) && gn_checked_add(*sum, bytes, sum);
}

static void gguf_shape(const gn_gguf *gguf, gn_cli_shape *out)
{
    gn_gguf_str arch;
    if (gn_gguf_get_str(gguf, "general.architecture", &arch) != GN_OK) {
        return;
    }
    size_t len = arch.len < sizeof out->architecture - 1 ? arch.len : sizeof out->architecture - 1;
    memcpy(out->architecture, arch.s, len);
    out->architecture[len] = '\0';
    const char *a = out->architecture;
    out->n_layer = gguf_u64(gguf, a, "block_count", 0);
    out->n_embd = gguf_u64(gguf, a, "embedding_length", 0);
    out->n_head = gguf_u64(gguf, a, "attention.head_count", 0);
    out->n_ctx_train = gguf_u64(gguf, a, "context_length", 0);
    const gn_gguf_value *tokens = gn_gguf_find(gguf, "tokenizer.ggml.tokens");
    out->n_vocab = gguf_u64(gguf, a, "vocab_size", tokens != NULL ? tokens->n : 0);

    char name[160];
    bool causal = true;
    (void)snprintf(name, sizeof name, "%s.attention.causal", a);
    if (gn_gguf_get_bool(gguf, name, &causal) == GN_OK && !causal) {
        return;
    }
    uint64_t per_head = out->n_head != 0 ? out->n_embd / out->n_head : 0;
    uint64_t key_len = gguf_u64(gguf, a, "attention.key_length", per_head);
    uint64_t value_len = gguf_u64(gguf, a, "attention.value_length", per_head);
    if (out->n_layer > MAX_LAYERS) {
        return;
    }
    size_t sum = 0;
    for (uint64_t i = 0; i < out->n_layer; i++) {
        if (!add_kv(gguf_kv_heads(gguf, a, i, out->n_head), key_len, value_len, &sum)) {
            return;
        }
    }
    out->kv_bytes_per_tok = sum;
}

static uint64_t json_u64(const json_t *config, const char *key, uint64_t fallback)
{
    const json_t *item = json_object_get(config, key);
    return json_is_integer(item) && json_integer_value(item) >= 0
               ? (uint64_t)json_integer_value(item)
               : fallback;
}

static void hf_shape(const json_t *config, gn_cli_shape *out)
{
    const char *arch = json_string_value(json_object_get(config, "model_type"));
    (void)snprintf(out->architecture, sizeof out->architecture, "%s", arch != NULL ? arch : "");
    const json_t *text = json_object_get(config, "text_config");
    const json_t *c = json_is_object(text) ? text : config;
    out->n_layer = json_u64(c, "num_hidden_layers", 0);
    out->n_embd = json_u64(c, "hidden_size", 0);
    out->n_head = json_u64(c, "num_attention_heads", 0);
    out->n_ctx_train = json_u64(c, "max_position_embeddings", 0);
    out->n_vocab = json_u64(c, "vocab_size", 0);
    if (strstr(out->architecture, "bert") != NULL) {
        return;
    }
    uint64_t head_len = json_u64(c, "head_dim", out->n_head != 0 ? out->n_embd / out->n_head : 0);
    uint64_t heads = json_u64(c, "num_key_value_heads", out->n_head);
    size_t one = 0;
    size_t all = 0;
    if (add_kv(heads, head_len, head_len, &one) && gn_checked_mul(one, out->n_layer, &all)) {
        out->kv_bytes_per_tok = all;
    }
}

void gn_cli_inspect_shape(const gn_source *source, gn_cli_shape *out)
{
    *out = (gn_cli_shape){0};
    if (gn_source_get_kind(source) == GN_SOURCE_GGUF) {
        gguf_shape(gn_source_gguf(source), out);
    } else {
        hf_shape(gn_source_config(source), out);
    }
}

uint64_t gn_cli_inspect_elements(const gn_view *view)
{
    uint64_t n = 1;
    for (int i = 0; i < view->n_dims; i++) {
        n *= view->shape[i];
    }
    return n;
}

static int by_bytes(const void *a, const void *b)
{
    const gn_cli_type_count *x = a;
    const gn_cli_type_count *y = b;
    return (x->n_bytes < y->n_bytes) - (x->n_bytes > y->n_bytes);
}

size_t gn_cli_inspect_types(const gn_source *source, gn_cli_type_count out[GN_CLI_MAX_TYPES])
{
    size_t n = 0;
    for (size_t i = 0; i < gn_source_n_tensors(source); i++) {
        const char *name;
        const gn_view *view = gn_source_tensor_at(source, i, &name);
        const gn_dtype_info *type = gn_dtype_find((uint32_t)view->dtype);
        size_t at = 0;
        while (at < n && out[at].type != type) {
            at++;
        }
        if (at == n) {
            if (n == GN_CLI_MAX_TYPES) {
                continue;
            }
            out[n++] = (gn_cli_type_count){.type = type};
        }
        out[at].n_tensors++;
        out[at].n_elements += gn_cli_inspect_elements(view);
        out[at].n_bytes += view->bytes;
    }
    qsort(out, n, sizeof *out, by_bytes);
    return n;
}
