/* A Lark-like grammar with lexical rules: lower-case names are rules, upper-case names are terminals, which
 * are regular; `start` is the text. Literals "…" and "…"i, /regex/flags, ranges "a".."z", groups, [optional], ? * +
 * ~n and ~n..m, alternatives, %ignore, %import common.NAME, & and ~ between terminals as intersection and complement. */
#ifndef GN_GRAMMAR_LARK_H
#define GN_GRAMMAR_LARK_H

#include "grammar/compile.h"

/* GN_E_FORMAT: malformed, with line and column; else the codes of gn_grammar_compile(). */
GN_MUST_USE gn_status gn_grammar_lark(const char *text, size_t len, gn_grammar **out);

#endif
