/* What front ends build: a graph of grammar nodes over regular terminals, and what JSON needs beyond a
 * context-free grammar as nodes of its own: objects whose keys come in any order, and arrays.
 *
 * A builder owns nodes and the pool of regular expressions. One thread at a time. Like the pool, it remembers
 * its first failure: constructors then return GN_IR_NONE, and gn_grammar_ir_status() reports it.
 * Arrays and structs passed in are copied. Nodes may be shared: the graph is a DAG but for rules. */
#ifndef GN_GRAMMAR_IR_H
#define GN_GRAMMAR_IR_H

#include "grammar/re.h"

typedef uint32_t gn_ir;
#define GN_IR_NONE 0u         /* matches nothing (JSON Schema's false) */
#define GN_IR_EPS  1u         /* the empty text */
#define GN_IR_MANY UINT32_MAX /* no upper bound */

typedef struct gn_ir_builder gn_ir_builder;

typedef struct gn_ir_limits { /* 0: the default in brackets */
    uint32_t max_re;    /* nodes of regular expressions, states of their automata included [2^20] */
    uint32_t max_nodes; /* grammar nodes [2^19] */
} gn_ir_limits;

/* limits may be NULL. */
GN_MUST_USE gn_status gn_grammar_ir_create(const gn_ir_limits *limits, gn_ir_builder **out);
void gn_grammar_ir_destroy(gn_ir_builder *b);
GN_MUST_USE gn_status gn_grammar_ir_status(const gn_ir_builder *b);
gn_re_pool *gn_grammar_ir_pool(gn_ir_builder *b); /* borrowed */

gn_ir gn_grammar_ir_term(gn_ir_builder *b, gn_re re); /* GN_RE_NONE gives GN_IR_NONE */
gn_ir gn_grammar_ir_literal(gn_ir_builder *b, const char *s, size_t len);
gn_ir gn_grammar_ir_seq(gn_ir_builder *b, const gn_ir *list, size_t n);
/* Alternatives run side by side until told apart; they may overlap. */
gn_ir gn_grammar_ir_alt(gn_ir_builder *b, const gn_ir *list, size_t n);
gn_ir gn_grammar_ir_repeat(gn_ir_builder *b, gn_ir node, uint32_t min, uint32_t max);

/* A rule: declare first, define once, refer as often as wanted, also from inside itself. A rule left
 * undefined, and left recursion, are refused by gn_grammar_compile(). `name` is for messages; copied. */
gn_ir gn_grammar_ir_rule(gn_ir_builder *b, const char *name, size_t len);
void gn_grammar_ir_define(gn_ir_builder *b, gn_ir rule, gn_ir body);

/* ---- JSON ---------------------------------------------------------------------------------------------- */

/* Blanks of JSON text, regular expressions that must match the given mark with what blanks may stand around
 * it. gn_grammar_ir_json_blanks() makes the two usual ones. */
typedef struct gn_ir_json_style {
    gn_re open_pad;  /* after { and [ ; may be GN_RE_EPS */
    gn_re close_pad; /* before } and ] */
    gn_re comma;     /* "," with blanks */
    gn_re colon;     /* ":" with blanks */
} gn_ir_json_style;

/* max_blanks: 0: compact, but for one space that may follow "," and ":"; else runs of up to that many
 * blanks (space, tab, CR, LF) anywhere JSON allows them inside. */
gn_ir_json_style gn_grammar_ir_json_blanks(gn_re_pool *pool, uint32_t max_blanks);

typedef struct gn_ir_member {
    gn_re key;   /* the key with its quotes */
    gn_ir value; /* GN_IR_NONE: the key may not stand */
    bool
        is_free; /* many keys match (patternProperties, additionalProperties): may come again and again;
                   * else this key comes at most once */
    bool required;         /* not with is_free */
    const uint32_t *needs; /* indices of members (not free) that must stand where this one does */
    size_t n_needs;
} gn_ir_member;

typedef struct gn_ir_object {
    const gn_ir_member
        *members; /* keys of different members must be disjoint: the front end subtracts
                                  * named keys from free ones, and splits overlapping patterns */
    size_t n_members;
    uint32_t min_props, max_props; /* GN_IR_MANY: none. Members that come again count each time */
    bool ordered; /* keys in the order of `members` (free ones at their place, again and again) */
    gn_ir_json_style style;
} gn_ir_object;

/* `{` … `}`. An object no text can fulfil is GN_IR_NONE in effect (compile finds out). */
gn_ir gn_grammar_ir_object(gn_ir_builder *b, const gn_ir_object *object);

typedef struct gn_ir_array {
    const gn_ir *prefix; /* items at fixed places; */
    size_t n_prefix;
    gn_ir items;                   /* those after them; GN_IR_NONE: none may follow */
    uint32_t min_items, max_items; /* GN_IR_MANY: none */
    /* contains: where matching ≠ GN_IR_NONE, each item after the prefix is either `matching` (it counts) or
     * `items` (it does not: for an exact maximum the two are disjoint); of the prefix, prefix_matching[i]
     * (may be NULL) likewise is the form of prefix[i] that counts, GN_IR_NONE: none. */
    gn_ir matching;
    const gn_ir *prefix_matching;
    uint32_t min_matching, max_matching;
    /* uniqueItems over a finite set: items are these texts, each at most once; no prefix, no contains,
     * `items` is not used. */
    const gn_re *unique;
    size_t n_unique;
    gn_ir_json_style style;
} gn_ir_array;

/* `[` … `]`. */
gn_ir gn_grammar_ir_array(gn_ir_builder *b, const gn_ir_array *array);

#endif
