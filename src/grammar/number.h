/* Numbers of JSON between decimal bounds, exactly: all arithmetic is on the digits, nothing is rounded. */
#ifndef GN_GRAMMAR_NUMBER_H
#define GN_GRAMMAR_NUMBER_H

#include "grammar/re.h"

typedef struct gn_number_rule {
    /* Bounds and step as JSON number texts ("-1.5", "1e3"), NULL: none. Borrowed. */
    const char *min, *max;
    bool min_exclusive, max_exclusive;
    const char *multiple_of; /* > 0 */
    bool integer;            /* whole values only; "1.0" is one */
} gn_number_rule;

/* Without bounds and step: all of JSON's number grammar (integers: no exponent, fraction of zeros allowed).
 * With any: plain decimals without an exponent, fraction digits as many as wanted. An empty range gives
 * GN_RE_NONE. GN_E_FORMAT: a text is no number. GN_E_LIMIT: over 400 digits, or a step too large for an
 * automaton (message says so). */
GN_MUST_USE gn_status gn_grammar_number(gn_re_pool *pool, const gn_number_rule *rule, gn_re *out);

#endif
