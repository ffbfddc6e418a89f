/* Values of a checked GGUF table: numbers by any width, strings, array elements. All reads are
 * unaligned, by memcpy. */
#include "file/gguf_table.h"

#include "file/show.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *gn_gguf_type_name(gn_gguf_type type)
{
    switch (type) {
    case GN_GGUF_U8: return "u8";
    case GN_GGUF_I8: return "i8";
    case GN_GGUF_U16: return "u16";
    case GN_GGUF_I16: return "i16";
    case GN_GGUF_U32: return "u32";
    case GN_GGUF_I32: return "i32";
    case GN_GGUF_F32: return "f32";
    case GN_GGUF_BOOL: return "bool";
    case GN_GGUF_STRING: return "string";
    case GN_GGUF_ARRAY: return "array";
    case GN_GGUF_U64: return "u64";
    case GN_GGUF_I64: return "i64";
    case GN_GGUF_F64: return "f64";
    }
    return "?";
}

/* ---- one number ---- */

typedef enum number_kind { NOT_A_NUMBER, UNSIGNED, SIGNED, REAL, BOOLEAN } number_kind;

typedef struct number {
    number_kind kind;
    uint64_t u; /* UNSIGNED, BOOLEAN */
    int64_t i;  /* SIGNED */
    double f;   /* REAL */
} number;

/* LOAD(T, p, i): the i-th T of an unaligned array. */
#define LOAD(T, member, k)                                                                         \
    do {                                                                                           \
        T load_;                                                                                   \
        memcpy(&load_, p + i * sizeof load_, sizeof load_);                                        \
        x.member = load_;                                                                          \
        x.kind = (k);                                                                              \
    } while (0)

static number load(gn_gguf_type type, const void *data, uint64_t i)
{
    const unsigned char *p = data;
    number x = {0};
    switch (type) {
    case GN_GGUF_U8: LOAD(uint8_t, u, UNSIGNED); break;
    case GN_GGUF_U16: LOAD(uint16_t, u, UNSIGNED); break;
    case GN_GGUF_U32: LOAD(uint32_t, u, UNSIGNED); break;
    case GN_GGUF_U64: LOAD(uint64_t, u, UNSIGNED); break;
    case GN_GGUF_BOOL: LOAD(uint8_t, u, BOOLEAN); break;
    case GN_GGUF_I8: LOAD(int8_t, i, SIGNED); break;
    case GN_GGUF_I16: LOAD(int16_t, i, SIGNED); break;
    case GN_GGUF_I32: LOAD(int32_t, i, SIGNED); break;
    case GN_GGUF_I64: LOAD(int64_t, i, SIGNED); break;
    case GN_GGUF_F32: {
        float f;
        memcpy(&f, p + i * sizeof f, sizeof f);
        x.f = (double)f;
        x.kind = REAL;
        break;
    }
    case GN_GGUF_F64: LOAD(double, f, REAL); break;
    case GN_GGUF_STRING:
    case GN_GGUF_ARRAY: break;
    }
    return x;
}
#undef LOAD

uint64_t gn_gguf_elem_u64(const gn_gguf_value *value, uint64_t i)
{
    assert(i < value->n);
    number x = load(value->elem, value->data, i);
    assert(x.kind == UNSIGNED || x.kind == SIGNED || x.kind == BOOLEAN);
    return x.kind == SIGNED ? (uint64_t)x.i : x.u;
}

int64_t gn_gguf_elem_i64(const gn_gguf_value *value, uint64_t i)
{
    return (int64_t)gn_gguf_elem_u64(value, i);
}

double gn_gguf_elem_f64(const gn_gguf_value *value, uint64_t i)
{
    assert(i < value->n);
    number x = load(value->elem, value->data, i);
    assert(x.kind != NOT_A_NUMBER);
    if (x.kind == REAL) {
        return x.f;
    }
    return x.kind == SIGNED ? (double)x.i : (double)x.u;
}

