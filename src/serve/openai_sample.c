#include "serve/openai.h"

#include "os/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- sampling --- */

static gn_status read_bias(gn_ask *ask, gn_arena *arena, const gn_json *body,
                           gn_sample_params *sample)
{
    const gn_json *map = NULL;
    GN_TRY(gn_ask_member(ask, body, "logit_bias", GN_JSON_OBJECT, &map));
    if (map == NULL || map->len == 0) {
        return GN_OK;
    }
    gn_logit_bias *bias = gn_arena_calloc(arena, map->len, sizeof *bias);
    GN_REQUIRE(bias != NULL, GN_E_NOMEM, "out of memory");
    size_t n = 0;
    for (const gn_json *entry = map->first; entry != NULL; entry = entry->next) {
        char *end = NULL;
        long id = strtol(entry->key, &end, 10);
        if (entry->key[0] < '0' || entry->key[0] > '9' || *end != '\0' || id < 0 ||
            id > INT32_MAX) {
            return gn_ask_refuse(ask, entry, "found the key \"%.40s\", expected a token's id",
                                 entry->key);
        }
        bias[n].id = (int32_t)id;
        GN_TRY(gn_ask_float(ask, map, entry->key, -100, 100, &bias[n].bias));
        n++;
    }
    sample->logit_bias = bias;
    sample->n_logit_bias = n;
    return GN_OK;
}

static gn_status read_penalties(gn_ask *ask, const gn_json *body, gn_sample_params *s)
{
    GN_TRY(gn_ask_float(ask, body, "presence_penalty", -2, 2, &s->presence_penalty));
    GN_TRY(gn_ask_float(ask, body, "frequency_penalty", -2, 2, &s->frequency_penalty));
    GN_TRY(gn_ask_float(ask, body, "repeat_penalty", 0.01f, 10, &s->repetition_penalty));
    GN_TRY(gn_ask_float(ask, body, "repetition_penalty", 0.01f, 10, &s->repetition_penalty));
    s->penalty_last_n = -1;
    GN_TRY(gn_ask_int(ask, body, "repeat_last_n", -1, INT32_MAX, &s->penalty_last_n));
    GN_TRY(gn_ask_float(ask, body, "dry_multiplier", 0, 100, &s->dry_multiplier));
    GN_TRY(gn_ask_float(ask, body, "dry_base", 1, 100, &s->dry_base));
    GN_TRY(gn_ask_int(ask, body, "dry_allowed_length", 1, INT32_MAX, &s->dry_allowed_length));
    return gn_ask_int(ask, body, "dry_penalty_last_n", -1, INT32_MAX, &s->dry_last_n);
}

static gn_status read_filters(gn_ask *ask, const gn_json *body, gn_sample_params *s)
{
    GN_TRY(gn_ask_float(ask, body, "temperature", 0, 100, &s->temperature));
    GN_TRY(gn_ask_float(ask, body, "top_p", 0, 1, &s->top_p));
    GN_TRY(gn_ask_int(ask, body, "top_k", -1, INT32_MAX, &s->top_k));
    GN_TRY(gn_ask_float(ask, body, "min_p", 0, 1, &s->min_p));
    GN_TRY(gn_ask_float(ask, body, "typical_p", 0, 1, &s->typical_p));
    GN_TRY(gn_ask_float(ask, body, "top_n_sigma", -1, 100, &s->top_n_sigma));
    GN_TRY(gn_ask_float(ask, body, "xtc_probability", 0, 1, &s->xtc_probability));
    GN_TRY(gn_ask_float(ask, body, "xtc_threshold", 0, 0.5f, &s->xtc_threshold));
    /* 0 means "off" to some clients, and leaves nothing to choose from to the letter. */
    s->top_p = s->top_p == 0 ? 1e-6f : s->top_p;
    s->typical_p = s->typical_p == 0 ? 1.0f : s->typical_p;
    s->xtc_threshold = s->xtc_threshold == 0 ? 1e-6f : s->xtc_threshold;
    GN_TRY(gn_ask_int(ask, body, "min_tokens", 0, INT32_MAX, &s->min_tokens));
    return gn_ask_bool(ask, body, "ignore_eos", &s->ignore_eos);
}

