/* A grammar: the set of texts that an answer may be. Made from a JSON Schema, a regular expression or GBNF;
 * what can't be enforced is refused, what is accepted is enforced on every token. Immutable: any threads may
 * use one grammar in any number of generations. They are of one model: the first generation binds the grammar to
 * its model's vocabulary, and after that model is closed it may only be released. */
#ifndef GANGLION_GRAMMAR_H
#define GANGLION_GRAMMAR_H

#include "ganglion/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gn_grammar gn_grammar;

typedef struct gn_schema_options { /* zeroed: the defaults */
    bool ordered; /* keys in the order of `properties`, those that are not named after them */
    uint32_t max_blanks; /* most blanks in a row between the parts of the text; 0: the default */
} gn_schema_options;

/* docs/JSON_SCHEMA.md says what is enforced. options may be NULL. Codes: GN_E_FORMAT (no JSON, or a keyword
 * of the wrong type), GN_E_UNSUPPORTED (a keyword that can't be enforced), GN_E_REFUSED (no text fulfils the
 * schema), GN_E_LIMIT (too large), GN_E_NOMEM. Where the first three have a place, *pointer (may be NULL;
 * gn_release()) becomes its JSON pointer, else NULL. */
GN_MUST_USE GN_API gn_status gn_grammar_from_schema(const char *json, size_t len,
                                                    const gn_schema_options *options,
                                                    gn_grammar **out, char **pointer);
/* RE2's syntax; the whole text must match. */
GN_MUST_USE GN_API gn_status gn_grammar_from_regex(const char *text, size_t len, gn_grammar **out);
/* GBNF; the rule `root` is the text. */
GN_MUST_USE GN_API gn_status gn_grammar_from_gbnf(const char *text, size_t len, gn_grammar **out);
/* One more reference to it; returns `grammar`. */
GN_API gn_grammar *gn_grammar_ref(gn_grammar *grammar);
/* Gives back the caller's reference; generations that run keep theirs. NULL is fine. */
GN_API void gn_grammar_release(gn_grammar *grammar);

#ifdef __cplusplus
}
#endif
#endif
