/* The public functions on grammars. */
#include "base/buf.h"
#include "ganglion/grammar.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/regex.h"

gn_status gn_grammar_from_schema(const char *json, size_t len, const gn_schema_options *options,
                                 gn_grammar **out, char **pointer)
{
    gn_json_schema_options inner = {0};
    if (options != NULL) {
        inner.ordered = options->ordered;
        inner.max_blanks = options->max_blanks;
    }
    gn_buf place = {0};
    gn_status status =
        gn_grammar_json_schema(json, len, &inner, out, pointer != NULL ? &place : NULL);
    if (pointer != NULL) {
        *pointer = status != GN_OK ? gn_buf_take(&place) : NULL;
    }
    gn_buf_fini(&place);
    return status;
}

gn_status gn_grammar_from_regex(const char *text, size_t len, gn_grammar **out)
{
    return gn_grammar_regex(text, len, 0, out);
}

gn_status gn_grammar_from_gbnf(const char *text, size_t len, gn_grammar **out)
{
    return gn_grammar_gbnf(text, len, out);
}

void gn_grammar_release(gn_grammar *grammar)
{
    gn_grammar_destroy(grammar);
}