gn_status gn_openai_read_sampling(gn_ask *ask, gn_arena *arena, const gn_json *body,
                                  gn_request_options *request)
{
    gn_sample_params *s = &request->sample;
    s->seed = gn_os_now_ns() * 0x9e3779b97f4a7c15ull; /* another one each time, unless asked */
    GN_TRY(read_filters(ask, body, s));
    GN_TRY(read_penalties(ask, body, s));
    GN_TRY(read_bias(ask, arena, body, s));
    GN_TRY(gn_ask_seed(ask, body, "seed", &s->seed));
    GN_TRY(gn_ask_int(ask, body, "max_tokens", -1, INT32_MAX, &request->max_tokens));
    GN_TRY(gn_ask_int(ask, body, "max_completion_tokens", -1, INT32_MAX, &request->max_tokens));
    GN_TRY(gn_ask_int(ask, body, "num_ctx", 1, INT32_MAX, &request->n_ctx));
    bool cache = true;
    GN_TRY(gn_ask_bool(ask, body, "cache_prompt", &cache));
    request->no_cache = !cache;
    GN_TRY(gn_ask_bool(ask, body, "skip_special_tokens", &cache));
    request->special = !cache && gn_ask_get(body, "skip_special_tokens") != NULL;
    return gn_ask_strings(ask, arena, body, "stop", GN_CHAT_MOST_STOPS, &request->stop,
                          &request->n_stop);
}

gn_status gn_openai_read_stream(gn_ask *ask, const gn_json *body, bool *stream, bool *include_usage)
{
    const gn_json *options = NULL;
    GN_TRY(gn_ask_bool(ask, body, "stream", stream));
    GN_TRY(gn_ask_member(ask, body, "stream_options", GN_JSON_OBJECT, &options));
    return options == NULL ? GN_OK : gn_ask_bool(ask, options, "include_usage", include_usage);
}

/* --- formats --- */

static gn_status set_format(gn_ask *ask, const gn_json *where, gn_chat_format format,
                            const char *text, size_t len, const char *param,
                            gn_chat_options *options)
{
    if (options->format != GN_FORMAT_TEXT) {
        return gn_ask_refuse(ask, where, "a second format beside %s, expected one",
                             options->format_param);
    }
    options->format = format;
    options->format_text = text;
    options->format_len = len;
    options->format_param = param;
    return GN_OK;
}

static gn_status set_schema(gn_ask *ask, const gn_json *schema, const char *param,
                            gn_chat_options *options)
{
    if (schema->type != GN_JSON_OBJECT && schema->type != GN_JSON_TRUE &&
        schema->type != GN_JSON_FALSE) {
        return gn_ask_unexpected(ask, schema, "a JSON Schema");
    }
    return set_format(ask, schema, GN_FORMAT_SCHEMA, schema->raw, schema->raw_len, param, options);
}

static gn_status read_response_format(gn_ask *ask, const gn_json *format, gn_chat_options *options)
{
    const gn_json *type = NULL;
    GN_TRY(gn_ask_needed(ask, format, "type", GN_JSON_STRING, &type));
    const gn_json *schema = gn_ask_get(format, "schema");
    if (gn_base_json_is(type, "text")) {
        return GN_OK;
    }
    if (gn_base_json_is(type, "json_object")) {
        return schema != NULL
                   ? set_schema(ask, schema, "response_format.schema", options)
                   : set_format(ask, format, GN_FORMAT_JSON, NULL, 0, "response_format", options);
    }
    if (!gn_base_json_is(type, "json_schema")) {
        return gn_ask_unexpected(ask, type, "\"text\", \"json_object\" or \"json_schema\"");
    }
    const gn_json *outer = NULL;
    GN_TRY(gn_ask_member(ask, format, "json_schema", GN_JSON_OBJECT, &outer));
    const gn_json *inner = outer != NULL ? gn_ask_get(outer, "schema") : schema;
    if (inner == NULL) {
        return gn_ask_missing(ask, outer != NULL ? outer : format, "schema", "a JSON Schema");
    }
    return set_schema(ask, inner, "response_format.json_schema.schema", options);
}

