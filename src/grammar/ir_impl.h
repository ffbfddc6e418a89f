/* The graph that a builder makes and a grammar keeps. */
#ifndef GN_GRAMMAR_IR_IMPL_H
#define GN_GRAMMAR_IR_IMPL_H

#include "grammar/ir.h"
#include "grammar/re_impl.h"

#define IR_NEVER UINT64_MAX /* min_len of a node that has no text */

typedef enum ir_kind {
    IR_NONE,
    IR_EPS,
    IR_TERM, /* a: the regular expression */
    IR_SEQ,  /* a: offset of the list, b: its length */
    IR_ALT,  /* as IR_SEQ */
    IR_REP,  /* a, b: min, c: max */
    IR_RULE, /* a: the body, 0: none yet; b: offset of the name, c: its length */
    IR_OBJ,  /* a: index */
    IR_ARR,  /* a: index */
} ir_kind;

typedef struct ir_node {
    uint8_t kind;
    uint8_t mark; /* of the walk that compiles */
    uint32_t a, b, c;
    gn_re re; /* the whole node as a regular expression, GN_RE_NONE: it is none */
    uint64_t min_len;
} ir_node;

typedef struct ir_object {
    gn_ir_member *members; /* their `needs` are in one block behind needs */
    uint32_t *needs;
    uint64_t *work; /* bits: members that must stand */
    uint64_t *cost; /* [n_members] key, colon and value; IR_NEVER: may not stand */
    uint32_t n_members;
    uint32_t min_props, max_props;
    bool ordered, has_needs;
    gn_ir_json_style style;
    uint32_t open_len, comma_len, close_len;
} ir_object;

typedef struct ir_array {
    gn_ir *prefix, *prefix_matching; /* [n_prefix] */
    gn_re *unique;
    uint32_t n_prefix, n_unique;
    gn_ir items, matching;
    uint32_t min_items, max_items, min_matching, max_matching;
    gn_ir_json_style style;
    uint32_t open_len, comma_len, close_len;
} ir_array;

struct gn_ir_builder {
    gn_re_pool *pool;
    ir_node *nodes;
    uint32_t n_nodes, cap_nodes, max_nodes;
    re_vec lists;
    ir_object *objects;
    uint32_t n_objects, cap_objects;
    ir_array *arrays;
    uint32_t n_arrays, cap_arrays;
    char *names;
    size_t n_names, cap_names;
    gn_status status;
    char message[200];
};

static inline uint64_t ir_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - 1 - b || b == IR_NEVER
               ? (a == IR_NEVER || b == IR_NEVER ? IR_NEVER : IR_NEVER - 1)
               : a + b;
}

static inline uint64_t ir_mul(uint64_t a, uint64_t n)
{
    return n == 0 ? 0 : a == IR_NEVER ? IR_NEVER : a > (IR_NEVER - 1) / n ? IR_NEVER - 1 : a * n;
}

static inline uint64_t ir_re_len(gn_re_pool *pool, gn_re re)
{
    uint32_t len = gn_grammar_re_min_len(pool, re);
    return len == GN_RE_NEVER ? IR_NEVER : len;
}

#define IR_TAG_CLOSE UINT32_MAX /* the tag of } and ]; others are indices of members or items */

/* Where an object or array stands: which members are behind, how many. */
typedef struct ir_place {
    const uint64_t *seen; /* bits of members (or unique items) behind; NULL: none */
    uint32_t at;          /* ordered objects: first member that may come; arrays: items behind */
    uint32_t count;       /* objects: members behind; arrays: items behind that match `contains` */
} ir_place;

/* json_state.c. All may explore regular expressions, hence the pool is not const. */
void gn_grammar_ir_measure_style(gn_ir_builder *b); /* fill open_len, comma_len, close_len */
/* Least bytes from here to the end, the bracket included; IR_NEVER: it can't end. */
uint64_t gn_grammar_ir_object_rest(const gn_ir_builder *b, const ir_object *o, ir_place place);
uint64_t gn_grammar_ir_array_rest(const gn_ir_builder *b, const ir_array *a, ir_place place);
/* Least bytes of the whole, and for objects the cost of each member, from what values cost now. */
uint64_t gn_grammar_ir_object_len(const gn_ir_builder *b, ir_object *o);
uint64_t gn_grammar_ir_array_len(const gn_ir_builder *b, const ir_array *a);
/* What may come here up to a tag: the opening bracket where `open`, else after a value. */
gn_re gn_grammar_ir_object_next(const gn_ir_builder *b, const ir_object *o, ir_place place,
                                bool open);
gn_re gn_grammar_ir_array_next(const gn_ir_builder *b, const ir_array *a, ir_place place,
                               bool open);
/* The place after member i; `seen` is the caller's copy, in which the bit is set. */
ir_place gn_grammar_ir_object_after(const ir_object *o, ir_place place, uint32_t i, uint64_t *seen);
/* The forms of the next item that may come: plain (*plain) and counting (*matching). */
void gn_grammar_ir_array_forms(const gn_ir_builder *b, const ir_array *a, ir_place place,
                               gn_ir *plain, gn_ir *matching);
ir_place gn_grammar_ir_array_after(const ir_array *a, ir_place place, bool matching);

#endif
