/* JSON Schema to a grammar: draft 2020-12, draft-7 and OpenAPI 3.0 spellings. */
#ifndef GN_GRAMMAR_JSON_SCHEMA_H
#define GN_GRAMMAR_JSON_SCHEMA_H

#include "base/buf.h"
#include "grammar/compile.h"
#include "grammar/frame.h"

typedef struct gn_json_schema_options { /* zeroed: the defaults */
    bool ordered; /* keys in the order of `properties`, those that are not named after them */
    uint32_t max_blanks; /* see gn_grammar_ir_json_blanks() */
    const gn_frame
        *frame; /* the text is values of the schema in this frame; NULL: one value alone */
} gn_json_schema_options;

/* Compile the schema text json[0 .. len). options may be NULL. On GN_E_UNSUPPORTED (a keyword that can't be
 * enforced), GN_E_FORMAT and GN_E_REFUSED `pointer` (may be NULL) gets the JSON pointer of the place. */
GN_MUST_USE gn_status gn_grammar_json_schema(const char *json, size_t len,
                                             const gn_json_schema_options *options,
                                             gn_grammar **out, gn_buf *pointer);

#endif
