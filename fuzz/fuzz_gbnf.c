/* GBNF grammars: compiled, then a few forced bytes and a shortest text. */
#include <stddef.h>
#include <stdint.h>

#include "grammar/gbnf.h"
#include "grammar/matcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gn_grammar *g = NULL;
    if (size > 2048 || gn_grammar_gbnf((const char *)data, size, &g) != GN_OK) {
        return 0;
    }
    gn_matcher *m = NULL;
    if (gn_matcher_create(g, NULL, &m) == GN_OK) {
        gn_buf out = {0};
        gn_status status = gn_matcher_forced(m, 64, &out);
        if (status == GN_OK && gn_matcher_shortest_len(m) < 4096) {
            status = gn_matcher_shortest(m, &out);
        }
        gn_buf_fini(&out);
    }
    gn_matcher_destroy(m);
    gn_grammar_destroy(g);
    return 0;
}
