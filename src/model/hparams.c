/* Reading the numbers that decoder architectures share, under their GGUF and config.json names. */
#include "model/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Bounds that no real model comes near, so that later products of them fit 64 bits. */
#define MAX_DIM   (1u << 20)
#define MAX_VOCAB (1u << 24)
#define MAX_CTX   (1u << 27)
#define MAX_HEADS (1u << 14)

static gn_status read_sizes(const gn_meta *m, gn_hparams *hp)
{
    GN_TRY(gn_meta_need_u32(m, "embedding_length", "hidden_size", 1, MAX_DIM, &hp->n_embd));
    GN_TRY(gn_meta_need_u32(m, "block_count", "num_hidden_layers", 1, GN_MAX_LAYERS, &hp->n_layer));
    GN_TRY(gn_meta_need_u32(m, "attention.head_count", "num_attention_heads", 1, MAX_HEADS,
                            &hp->n_head));
    GN_TRY(gn_meta_u32(m, "attention.head_count_kv", "num_key_value_heads", 1, MAX_HEADS,
                       hp->n_head, &hp->n_head_kv, NULL));
    GN_TRY(gn_meta_need_u32(m, "feed_forward_length", "intermediate_size", 1, MAX_DIM, &hp->n_ff));
    GN_TRY(gn_meta_u32(m, "context_length", "max_position_embeddings", 1, MAX_CTX, 2048, &hp->n_ctx,
                       NULL));
    GN_TRY(gn_meta_u32(m, "attention.key_length", "head_dim", 1, 4096, hp->n_embd / hp->n_head,
                       &hp->head_dim, NULL));
    GN_REQUIRE(hp->head_dim >= 1, GN_E_FORMAT,
               "head count: found %u, expected at most %u (the embedding)", hp->n_head, hp->n_embd);
    uint32_t value_length = 0;
    GN_TRY(
        gn_meta_u32(m, "attention.value_length", NULL, 1, 4096, hp->head_dim, &value_length, NULL));
    GN_REQUIRE(value_length == hp->head_dim, GN_E_UNSUPPORTED,
               "heads with keys of %u and values of %u elements are not supported", hp->head_dim,
               value_length);
    GN_TRY(gn_meta_u32(m, "expert_count", "num_local_experts", 0, 4096, 0, &hp->n_expert, NULL));
    if (hp->n_expert == 0) {
        GN_TRY(gn_meta_u32(m, NULL, "num_experts", 0, 4096, 0, &hp->n_expert, NULL));
    }
    GN_TRY(gn_meta_u32(m, "expert_used_count", "num_experts_per_tok", 0, 4096, 0,
                       &hp->n_expert_used, NULL));
    return gn_meta_u32(m, "expert_feed_forward_length", "moe_intermediate_size", 1, MAX_DIM,
                       hp->n_ff, &hp->n_ff_expert, NULL);
}

static gn_status scaling_by_name(const char *name, gn_rope_params *rope)
{
    static const struct {
        const char *name;
        gn_rope_scaling scaling;
    } known[] = {
        {"", GN_ROPE_SCALING_NONE},
        {"none", GN_ROPE_SCALING_NONE},
        {"default", GN_ROPE_SCALING_NONE},
        {"linear", GN_ROPE_SCALING_LINEAR},
        {"yarn", GN_ROPE_SCALING_YARN},
        {"llama3", GN_ROPE_SCALING_LLAMA3},
        {"longrope", GN_ROPE_SCALING_LONGROPE},
        {"su", GN_ROPE_SCALING_LONGROPE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) == 0) {
            rope->scaling = known[i].scaling;
            return GN_OK;
        }
    }
    return gn_base_fail(
        GN_E_UNSUPPORTED,
        "RoPE scaling \"%s\" is not supported (none, linear, yarn, llama3, longrope are)", name);
}

static gn_status read_rope_gguf(const gn_meta *m, gn_rope_params *rope, uint32_t n_ctx)
{
    GN_TRY(gn_meta_f32(m, "rope.freq_base", NULL, 10000.0f, &rope->base, NULL));
    char key[96];
    (void)snprintf(key, sizeof key, "%s.rope.scaling.type", m->arch);
    gn_gguf_str type = {"", 0};
    gn_status status = gn_gguf_get_str(m->gguf, key, &type);
    if (status != GN_OK && status != GN_E_NOT_FOUND) {
        return status;
    }
    char name[32] = "";
    GN_REQUIRE(type.len < sizeof name, GN_E_UNSUPPORTED, "RoPE scaling of a %zu-byte name",
               type.len);
    memcpy(name, type.s, type.len);
    GN_TRY(scaling_by_name(name, rope));
    GN_TRY(gn_meta_f32(m, "rope.scaling.factor", NULL, 1.0f, &rope->factor, NULL));
    GN_TRY(gn_meta_u32(m, "rope.scaling.original_context_length", NULL, 1, MAX_CTX, n_ctx,
                       &rope->n_ctx_orig, NULL));
    GN_TRY(gn_meta_f32(m, "rope.scaling.attn_factor", NULL, 0.0f, &rope->attn_factor, NULL));
    GN_TRY(gn_meta_f32(m, "rope.scaling.yarn_beta_fast", NULL, 32.0f, &rope->beta_fast, NULL));
    return gn_meta_f32(m, "rope.scaling.yarn_beta_slow", NULL, 1.0f, &rope->beta_slow, NULL);
}

