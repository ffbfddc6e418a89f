/* GBNF, the notation of llama.cpp's grammars (its grammars/README.md): rules of literals, character classes,
 * groups, alternatives, repeats; the rule `root` is the text. */
#ifndef GN_GRAMMAR_GBNF_H
#define GN_GRAMMAR_GBNF_H

#include "grammar/compile.h"

/* GN_E_FORMAT: malformed, with line and column; else the codes of gn_grammar_compile(). */
GN_MUST_USE gn_status gn_grammar_gbnf(const char *text, size_t len, gn_grammar **out);

#endif