gn_gguf_str gn_gguf_str_next(const gn_gguf_value *value, const void **cursor)
{
    assert(value->elem == GN_GGUF_STRING);
    const unsigned char *p = *cursor != NULL ? *cursor : value->data;
    uint64_t len;
    memcpy(&len, p, sizeof len);
    gn_gguf_str str = {.s = (const char *)p + sizeof len, .len = len};
    *cursor = p + sizeof len + len;
    return str;
}

/* ---- getters ---- */

const gn_gguf_value *gn_gguf_table_find(const gn_gguf_table *table, const char *key)
{
    const uint32_t *index = gn_map_find(&table->by_key, key, strlen(key));
    return index != NULL ? &table->values[*index] : NULL;
}

static gn_status need(const gn_gguf_table *table, const char *key, const gn_gguf_value **out)
{
    *out = gn_gguf_table_find(table, key);
    GN_REQUIRE(*out != NULL, GN_E_NOT_FOUND, "key \"%s\": not found", key);
    return GN_OK;
}

static gn_status wrong_type(const gn_gguf_value *value, const char *expected)
{
    return gn_base_fail(GN_E_FORMAT, "key \"%s\": found type %s, expected %s",
                        gn_file_show(value->key.s, value->key.len).text,
                        gn_gguf_type_name(value->type), expected);
}

gn_status gn_gguf_table_get_u64(const gn_gguf_table *table, const char *key, uint64_t *out)
{
    const gn_gguf_value *value = NULL;
    GN_TRY(need(table, key, &value));
    number x = load(value->type, value->data, 0);
    if (x.kind == SIGNED) {
        GN_REQUIRE(x.i >= 0, GN_E_FORMAT, "key \"%s\": found %" PRId64 ", expected 0 or more", key,
                   x.i);
        x.u = (uint64_t)x.i;
    } else if (x.kind != UNSIGNED) {
        return wrong_type(value, "an integer");
    }
    *out = x.u;
    return GN_OK;
}

gn_status gn_gguf_table_get_i64(const gn_gguf_table *table, const char *key, int64_t *out)
{
    const gn_gguf_value *value = NULL;
    GN_TRY(need(table, key, &value));
    number x = load(value->type, value->data, 0);
    if (x.kind == UNSIGNED) {
        GN_REQUIRE(x.u <= INT64_MAX, GN_E_FORMAT,
                   "key \"%s\": found %" PRIu64 ", expected at most %" PRId64, key, x.u, INT64_MAX);
        x.i = (int64_t)x.u;
    } else if (x.kind != SIGNED) {
        return wrong_type(value, "an integer");
    }
    *out = x.i;
    return GN_OK;
}

gn_status gn_gguf_table_get_f64(const gn_gguf_table *table, const char *key, double *out)
{
    const gn_gguf_value *value = NULL;
    GN_TRY(need(table, key, &value));
    number x = load(value->type, value->data, 0);
    if (x.kind == NOT_A_NUMBER || x.kind == BOOLEAN) {
        return wrong_type(value, "a number");
    }
    double f = gn_gguf_elem_f64(value, 0);
    GN_REQUIRE(isfinite(f), GN_E_FORMAT, "key \"%s\": found %f, expected a finite number", key, f);
    *out = f;
    return GN_OK;
}

gn_status gn_gguf_table_get_bool(const gn_gguf_table *table, const char *key, bool *out)
{
    const gn_gguf_value *value = NULL;
    GN_TRY(need(table, key, &value));
    if (value->type != GN_GGUF_BOOL) {
        return wrong_type(value, "bool");
    }
    *out = gn_gguf_elem_u64(value, 0) != 0;
    return GN_OK;
}

gn_status gn_gguf_table_get_str(const gn_gguf_table *table, const char *key, gn_gguf_str *out)
{
    const gn_gguf_value *value = NULL;
    GN_TRY(need(table, key, &value));
    if (value->type != GN_GGUF_STRING) {
        return wrong_type(value, "string");
    }
    const void *cursor = NULL;
    *out = gn_gguf_str_next(value, &cursor);
    return GN_OK;
}
