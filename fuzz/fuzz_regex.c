/* Regular expressions: the first byte chooses flags, the rest is the expression; a short text is matched. */
#include <stddef.h>
#include <stdint.h>

#include "grammar/matcher.h"
#include "grammar/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 512) {
        return 0;
    }
    gn_grammar *g = NULL;
    if (gn_grammar_regex((const char *)data + 1, size - 1, data[0] & 31u, &g) != GN_OK) {
        return 0;
    }
    gn_matcher *m = NULL;
    if (gn_matcher_create(g, NULL, &m) == GN_OK) {
        gn_status status = gn_matcher_accept_bytes(m, "abc1 ", 5, NULL);
        gn_buf end = {0};
        if (status == GN_OK || gn_matcher_shortest_len(m) < 4096) {
            status = gn_matcher_shortest(m, &end);
        }
        gn_buf_fini(&end);
    }
    gn_matcher_destroy(m);
    gn_grammar_destroy(g);
    return 0;
}
