/* How a JSON Schema becomes a grammar: the parts that the files schema_*.c share.
 *
 * A *literal* is a demand on one value: to fulfil a schema of the document, to equal a value of it, or not to
 * do so. A *conjunction* is an interned set of literals; 0 demands nothing, 1 can't be fulfilled. The
 * *form* of a conjunction says what is allowed for each of the six types: numbers and strings as regular
 * expressions over their JSON texts, arrays and objects as lists of alternatives whose parts are
 * conjunctions again. Types are disjoint, so union, intersection and complement of forms work type by type;
 * children stay conjunctions until the grammar is written, where each conjunction is one rule, so that
 * recursive schemas end. What these operations can't express exactly is refused with the place that asked
 * for it. */
#ifndef GN_GRAMMAR_SCHEMA_IMPL_H
#define GN_GRAMMAR_SCHEMA_IMPL_H

#include "base/json.h"
#include "base/map.h"
#include "grammar/ir.h"
#include "grammar/json_schema.h"

typedef uint32_t gn_conj;
#define GN_CONJ_TRUE  0u
#define GN_CONJ_FALSE 1u

typedef enum gn_literal_kind {
    GN_LITERAL_SCHEMA,
    GN_LITERAL_VALUE,
    GN_LITERAL_CONJ
} gn_literal_kind;

typedef struct gn_literal {
    uint32_t id; /* of the node, or the conjunction */
    uint16_t kind;
    uint16_t negated;
} gn_literal;

typedef struct gn_schema_member {
    const char *name; /* decoded */
    size_t len;
    gn_conj value; /* GN_CONJ_FALSE: may not stand */
    bool required;
} gn_schema_member;

typedef struct gn_schema_region { /* keys without a name of their own */
    gn_re
        keys; /* over the inside of the key's JSON text; regions of an object are disjoint, and hold every
                   key that is no member (and maybe members too) */
    gn_conj value;
} gn_schema_region;

typedef struct gn_schema_need { /* where `key` stands, `other` must */
    uint32_t key, other;        /* indices of members */
} gn_schema_need;

typedef struct gn_object_form {
    gn_schema_member *members;
    size_t n_members;
    gn_schema_region *regions;
    size_t n_regions;
    gn_schema_need *needs;
    size_t n_needs;
    uint32_t min, max;
    gn_re evaluated; /* keys that some keyword has looked at, for unevaluatedProperties */
} gn_object_form;

typedef struct gn_array_form {
    gn_conj *prefix;
    size_t n_prefix;
    gn_conj items;
    uint32_t min, max;
    bool has_contains;
    size_t contains_from; /* items before it do not count */
    gn_conj matching;
    uint32_t min_matching, max_matching;
    bool unique;
    size_t evaluated;  /* items from the start that some keyword has looked at; SIZE_MAX: all */
    const gn_json *at; /* the schema that asked for `unique` or `contains` */
} gn_array_form;

typedef struct gn_form {
    bool null, no, yes;
    gn_re number, string;
    gn_array_form **arrays;
    size_t n_arrays;
    gn_object_form **objects;
    size_t n_objects;
} gn_form;

typedef struct gn_conj_entry {
    gn_literal *literals; /* sorted */
    uint32_t n;
    gn_ir rule;    /* GN_IR_NONE: not asked for yet */
    gn_form *form; /* NULL: not yet */
    bool written;  /* the rule is defined, or about to be */
} gn_conj_entry;

typedef struct gn_schema_anchor {
    const gn_json *resource; /* the schema whose $id it belongs to, or the root */
    const gn_json *node;
    const char *name;
    bool dynamic;
} gn_schema_anchor;

typedef struct gn_schema_resource {
    const gn_json *node;
    const char *uri; /* absolute where $id is, without fragment; "" for a root without $id */
} gn_schema_resource;

typedef struct gn_schema {
    gn_arena arena;
    gn_ir_builder *b;
    gn_re_pool *pool;
    gn_json_schema_options options;
    gn_ir_json_style style;
    const gn_json *root;
    const gn_json **nodes; /* [n_nodes] by id */
    uint32_t n_nodes;
    gn_form **forms;     /* [n_nodes]: of schemas, NULL: not yet */
    unsigned char *busy; /* [n_nodes]: being worked on */
    uint32_t depth;
    gn_conj_entry *conj; /* [cap_conj] */
    uint32_t n_conj;
    size_t cap_conj;
    gn_map conj_ids; /* bytes of the sorted literals → id */
    gn_schema_anchor *anchors;
    size_t n_anchors, cap_anchors;
    gn_schema_resource *resources;
    size_t n_resources, cap_resources;
    bool ref_alone;       /* drafts up to 7: $ref hides its siblings */
    bool unevaluated;     /* some unevaluated… keyword stands in the document */
    const gn_json *place; /* of the last refusal */
    gn_re any_string, any_number, plain_number;
} gn_schema;

