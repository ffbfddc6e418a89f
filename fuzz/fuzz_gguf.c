/* A GGUF file of any bytes: opened or refused; what is opened is read to the last value. */
#include "fuzz.h"

#include "file/gguf.h"

#include <stdlib.h>
#include <string.h>

static volatile unsigned char sink;

static void read_bytes(const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        sink ^= p[i];
    }
}

static void read_value(const gn_gguf *gguf, const gn_gguf_value *value)
{
    if (value->elem == GN_GGUF_STRING) {
        const void *cursor = NULL;
        for (uint64_t i = 0; i < value->n; i++) {
            gn_gguf_str s = gn_gguf_str_next(value, &cursor);
            read_bytes(s.s, s.len);
        }
    } else if (value->elem == GN_GGUF_F32 || value->elem == GN_GGUF_F64) {
        for (uint64_t i = 0; i < value->n; i++) {
            sink ^= gn_gguf_elem_f64(value, i) > 0;
        }
    } else if (value->elem != GN_GGUF_ARRAY) {
        for (uint64_t i = 0; i < value->n; i++) {
            sink ^= (unsigned char)gn_gguf_elem_u64(value, i);
        }
    }
    char *key = strndup(value->key.s, value->key.len);
    if (key == NULL || gn_gguf_find(gguf, key) != value) {
        abort();
    }
    uint64_t u;
    int64_t i;
    double f;
    bool b;
    gn_gguf_str s;
    sink ^= (unsigned char)(gn_gguf_get_u64(gguf, key, &u) == GN_OK);
    sink ^= (unsigned char)(gn_gguf_get_i64(gguf, key, &i) == GN_OK);
    sink ^= (unsigned char)(gn_gguf_get_f64(gguf, key, &f) == GN_OK);
    sink ^= (unsigned char)(gn_gguf_get_bool(gguf, key, &b) == GN_OK);
    sink ^= (unsigned char)(gn_gguf_get_str(gguf, key, &s) == GN_OK);
    free(key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gn_gguf *gguf = NULL;
    if (gn_gguf_open_memory(data, size, &gguf) != GN_OK) {
        if (gn_error_message()[0] == '\0') {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < gn_gguf_n_values(gguf); i++) {
        read_value(gguf, gn_gguf_value_at(gguf, i));
    }
    for (size_t i = 0; i < gn_gguf_n_tensors(gguf); i++) {
        const gn_view *view = &gn_gguf_tensor_at(gguf, i)->view;
        read_bytes(view->data, view->bytes);
    }
    gn_gguf_close(gguf);
    return 0;
}
