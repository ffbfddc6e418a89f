/* The vocabulary of a GGUF file of any bytes: refused with a message, or texts go to ids and
 * back. */
#include "fuzz.h"

#include "text/detok.h"

#include <stdlib.h>
#include <string.h>

static void round_trip(const gn_tokenizer *t, const char *text, size_t len)
{
    gn_token_list ids = {0};
    gn_buf out = {0};
    if (gn_tokenizer_encode(t, text, len, GN_ENCODE_BOS | GN_ENCODE_SPECIAL, &ids) == GN_OK &&
        gn_tokenizer_decode(t, ids.ids, ids.n, true, &out) != GN_OK) {
        abort();
    }
    gn_buf_fini(&out);
    gn_token_list_fini(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "a \xe2\x96\x81 b\n\n  c'd 12 \xc3\xa9\xff <s>\xf0\x9f\x98\x80";
    gn_gguf *gguf = NULL;
    gn_tokenizer *t = NULL;
    if (gn_gguf_open_memory(data, size, &gguf) != GN_OK) {
        return 0;
    }
    if (gn_tokenizer_create_gguf(gguf, &t) == GN_OK) {
        size_t tail = size < 512 ? size : 512;
        round_trip(t, text, strlen(text));
        round_trip(t, (const char *)data + size - tail, tail);
        for (int32_t id = 0; id < gn_tokenizer_n_vocab(t); id++) {
            size_t len;
            const char *s = gn_tokenizer_spelling(t, id, &len);
            if (len != 0 && gn_tokenizer_find(t, s, len) != id) {
                abort();
            }
        }
    } else if (gn_error_message()[0] == '\0') {
        abort();
    }
    gn_tokenizer_destroy(t);
    gn_gguf_close(gguf);
    return 0;
}