/* One of vLLM's members, under its own name or in structured_outputs. */
static gn_status read_guided(gn_ask *ask, const gn_json *object, const char *key,
                             gn_chat_format format, const char *param, gn_chat_options *options)
{
    const gn_json *value = gn_ask_get(object, key);
    if (value == NULL) {
        return GN_OK;
    }
    if (format == GN_FORMAT_SCHEMA && value->type == GN_JSON_STRING) {
        return set_format(ask, value, format, value->text, value->len, param, options);
    }
    if (format == GN_FORMAT_SCHEMA) {
        return set_schema(ask, value, param, options);
    }
    if (format == GN_FORMAT_CHOICE) {
        if (value->type != GN_JSON_ARRAY) {
            return gn_ask_unexpected(ask, value, "an array of strings");
        }
        return set_format(ask, value, format, value->raw, value->raw_len, param, options);
    }
    if (value->type != GN_JSON_STRING) {
        return gn_ask_unexpected(ask, value, "a string");
    }
    return value->len == 0
               ? GN_OK
               : set_format(ask, value, format, value->text, value->len, param, options);
}

gn_status gn_openai_read_format(gn_ask *ask, const gn_json *body, gn_chat_options *options)
{
    static const struct {
        const char *key;
        gn_chat_format format;
    } rows[] = {
        {"json_schema", GN_FORMAT_SCHEMA},  {"grammar", GN_FORMAT_GBNF},
        {"regex", GN_FORMAT_REGEX},         {"guided_json", GN_FORMAT_SCHEMA},
        {"guided_regex", GN_FORMAT_REGEX},  {"guided_choice", GN_FORMAT_CHOICE},
        {"guided_grammar", GN_FORMAT_GBNF},
    };
    static const struct {
        const char *key, *param;
        gn_chat_format format;
    } nested[] = {
        {"json", "structured_outputs.json", GN_FORMAT_SCHEMA},
        {"regex", "structured_outputs.regex", GN_FORMAT_REGEX},
        {"choice", "structured_outputs.choice", GN_FORMAT_CHOICE},
        {"grammar", "structured_outputs.grammar", GN_FORMAT_GBNF},
    };
    const gn_json *format = NULL;
    const gn_json *structured = NULL;
    GN_TRY(gn_ask_member(ask, body, "response_format", GN_JSON_OBJECT, &format));
    GN_TRY(gn_ask_member(ask, body, "structured_outputs", GN_JSON_OBJECT, &structured));
    if (format != NULL) {
        GN_TRY(read_response_format(ask, format, options));
    }
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        GN_TRY(read_guided(ask, body, rows[i].key, rows[i].format, rows[i].key, options));
    }
    for (size_t i = 0; structured != NULL && i < GN_COUNTOF(nested); i++) {
        GN_TRY(read_guided(ask, structured, nested[i].key, nested[i].format, nested[i].param,
                           options));
    }
    return gn_ask_bool(ask, body, "ordered", &options->format_ordered);
}

/* --- names --- */

/* Used, or known and ignored: docs/API.md says which. */
static const char *const known[] = {
    "model",
    "messages",
    "prompt",
    "temperature",
    "top_p",
    "n",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "stream",
    "stream_options",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "user",
    "prompt_cache_key",
    "functions",
    "function_call",
    "metadata",
    "store",
    "service_tier",
    "safety_identifier",
    "prompt_cache_retention",
    "prompt_cache_options",
    "verbosity",
    "prediction",
    "modalities",
    "audio",
    "web_search_options",
    "top_k",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "repeat_penalty",
    "repeat_last_n",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "chat_template_kwargs",
    "cache_prompt",
    "id_slot",
    "grammar",
    "json_schema",
    "regex",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "ordered",
    "min_tokens",
    "ignore_eos",
    "keep_alive",
    "options",
    "num_ctx",
    "echo",
    "best_of",
    "suffix",
    "skip_special_tokens",
    "add_generation_prompt",
    "continue_final_message",
    "return_tokens",
    "timings_per_token",
};

uint64_t gn_openai_count_unknown(const gn_json *body)
{
    return gn_ask_count_unknown(body, known, GN_COUNTOF(known));
}
