/* The tree of a parsed template. It lies in the program's arena, never changes after parsing, and may be
 * evaluated by several threads at once. Runs of operators of one precedence are one node with a list, so
 * that a long sum does not nest. */
#ifndef GN_TEXT_JINJA_AST_H
#define GN_TEXT_JINJA_AST_H

#include "text/jinja_lib.h"
#include "text/jinja_value.h"

typedef enum gn_jkind {
    /* expressions */
    GN_JN_CONST,
    GN_JN_NAME,
    GN_JN_LIST,
    GN_JN_TUPLE,
    GN_JN_DICT,    /* list: key, value, key, value … */
    GN_JN_MATH,    /* chain of + and -, or of * / // % */
    GN_JN_POW,     /* chain */
    GN_JN_COMPARE, /* chain */
    GN_JN_AND,     /* list */
    GN_JN_OR,      /* list */
    GN_JN_CONCAT,  /* list: joined by ~ */
    GN_JN_NEG,     /* unary */
    GN_JN_POS,
    GN_JN_NOT,
    GN_JN_COND,
    GN_JN_ATTR,
    GN_JN_ITEM,
    GN_JN_SLICE,
    GN_JN_CALL,
    GN_JN_FILTER,
    GN_JN_TEST,
    GN_JN_NSREF, /* only as a target: name.attr */
    /* statements */
    GN_JN_DATA,
    GN_JN_PRINT,
    GN_JN_IF,
    GN_JN_FOR,
    GN_JN_SET,
    GN_JN_SET_BLOCK,
    GN_JN_MACRO,
    GN_JN_CALL_BLOCK,
    GN_JN_FILTER_BLOCK,
    GN_JN_WITH,
    GN_JN_SCOPE, /* block, autoescape: a body with names of its own */
    GN_JN_BREAK,
    GN_JN_CONTINUE,
    GN_JN_LOAD, /* include, import, from, extends: there is nothing to load from */
} gn_jkind;

typedef struct gn_jnode gn_jnode;

typedef struct gn_jnodes {
    gn_jnode **items;
    size_t n;
    size_t cap;
} gn_jnodes;

typedef enum gn_jop {
    GN_JOP_ADD,
    GN_JOP_SUB,
    GN_JOP_MUL,
    GN_JOP_DIV,
    GN_JOP_FLOORDIV,
    GN_JOP_MOD,
    GN_JOP_POW,
    GN_JOP_EQ,
    GN_JOP_NE,
    GN_JOP_LT,
    GN_JOP_LE,
    GN_JOP_GT,
    GN_JOP_GE,
    GN_JOP_IN,
    GN_JOP_NOT_IN,
} gn_jop;

typedef struct gn_jcallargs {
    gn_jnodes pos;
    gn_jnodes kw;             /* values */
    const gn_jstr **kw_names; /* [kw.n] */
    gn_jnode *dyn_pos;        /* *expr, or NULL */
    gn_jnode *dyn_kw;         /* **expr, or NULL */
} gn_jcallargs;

typedef struct gn_jsignature { /* of a macro or the body of a call block */
    const gn_jstr *name;       /* NULL: a call block's caller */
    uint32_t *params;          /* [n_params] name ids */
    size_t n_params;
    gn_jnodes defaults; /* of the last defaults.n parameters */
    gn_jnodes body;
    bool uses_caller; /* the body reads this name, and it is no parameter */
    bool uses_kwargs;
    bool uses_varargs;
    bool has_caller_param;
} gn_jsignature;

typedef struct gn_jfor {
    gn_jnode *target;
    gn_jnode *iter;
    gn_jnode *test; /* or NULL */
    gn_jnodes body;
    gn_jnodes other; /* else */
    bool recursive;
} gn_jfor;

typedef struct gn_jbranch {
    gn_jnode *test; /* NULL: else */
    gn_jnodes body;
} gn_jbranch;

struct gn_jnode {
    uint8_t kind; /* gn_jkind */
    uint32_t line;
    union {
        gn_jval value; /* CONST, DATA */
        uint32_t name; /* NAME */
        gn_jnodes list;
        struct {
            gn_jnodes operands;
            uint8_t *ops; /* [operands.n - 1] gn_jop */
        } chain;
        gn_jnode *operand; /* NEG, POS, NOT, PRINT */
        struct {
            gn_jnode *test;
            gn_jnode *yes;
            gn_jnode *no; /* or NULL */
        } cond;
        struct {
            gn_jnode *of;
            const gn_jstr *name;
        } attr;
        struct {
            gn_jnode *of;
            gn_jnode *key;
        } item;
        struct {
            gn_jnode *of;
            gn_jnode *part[3]; /* start, stop, step, each or NULL */
        } slice;
        struct {
            gn_jnode *callee;
            const gn_jcallargs *args;
        } call;
        struct {
            gn_jnode *of; /* NULL: the text of the filter block or set block around */
            const gn_jstr *name;
            const gn_jfilter *filter; /* NULL: no such filter */
            const gn_jcallargs *args;
        } filter;
        struct {
            gn_jnode *of;
            const gn_jstr *name;
            const gn_jtest *test; /* NULL: no such test */
            const gn_jcallargs *args;
        } test;
        struct {
            uint32_t name;
            const gn_jstr *attr;
        } nsref;
        struct {
            gn_jbranch *branches;
            size_t n;
        } branch;
        const gn_jfor *loop;
        struct {
            gn_jnode *target;
            gn_jnode *value;
        } set;
        struct {
            gn_jnode *target;
            gn_jnode *filter; /* or NULL */
            gn_jnodes *body;
        } block; /* SET_BLOCK, FILTER_BLOCK */
        struct {
            uint32_t name;
            const gn_jsignature *signature;
        } macro;
        struct {
            gn_jnode *call; /* NULL: a generation block, whose body is printed as it is */
            const gn_jsignature *signature;
        } call_block;
        struct {
            gn_jnodes *targets;
            gn_jnodes *values;
            gn_jnodes *body;
        } with; /* WITH, SCOPE */
    } u;
};

struct gn_jprogram {
    gn_arena arena;
    gn_jnodes body;
    const gn_jstr **names; /* [n_names] every variable name once */
    size_t n_names;
    uint32_t id_caller; /* ids of the names that the interpreter itself sets */
    uint32_t id_kwargs;
    uint32_t id_varargs;
    uint32_t id_loop;
};

#endif