/* `object` is config.json's rope_parameters (or rope_scaling, older), or one member of it. */
static gn_status read_rope_json(const json_t *object, gn_rope_params *rope, uint32_t n_ctx)
{
    static const char where[] = "config.json: rope_parameters";
    const char *type = gn_meta_json_str(object, "rope_type");
    GN_TRY(scaling_by_name(*type != '\0' ? type : gn_meta_json_str(object, "type"), rope));
    GN_TRY(gn_meta_json_f32(object, where, "rope_theta", rope->base, &rope->base, NULL));
    GN_TRY(gn_meta_json_f32(object, where, "factor", 1.0f, &rope->factor, NULL));
    GN_TRY(gn_meta_json_f32(object, where, "attention_factor", 0.0f, &rope->attn_factor, NULL));
    GN_TRY(gn_meta_json_f32(object, where, "beta_fast", 32.0f, &rope->beta_fast, NULL));
    GN_TRY(gn_meta_json_f32(object, where, "beta_slow", 1.0f, &rope->beta_slow, NULL));
    GN_TRY(gn_meta_json_f32(object, where, "low_freq_factor", 1.0f, &rope->low_freq_factor, NULL));
    GN_TRY(
        gn_meta_json_f32(object, where, "high_freq_factor", 4.0f, &rope->high_freq_factor, NULL));
    float orig = 0.0f;
    GN_TRY(gn_meta_json_f32(object, where, "original_max_position_embeddings", (float)n_ctx, &orig,
                            NULL));
    GN_REQUIRE(orig >= 1.0f && orig <= (float)MAX_CTX, GN_E_FORMAT,
               "%s: original_max_position_embeddings: found %g", where, (double)orig);
    rope->n_ctx_orig = (uint32_t)orig;
    rope->truncate = gn_meta_json_bool(object, "truncate", true);
    rope->short_factor = json_object_get(object, "short_factor");
    rope->long_factor = json_object_get(object, "long_factor");
    return GN_OK;
}

/* rope_parameters, else rope_scaling; NULL where config.json has neither. */
static gn_status find_rope(const json_t *config, const json_t **out)
{
    static const char *const names[] = {"rope_parameters", "rope_scaling"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && *out == NULL; i++) {
        const json_t *value = json_object_get(config, names[i]);
        GN_REQUIRE(value == NULL || json_is_null(value) || json_is_object(value), GN_E_FORMAT,
                   "config.json: \"%s\" is no object", names[i]);
        *out = json_is_object(value) ? value : NULL;
    }
    return GN_OK;
}

static gn_status read_rope(const gn_meta *m, gn_hparams *hp)
{
    gn_rope_params *rope = &hp->rope;
    *rope = (gn_rope_params){.factor = 1.0f,
                             .beta_fast = 32.0f,
                             .beta_slow = 1.0f,
                             .truncate = true,
                             .low_freq_factor = 1.0f,
                             .high_freq_factor = 4.0f};
    float partial = 1.0f;
    GN_TRY(gn_meta_f32(m, NULL, "partial_rotary_factor", 1.0f, &partial, NULL));
    if (m->gguf != NULL) {
        GN_TRY(read_rope_gguf(m, rope, hp->n_ctx));
        GN_TRY(
            gn_meta_u32(m, "rope.dimension_count", NULL, 1, 4096, hp->head_dim, &hp->n_rot, NULL));
        hp->rope_local = *rope;
        hp->rope_local.scaling = GN_ROPE_SCALING_NONE;
        return GN_OK;
    }
    GN_TRY(gn_meta_f32(m, NULL, "rope_theta", 10000.0f, &rope->base, NULL));
    const json_t *params = NULL;
    GN_TRY(find_rope(m->config, &params));
    const json_t *full = json_object_get(params, "full_attention");
    const json_t *local = json_object_get(params, "sliding_attention");
    hp->rope_local = *rope;
    uint32_t n_ctx_orig = 0;
    GN_TRY(gn_meta_u32(m, NULL, "original_max_position_embeddings", 1, MAX_CTX, hp->n_ctx,
                       &n_ctx_orig, NULL));
    GN_TRY(read_rope_json(json_is_object(full) ? full : params, rope, n_ctx_orig));
    if (json_is_object(local)) {
        GN_TRY(read_rope_json(local, &hp->rope_local, n_ctx_orig));
    } else {
        hp->rope_local = *rope;
        GN_TRY(
            gn_meta_f32(m, NULL, "rope_local_base_freq", rope->base, &hp->rope_local.base, NULL));
    }
    GN_TRY(gn_meta_json_f32(params, "config.json: rope_parameters", "partial_rotary_factor",
                            partial, &partial, NULL));
    GN_REQUIRE(partial > 0.0f && partial <= 1.0f, GN_E_FORMAT,
               "config.json: partial_rotary_factor: found %g, expected above 0, at most 1",
               (double)partial);
    hp->n_rot = (uint32_t)((float)hp->head_dim * partial);
    return GN_OK;
}

