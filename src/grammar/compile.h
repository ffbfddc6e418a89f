/* From the builder's graph to a grammar that can be matched: finds what can't be fulfilled and leaves it
 * out, knows the shortest text of each node, and refuses what has no end. */
#ifndef GN_GRAMMAR_COMPILE_H
#define GN_GRAMMAR_COMPILE_H

#include "ganglion/grammar.h"
#include "grammar/ir.h"

/* Takes the builder, also on failure. The grammar matches exactly the texts of `root`.
 * GN_E_FORMAT: a rule is not defined. GN_E_UNSUPPORTED: left recursion (message: the rule). GN_E_REFUSED: no
 * text fulfils the grammar. GN_E_LIMIT: too large. The result has a reference count; any threads may make
 * matchers of it. What its automaton learns while matchers run is shared under a lock. */
GN_MUST_USE gn_status gn_grammar_compile(gn_ir_builder *b, gn_ir root, gn_grammar **out);
void gn_grammar_destroy(gn_grammar *grammar); /* gives back one reference; NULL is fine */

/* Bytes of the shortest text. */
uint64_t gn_grammar_min_len(const gn_grammar *grammar);

#endif