/* Note the place and give the code. */
#define gn_schema_refuse(s, node, code, ...)                                                       \
    ((s)->place = (node), gn_base_fail((code), __VA_ARGS__))

void *gn_schema_alloc(gn_schema *s, size_t n, size_t bytes); /* zeroed, in the arena; NULL */

/* ---- schema_form.c: the algebra ---- */

GN_MUST_USE gn_status gn_schema_conj(gn_schema *s, const gn_literal *literals, size_t n,
                                     gn_conj *out);
GN_MUST_USE gn_status gn_schema_conj_of(gn_schema *s, const gn_json *schema, gn_conj *out);
GN_MUST_USE gn_status gn_schema_conj_value(gn_schema *s, const gn_json *value, gn_conj *out);
GN_MUST_USE gn_status gn_schema_conj_and(gn_schema *s, gn_conj a, gn_conj b, gn_conj *out);
GN_MUST_USE gn_status gn_schema_conj_not(gn_schema *s, gn_conj a, gn_conj *out);

/* Texts in both, each of them strings or numbers only; all of them cost nothing. */
gn_re gn_schema_re_and(gn_schema *s, gn_re a, gn_re b);
void gn_form_none(gn_form *out);
GN_MUST_USE gn_status gn_form_any(gn_schema *s, gn_form *out);
GN_MUST_USE gn_object_form *gn_form_any_object(gn_schema *s); /* NULL: out of memory */
GN_MUST_USE gn_array_form *gn_form_any_array(gn_schema *s);
GN_MUST_USE gn_status gn_form_and(gn_schema *s, const gn_form *a, const gn_form *b, gn_form *out);
GN_MUST_USE gn_status gn_form_or(gn_schema *s, const gn_form *a, const gn_form *b, gn_form *out);
/* `at`: the schema that wants it, for the refusal. */
GN_MUST_USE gn_status gn_form_not(gn_schema *s, const gn_form *a, const gn_json *at, gn_form *out);
/* Is nothing allowed? false where that can't be told without going deeper. */
bool gn_form_is_none(gn_schema *s, const gn_form *a);
GN_MUST_USE gn_status gn_form_of_conj(gn_schema *s, gn_conj conj, const gn_form **out);
GN_MUST_USE gn_status gn_object_and(gn_schema *s, const gn_object_form *a, const gn_object_form *b,
                                    gn_object_form **out);
/* Index of the member, which is added with what its region says where it is not there. */
GN_MUST_USE gn_status gn_object_member(gn_schema *s, gn_object_form *o, const char *name,
                                       size_t len, uint32_t *index);
gn_re gn_schema_key(gn_schema *s, const char *name, size_t len); /* inside of the key's text */

/* ---- schema_read.c: keywords to forms ---- */

GN_MUST_USE gn_status gn_schema_form(gn_schema *s, const gn_json *schema, const gn_form **out);
GN_MUST_USE gn_status gn_schema_value_form(gn_schema *s, const gn_json *value, gn_form *out);
/* A count: "3", "3.0". */
GN_MUST_USE gn_status gn_schema_count(gn_schema *s, const gn_json *node, uint32_t *out);

/* ---- schema_object.c, schema_array.c: their keywords ---- */

GN_MUST_USE gn_status gn_schema_read_object(gn_schema *s, const gn_json *schema, gn_form *form);
GN_MUST_USE gn_status gn_schema_read_array(gn_schema *s, const gn_json *schema, gn_form *form);
GN_MUST_USE gn_status gn_schema_read_unevaluated(gn_schema *s, const gn_json *schema,
                                                 gn_form *form);

/* ---- schema_ref.c ---- */

/* Find all $id and anchors. */
GN_MUST_USE gn_status gn_schema_index(gn_schema *s);
/* The schema that the value of $ref or $dynamicRef names. */
GN_MUST_USE gn_status gn_schema_resolve(gn_schema *s, const gn_json *ref, const gn_json **out);

/* ---- schema_format.c ---- */

/* The inside of a JSON string of that format; *known false: the format is not known. */
GN_MUST_USE gn_status gn_schema_format(gn_schema *s, const gn_json *name, bool *known, gn_re *out);

#endif