gn_status gn_hparams_read(const gn_meta *m, gn_hparams *out)
{
    gn_hparams *hp = out;
    memset(hp, 0, sizeof *hp);
    GN_TRY(read_sizes(m, hp));
    GN_TRY(gn_meta_f32(m, "attention.layer_norm_rms_epsilon", "rms_norm_eps", 1e-6f, &hp->norm_eps,
                       NULL));
    hp->act = GN_ACT_SILU;
    hp->embd_scale = 1.0f;
    hp->attn_scale = 1.0f / sqrtf((float)hp->head_dim);
    hp->rope_pairs = GN_ROPE_NEOX;
    hp->expert_norm_topk = true;
    if (m->gguf == NULL) {
        hp->untied = json_is_false(json_object_get(m->config, "tie_word_embeddings"));
        uint32_t n_vocab = 0;
        GN_TRY(gn_meta_need_u32(m, NULL, "vocab_size", 1, MAX_VOCAB, &n_vocab));
        hp->n_vocab = n_vocab;
    } /* else the embedding's rows say it */
    return read_rope(m, hp);
}

gn_status gn_hparams_layer_types(const gn_meta *m, gn_hparams *hp, bool *found)
{
    const json_t *types = m->config != NULL ? json_object_get(m->config, "layer_types") : NULL;
    *found = json_is_array(types);
    if (!*found) {
        return GN_OK;
    }
    GN_REQUIRE(json_array_size(types) >= hp->n_layer, GN_E_FORMAT,
               "config.json: layer_types: found %zu entries, expected %u", json_array_size(types),
               hp->n_layer);
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        bool local = type != NULL && strcmp(type, "sliding_attention") == 0;
        GN_REQUIRE(local || (type != NULL && strcmp(type, "full_attention") == 0), GN_E_UNSUPPORTED,
                   "config.json: layer_types[%u]: found \"%s\", expected full_attention or "
                   "sliding_attention",
                   i, type != NULL ? type : "?");
        hp->windowed[i] = local;
    }
    return GN_OK;
}

static gn_status check_rope(const gn_rope_params *rope)
{
    GN_REQUIRE(rope->base > 0.0f && rope->factor > 0.0f, GN_E_FORMAT,
               "RoPE base and factor: found %g and %g, expected above 0", (double)rope->base,
               (double)rope->factor);
    GN_REQUIRE(rope->scaling != GN_ROPE_SCALING_LLAMA3 ||
                   rope->high_freq_factor > rope->low_freq_factor,
               GN_E_FORMAT, "RoPE scaling llama3: high_freq_factor must be above low_freq_factor");
    return GN_OK;
}

gn_status gn_hparams_check(const gn_hparams *hp)
{
    GN_REQUIRE(hp->n_head % hp->n_head_kv == 0, GN_E_FORMAT,
               "heads: found %u for queries and %u for keys, expected a multiple", hp->n_head,
               hp->n_head_kv);
    GN_REQUIRE(hp->n_head / hp->n_head_kv <= GN_MAX_GROUP, GN_E_UNSUPPORTED,
               "%u query heads on one key-value head are not supported (up to %u are)",
               hp->n_head / hp->n_head_kv, GN_MAX_GROUP);
    GN_REQUIRE((uint64_t)hp->n_head * hp->head_dim <= (1u << 24), GN_E_FORMAT,
               "heads: found %u of %u elements, expected at most 2^24 in all", hp->n_head,
               hp->head_dim);
    GN_REQUIRE(hp->n_rot % 2 == 0 && hp->n_rot >= 2 && hp->n_rot <= hp->head_dim, GN_E_FORMAT,
               "rotated elements of a head: found %u, expected an even number up to %u", hp->n_rot,
               hp->head_dim);
    GN_REQUIRE(hp->norm_eps >= 0.0f && hp->norm_eps < 1.0f, GN_E_FORMAT,
               "norm epsilon: found %g, expected 0 to 1", (double)hp->norm_eps);
    GN_REQUIRE(hp->n_expert == 0 || (hp->n_expert_used >= 1 && hp->n_expert_used <= hp->n_expert),
               GN_E_FORMAT, "experts: found %u used of %u, expected 1 to %u", hp->n_expert_used,
               hp->n_expert, hp->n_expert);
    GN_TRY(check_rope(&hp->rope));
    return check_rope(&hp->rope_local);
}
