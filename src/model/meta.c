#include "model/meta.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

gn_status gn_meta_init(gn_meta *meta, const gn_source *source)
{
    *meta = (gn_meta){.source = source, .gguf = gn_source_gguf(source)};
    const char *name = "";
    size_t len = 0;
    if (meta->gguf != NULL) {
        gn_gguf_str s;
        GN_TRY(gn_gguf_get_str(meta->gguf, "general.architecture", &s));
        name = s.s;
        len = s.len;
    } else {
        const json_t *config = gn_source_config(source);
        const json_t *text = json_object_get(config, "text_config");
        meta->config = json_is_object(text) ? text : config;
        name = gn_meta_json_str(meta->config, "model_type");
        len = strlen(name);
    }
    GN_REQUIRE(len != 0 && len < sizeof meta->arch, GN_E_FORMAT,
               "the architecture's name: found %zu bytes, expected 1 to %zu", len,
               sizeof meta->arch - 1);
    memcpy(meta->arch, name, len);
    meta->arch[len] = '\0';
    return GN_OK;
}

const char *gn_meta_json_str(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s != NULL ? s : "";
}

bool gn_meta_json_bool(const json_t *object, const char *key, bool absent)
{
    const json_t *value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : absent;
}

gn_status gn_meta_json_f32(const json_t *object, const char *where, const char *key, float absent,
                           float *out, bool *found)
{
    const json_t *value = json_object_get(object, key);
    bool present = value != NULL && !json_is_null(value);
    if (found != NULL) {
        *found = present;
    }
    if (!present) {
        *out = absent;
        return GN_OK;
    }
    GN_REQUIRE(json_is_number(value), GN_E_FORMAT, "%s: \"%s\" is no number", where, key);
    double v = json_number_value(value);
    GN_REQUIRE(isfinite(v) && fabs(v) <= 1e30, GN_E_FORMAT,
               "%s: \"%s\": found %g, expected a finite number", where, key, v);
    *out = (float)v;
    return GN_OK;
}

/* "ARCH.key" in out[160]. */
static void full_key(const gn_meta *meta, const char *key, char out[160])
{
    (void)snprintf(out, 160, "%s.%s", meta->arch, key);
}

/* A GGUF number, or an array of equal numbers (per-layer values that do not differ). */
static gn_status gguf_number(const gn_meta *meta, const char *key, double *out, bool *found)
{
    char name[160];
    full_key(meta, key, name);
    const gn_gguf_value *value = gn_gguf_find(meta->gguf, name);
    *found = value != NULL;
    if (value == NULL) {
        return GN_OK;
    }
    if (value->type != GN_GGUF_ARRAY) {
        GN_TRY(gn_gguf_get_f64(meta->gguf, name, out));
    } else {
        GN_REQUIRE(value->n >= 1 && value->elem != GN_GGUF_STRING && value->elem != GN_GGUF_ARRAY,
                   GN_E_FORMAT, "key \"%s\": found an array without numbers", name);
        *out = gn_gguf_elem_f64(value, 0);
        for (uint64_t i = 1; i < value->n; i++) {
            double v = gn_gguf_elem_f64(value, i);
            GN_REQUIRE(!(v < *out) && !(v > *out), GN_E_UNSUPPORTED,
                       "key \"%s\": layers with different values (%g and %g) are not supported",
                       name, *out, v);
        }
    }
    GN_REQUIRE(isfinite(*out) && fabs(*out) <= 1e30, GN_E_FORMAT,
               "key \"%s\": found %g, expected a finite number", name, *out);
    return GN_OK;
}

/* The number under either name. */
static gn_status number(const gn_meta *meta, const char *gguf_key, const char *hf_key, double *out,
                        bool *found)
{
    *found = false;
    if (meta->gguf != NULL) {
        return gguf_key != NULL ? gguf_number(meta, gguf_key, out, found) : GN_OK;
    }
    if (hf_key == NULL) {
        return GN_OK;
    }
    const json_t *value = json_object_get(meta->config, hf_key);
    if (value == NULL || json_is_null(value)) {
        return GN_OK;
    }
    GN_REQUIRE(json_is_number(value), GN_E_FORMAT, "config.json: \"%s\" is no number", hf_key);
    *out = json_number_value(value);
    *found = true;
    GN_REQUIRE(isfinite(*out) && fabs(*out) <= 1e30, GN_E_FORMAT,
               "config.json: \"%s\": found %g, expected a finite number", hf_key, *out);
    return GN_OK;
}

/* The name that a message should use, in out[160]. */
static const char *shown(const gn_meta *meta, const char *gguf_key, const char *hf_key,
                         char out[160])
{
    if (meta->gguf == NULL) {
        (void)snprintf(out, 160, "%s", hf_key != NULL ? hf_key : "?");
    } else {
        full_key(meta, gguf_key != NULL ? gguf_key : "?", out);
    }
    return out;
}

gn_status gn_meta_u32(const gn_meta *meta, const char *gguf_key, const char *hf_key, uint32_t lo,
                      uint32_t hi, uint32_t absent, uint32_t *out, bool *found)
{
    double v = 0.0;
    bool present = false;
    GN_TRY(number(meta, gguf_key, hf_key, &v, &present));
    if (found != NULL) {
        *found = present;
    }
    if (!present) {
        *out = absent;
        return GN_OK;
    }
    char name[160];
    GN_REQUIRE(v >= (double)lo && v <= (double)hi && v == floor(v), GN_E_FORMAT,
               "\"%s\": found %g, expected a whole number from %u to %u",
               shown(meta, gguf_key, hf_key, name), v, lo, hi);
    *out = (uint32_t)v;
    return GN_OK;
}

gn_status gn_meta_need_u32(const gn_meta *meta, const char *gguf_key, const char *hf_key,
                           uint32_t lo, uint32_t hi, uint32_t *out)
{
    bool found = false;
    char name[160];
    GN_TRY(gn_meta_u32(meta, gguf_key, hf_key, lo, hi, 0, out, &found));
    GN_REQUIRE(found, GN_E_FORMAT, "\"%s\" is missing", shown(meta, gguf_key, hf_key, name));
    return GN_OK;
}

gn_status gn_meta_f32(const gn_meta *meta, const char *gguf_key, const char *hf_key, float absent,
                      float *out, bool *found)
{
    double v = 0.0;
    bool present = false;
    GN_TRY(number(meta, gguf_key, hf_key, &v, &present));
    if (found != NULL) {
        *found = present;
    }
    *out = present ? (float)v : absent;
    return GN_OK;
}
