/* A tokenizer.json of any bytes, and behind the JSON text any text: refused with a message, or the
 * text goes to ids and back. */
#include "fuzz.h"

#include "text/detok.h"

#include <stdlib.h>

static void use(const gn_tokenizer *t, const char *text, size_t len, unsigned flags)
{
    gn_token_list ids = {0};
    gn_buf out = {0};
    gn_detok detok;
    gn_detok_init(&detok, t, true, true);
    if (gn_tokenizer_encode(t, text, len, flags, &ids) == GN_OK) {
        for (size_t i = 0; i < ids.n; i++) {
            size_t n;
            if (gn_tokenizer_spelling(t, ids.ids[i], &n) == NULL ||
                gn_detok_push(&detok, ids.ids[i], &out) != GN_OK) {
                abort();
            }
        }
        if (gn_detok_flush(&detok, &out) != GN_OK ||
            gn_tokenizer_decode(t, ids.ids, ids.n, false, &out) != GN_OK) {
            abort();
        }
    }
    gn_detok_fini(&detok);
    gn_buf_fini(&out);
    gn_token_list_fini(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    json_t *json = json_loadb((const char *)data, size, JSON_DISABLE_EOF_CHECK, &error);
    if (json == NULL) {
        return 0;
    }
    size_t end = error.position > 0 ? (size_t)error.position : 0;
    gn_tokenizer *t = NULL;
    if (gn_tokenizer_create_hf(json, NULL, &t) == GN_OK) {
        end = end < size ? end : size;
        use(t, (const char *)data + end, size - end, GN_ENCODE_BOS);
        use(t, (const char *)data + end, size - end, GN_ENCODE_SPECIAL);
    } else if (gn_error_message()[0] == '\0') {
        abort();
    }
    gn_tokenizer_destroy(t);
    json_decref(json);
    return 0;
}
