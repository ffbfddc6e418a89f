/* Regular expressions in RE2's syntax (github.com/google/re2/wiki/Syntax), to nodes of a pool. */
#ifndef GN_GRAMMAR_REGEX_H
#define GN_GRAMMAR_REGEX_H

#include "grammar/compile.h"
#include "grammar/re.h"

#define GN_REGEX_SEARCH                                                                            \
    1u /* a match anywhere is enough (JSON Schema's pattern); else the whole text */
#define GN_REGEX_JSON                                                                              \
    2u /* over the inside of a JSON string: each character in any of its spellings */
#define GN_REGEX_ECMA                                                                              \
    4u /* ECMA-262 spellings too: \d and \w ASCII, \uXXXX, \cX, (?<name> ), \/ , $ */
#define GN_REGEX_ICASE  8u
#define GN_REGEX_DOTALL 16u

/* Parse text[0 .. len), valid UTF-8. ^ and $ (\A, \z) are honoured at the ends of the whole expression and of
 * its top-level alternatives. Lookahead (?=…) and (?!…) are honoured at the start of an expression or
 * right after its ^, where they are intersection and complement. GN_E_FORMAT: malformed (message: what and at which byte);
 * GN_E_UNSUPPORTED: back references, \b, look-around elsewhere: named with the byte. GN_E_LIMIT: too
 * large. */
GN_MUST_USE gn_status gn_grammar_regex_parse(gn_re_pool *pool, const char *text, size_t len,
                                             unsigned flags, gn_re *out);

/* Ranges of a Unicode general category or script in RE2's spelling ("L", "Lu", "Greek", "Han" …), sorted.
 * *out is gn_free()d by the caller. GN_E_UNSUPPORTED: no such class. */
GN_MUST_USE gn_status gn_grammar_unicode_class(const char *name, size_t len, gn_re_range **out,
                                               size_t *n);

/* The grammar whose texts are those that match as a whole. Codes as above and those of gn_grammar_compile(). */
GN_MUST_USE gn_status gn_grammar_regex(const char *text, size_t len, unsigned flags,
                                       gn_grammar **out);

#endif
