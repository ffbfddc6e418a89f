/* From template text to its tree. */
#ifndef GN_TEXT_JINJA_PARSE_H
#define GN_TEXT_JINJA_PARSE_H

#include "text/jinja_ast.h"

/* Parse source[0 .. len) into *out, which gn_jinja_program_fini() frees, also after a failure.
 * GN_E_FORMAT: "line L, column C: found X, expected Y"; GN_E_LIMIT: nested too deep or too large. */
GN_MUST_USE gn_status gn_jinja_parse(const char *source, size_t len, gn_jprogram *out);
void gn_jinja_program_fini(gn_jprogram *program);

#endif
