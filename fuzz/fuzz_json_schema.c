/* A JSON Schema of any bytes: compiled or refused with a message, within the bounds; what is compiled has a
 * shortest text, which it accepts. */
#include "fuzz.h"

#include "base/alloc.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gn_grammar *grammar = NULL;
    gn_buf pointer = {0};
    gn_status status = gn_grammar_json_schema((const char *)data, size, NULL, &grammar, &pointer);
    gn_buf_fini(&pointer);
    if (status != GN_OK) {
        if (gn_error_message()[0] == '\0') {
            abort();
        }
        return 0;
    }
    gn_matcher *matcher = NULL;
    gn_buf text = {0};
    if (gn_matcher_create(grammar, NULL, &matcher) == GN_OK &&
        gn_matcher_shortest_len(matcher) < 65536 && gn_matcher_shortest(matcher, &text) == GN_OK) {
        status = gn_matcher_accept_bytes(matcher, text.len != 0 ? text.data : "", text.len, NULL);
        if (status == GN_E_REFUSED || (status == GN_OK && !gn_matcher_may_end(matcher))) {
            abort();
        }
    }
    gn_buf_fini(&text);
    gn_matcher_destroy(matcher);
    gn_grammar_destroy(grammar);
    return 0;
}
