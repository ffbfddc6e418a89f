/* Inside the parser: the state that its two halves, expressions and statements, share. */
#ifndef GN_TEXT_JINJA_PARSER_H
#define GN_TEXT_JINJA_PARSER_H

#include "base/map.h"
#include "text/jinja_ast.h"
#include "text/jinja_lex.h"

#define GN_JINJA_MAX_PARSE_DEPTH 200u

/* Names whose use inside a macro decides what the macro accepts. */
#define GN_JP_USES_CALLER  1u
#define GN_JP_USES_KWARGS  2u
#define GN_JP_USES_VARARGS 4u

typedef struct gn_jparser {
    gn_jprogram *program;
    const gn_jtoken *tokens;
    size_t pos;
    gn_map name_ids; /* name → id */
    size_t names_cap;
    gn_map blocks; /* names of the blocks so far */
    unsigned depth;
    unsigned loop_depth; /* loops that a break could end */
    unsigned for_depth;  /* loops around, across macros */
    unsigned uses;       /* GN_JP_USES_* seen since the innermost macro began */
    bool soft;           /* directly inside an if: unknown filters fail only when reached */
    size_t n_unknown;    /* unknown filters and tests outside soft places */
    gn_jtoken unknown;   /* the first of them */
} gn_jparser;

/* ---- shared by both halves ---- */
const gn_jtoken *gn_jparser_peek(const gn_jparser *p, size_t ahead);
bool gn_jparser_at(const gn_jparser *p, gn_jtok type);
bool gn_jparser_at_name(const gn_jparser *p, const char *name);
bool gn_jparser_skip(gn_jparser *p, gn_jtok type);
bool gn_jparser_skip_name(gn_jparser *p, const char *name);
GN_MUST_USE gn_status gn_jparser_expect(gn_jparser *p, gn_jtok type);
/* "line L, column C: found X, expected `expected`" at the current token. */
gn_status gn_jparser_fail(const gn_jparser *p, const char *expected) GN_COLD;
GN_MUST_USE gn_status gn_jparser_enter(gn_jparser *p);
void gn_jparser_leave(gn_jparser *p);
GN_MUST_USE gn_status gn_jparser_node(gn_jparser *p, gn_jkind kind, uint32_t line, gn_jnode **out);
GN_MUST_USE gn_status gn_jparser_push(gn_jparser *p, gn_jnodes *list, gn_jnode *node);
/* The id of a variable name, and a name as a string. */
GN_MUST_USE gn_status gn_jparser_name_id(gn_jparser *p, const char *s, size_t len, uint32_t *id);
GN_MUST_USE gn_status gn_jparser_str(gn_jparser *p, const char *s, size_t len, const gn_jstr **out);
void *gn_jparser_alloc(gn_jparser *p, size_t n, size_t bytes);

/* ---- expressions ---- */
typedef struct gn_jtuple_rule {
    bool targets; /* names and literals only, name.attr allowed as namespaces */
    bool namespaces;
    bool no_condexpr;     /* stop at a trailing `if` */
    bool parentheses;     /* an empty tuple is fine */
    const char *end_name; /* a name that ends the tuple, or NULL */
} gn_jtuple_rule;
GN_MUST_USE gn_status gn_jparser_tuple(gn_jparser *p, gn_jtuple_rule rule, gn_jnode **out);
GN_MUST_USE gn_status gn_jparser_expr(gn_jparser *p, bool condexpr, gn_jnode **out);
/* | filter | filter … applied to `of`; start: the first one has no bar. */
GN_MUST_USE gn_status gn_jparser_filters(gn_jparser *p, gn_jnode *of, bool start, gn_jnode **out);

/* ---- statements ---- */
GN_MUST_USE gn_status gn_jparser_body(gn_jparser *p, const char *const *ends, gn_jnodes *out);

#endif
