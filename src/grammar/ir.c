/* The builder: nodes in an array, children by index, lists in one vector. It only stores; compile.c thinks. */
#include "grammar/ir.h"

#include "base/alloc.h"
#include "grammar/ir_impl.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_NODES (1u << 19)

static gn_ir fail(gn_ir_builder *b, gn_status status, const char *message)
{
    if (b->status == GN_OK) {
        b->status = status;
        (void)snprintf(b->message, sizeof b->message, "%s", message);
    }
    return GN_IR_NONE;
}

static gn_ir nomem(gn_ir_builder *b)
{
    return fail(b, GN_E_NOMEM, "out of memory");
}

gn_status gn_grammar_ir_create(const gn_ir_limits *limits, gn_ir_builder **out)
{
    gn_ir_builder *b = gn_calloc(1, sizeof *b);
    if (b == NULL) {
        return gn_alloc_failed();
    }
    gn_ir_limits l = limits != NULL ? *limits : (gn_ir_limits){0};
    b->max_nodes = l.max_nodes != 0 ? l.max_nodes : DEFAULT_NODES;
    b->cap_nodes = 64;
    b->nodes = gn_calloc(b->cap_nodes, sizeof *b->nodes);
    gn_status status =
        b->nodes != NULL ? gn_grammar_re_create(l.max_re, &b->pool) : gn_alloc_failed();
    if (status != GN_OK) {
        gn_grammar_ir_destroy(b);
        return status;
    }
    b->nodes[GN_IR_NONE] = (ir_node){.kind = IR_NONE};
    b->nodes[GN_IR_EPS] = (ir_node){.kind = IR_EPS, .re = GN_RE_EPS};
    b->n_nodes = 2;
    *out = b;
    return GN_OK;
}

void gn_grammar_ir_destroy(gn_ir_builder *b)
{
    if (b == NULL) {
        return;
    }
    for (uint32_t i = 0; i < b->n_objects; i++) {
        gn_free(b->objects[i].members);
        gn_free(b->objects[i].needs);
        gn_free(b->objects[i].work);
        gn_free(b->objects[i].cost);
    }
    for (uint32_t i = 0; i < b->n_arrays; i++) {
        gn_free(b->arrays[i].prefix);
        gn_free(b->arrays[i].prefix_matching);
        gn_free(b->arrays[i].unique);
    }
    gn_free(b->objects);
    gn_free(b->arrays);
    gn_free(b->names);
    gn_free(b->lists.v);
    gn_free(b->nodes);
    gn_grammar_re_destroy(b->pool);
    gn_free(b);
}

gn_status gn_grammar_ir_status(const gn_ir_builder *b)
{
    if (b->status != GN_OK) {
        return gn_base_fail(b->status, "%s", b->message);
    }
    return gn_grammar_re_status(b->pool);
}

gn_re_pool *gn_grammar_ir_pool(gn_ir_builder *b)
{
    return b->pool;
}

static gn_ir add(gn_ir_builder *b, ir_node n)
{
    if (b->status != GN_OK) {
        return GN_IR_NONE;
    }
    if (b->n_nodes == b->max_nodes) {
        return fail(b, GN_E_LIMIT, "the grammar has too many nodes");
    }
    if (b->n_nodes == b->cap_nodes) {
        ir_node *more = gn_realloc_array(b->nodes, 2 * (size_t)b->cap_nodes, sizeof *more);
        if (more == NULL) {
            return nomem(b);
        }
        b->nodes = more;
        b->cap_nodes *= 2;
    }
    b->nodes[b->n_nodes] = n;
    return b->n_nodes++;
}

gn_ir gn_grammar_ir_term(gn_ir_builder *b, gn_re re)
{
    if (re == GN_RE_NONE || re == GN_RE_EPS) {
        return re == GN_RE_NONE ? GN_IR_NONE : GN_IR_EPS;
    }
    return add(b, (ir_node){.kind = IR_TERM, .a = re, .re = re});
}

gn_ir gn_grammar_ir_literal(gn_ir_builder *b, const char *s, size_t len)
{
    return gn_grammar_ir_term(b, gn_grammar_re_literal(b->pool, s, len));
}

static gn_ir add_list(gn_ir_builder *b, ir_kind kind, const gn_ir *list, size_t n)
{
    size_t at = b->lists.n;
    for (size_t i = 0; i < n; i++) {
        if (kind == IR_ALT && list[i] == GN_IR_NONE) {
            continue;
        }
        if (kind == IR_SEQ && list[i] == GN_IR_EPS) {
            continue;
        }
        if (kind == IR_SEQ && list[i] == GN_IR_NONE) {
            b->lists.n = at;
            return GN_IR_NONE;
        }
        if (!gn_grammar_re_push(b->pool, &b->lists, list[i])) {
            return nomem(b);
        }
    }
    n = b->lists.n - at;
    if (n <= 1) {
        b->lists.n = at;
        return n == 1 ? b->lists.v[at] : kind == IR_SEQ ? GN_IR_EPS : GN_IR_NONE;
    }
    return add(b, (ir_node){.kind = (uint8_t)kind, .a = (uint32_t)at, .b = (uint32_t)n});
}

gn_ir gn_grammar_ir_seq(gn_ir_builder *b, const gn_ir *list, size_t n)
{
    return add_list(b, IR_SEQ, list, n);
}

gn_ir gn_grammar_ir_alt(gn_ir_builder *b, const gn_ir *list, size_t n)
{
    return add_list(b, IR_ALT, list, n);
}

gn_ir gn_grammar_ir_repeat(gn_ir_builder *b, gn_ir node, uint32_t min, uint32_t max)
{
    if (max < min) {
        return GN_IR_NONE;
    }
    if (max == 0 || node == GN_IR_EPS || node == GN_IR_NONE) {
        return node == GN_IR_NONE && min != 0 ? GN_IR_NONE : GN_IR_EPS;
    }
    if (min == 1 && max == 1) {
        return node;
    }
    return add(b, (ir_node){.kind = IR_REP, .a = node, .b = min, .c = max});
}

gn_ir gn_grammar_ir_rule(gn_ir_builder *b, const char *name, size_t len)
{
    if (b->n_names + len > b->cap_names) {
        size_t cap = 2 * b->cap_names + len + 64;
        char *more = gn_realloc_array(b->names, cap, 1);
        if (more == NULL) {
            return nomem(b);
        }
        b->names = more;
        b->cap_names = cap;
    }
    if (len > 0) {
        memcpy(b->names + b->n_names, name, len);
    }
    gn_ir id = add(
        b,
        (ir_node){.kind = IR_RULE, .a = UINT32_MAX, .b = (uint32_t)b->n_names, .c = (uint32_t)len});
    b->n_names += len;
    return id;
}

void gn_grammar_ir_define(gn_ir_builder *b, gn_ir rule, gn_ir body)
{
    if (b->status == GN_OK && b->nodes[rule].kind == IR_RULE) {
        b->nodes[rule].a = body;
    }
}

/* ---- JSON -------------------------------------------------------------------------------------------- */

gn_ir_json_style gn_grammar_ir_json_blanks(gn_re_pool *pool, uint32_t max_blanks)
{
    gn_re_set blank = {{0}};
    gn_re_set_add(&blank, ' ');
    gn_re comma = gn_grammar_re_literal(pool, ",", 1);
    gn_re colon = gn_grammar_re_literal(pool, ":", 1);
    if (max_blanks == 0) {
        gn_re space = gn_grammar_re_repeat(pool, gn_grammar_re_set(pool, &blank), 0, 1);
        return (gn_ir_json_style){GN_RE_EPS, GN_RE_EPS, gn_grammar_re_cat(pool, comma, space),
                                  gn_grammar_re_cat(pool, colon, space)};
    }
    gn_re_set_add(&blank, '\t');
    gn_re_set_add(&blank, '\n');
    gn_re_set_add(&blank, '\r');
    gn_re run = gn_grammar_re_repeat(pool, gn_grammar_re_set(pool, &blank), 0, max_blanks);
    return (gn_ir_json_style){run, run,
                              gn_grammar_re_cat(pool, run, gn_grammar_re_cat(pool, comma, run)),
                              gn_grammar_re_cat(pool, run, gn_grammar_re_cat(pool, colon, run))};
}

static void *copy(gn_ir_builder *b, const void *from, size_t n, size_t bytes)
{
    void *to = gn_calloc(n + 1, bytes);
    if (to == NULL) {
        (void)nomem(b);
        return NULL;
    }
    if (n > 0 && from != NULL) {
        memcpy(to, from, n * bytes);
    }
    return to;
}

/* Room for one more in an array of `bytes` each. */
static void *grow(gn_ir_builder *b, void *array, uint32_t n, uint32_t *cap, size_t bytes)
{
    if (n < *cap) {
        return array;
    }
    uint32_t more = *cap != 0 ? 2 * *cap : 16;
    void *bigger = gn_realloc_array(array, more, bytes);
    if (bigger == NULL) {
        (void)nomem(b);
        return NULL;
    }
    *cap = more;
    return bigger;
}

static bool copy_members(gn_ir_builder *b, const gn_ir_object *in, ir_object *o)
{
    size_t n_needs = 0;
    for (size_t i = 0; i < in->n_members; i++) {
        n_needs += in->members[i].n_needs;
    }
    o->members = copy(b, in->members, in->n_members, sizeof *o->members);
    o->needs = copy(b, NULL, n_needs, sizeof *o->needs);
    o->cost = copy(b, NULL, in->n_members, sizeof *o->cost);
    o->work = copy(b, NULL, in->n_members / 64 + 1, sizeof *o->work);
    if (o->members == NULL || o->needs == NULL || o->work == NULL || o->cost == NULL) {
        return false;
    }
    o->n_members = (uint32_t)in->n_members;
    size_t at = 0;
    for (size_t i = 0; i < in->n_members; i++) {
        gn_ir_member *m = &o->members[i];
        for (size_t k = 0; k < m->n_needs; k++) {
            if (m->needs[k] >= in->n_members || in->members[m->needs[k]].is_free) {
                (void)fail(b, GN_E_ARG, "a member needs one that is none");
                return false;
            }
            o->needs[at + k] = m->needs[k];
        }
        m->needs = o->needs + at;
        at += m->n_needs;
        o->has_needs |= m->n_needs != 0;
    }
    return true;
}

gn_ir gn_grammar_ir_object(gn_ir_builder *b, const gn_ir_object *in)
{
    if (b->status != GN_OK) {
        return GN_IR_NONE;
    }
    if (in->n_members > b->max_nodes) {
        return fail(b, GN_E_LIMIT, "an object has too many members");
    }
    void *bigger = grow(b, b->objects, b->n_objects, &b->cap_objects, sizeof *b->objects);
    if (bigger == NULL) {
        return GN_IR_NONE;
    }
    b->objects = bigger;
    ir_object o = {.min_props = in->min_props,
                   .max_props = in->max_props,
                   .ordered = in->ordered,
                   .style = in->style};
    if (!copy_members(b, in, &o)) {
        gn_free(o.members);
        gn_free(o.needs);
        gn_free(o.work);
        gn_free(o.cost);
        return GN_IR_NONE;
    }
    b->objects[b->n_objects++] = o;
    return add(b, (ir_node){.kind = IR_OBJ, .a = b->n_objects - 1});
}

gn_ir gn_grammar_ir_array(gn_ir_builder *b, const gn_ir_array *in)
{
    if (b->status != GN_OK) {
        return GN_IR_NONE;
    }
    if (in->n_prefix > b->max_nodes || in->n_unique > b->max_nodes) {
        return fail(b, GN_E_LIMIT, "an array has too many items");
    }
    void *bigger = grow(b, b->arrays, b->n_arrays, &b->cap_arrays, sizeof *b->arrays);
    if (bigger == NULL) {
        return GN_IR_NONE;
    }
    b->arrays = bigger;
    ir_array a = {.n_prefix = (uint32_t)in->n_prefix,
                  .n_unique = (uint32_t)in->n_unique,
                  .items = in->items,
                  .matching = in->matching,
                  .min_items = in->min_items,
                  .max_items = in->max_items,
                  .min_matching = in->min_matching,
                  .max_matching = in->max_matching,
                  .style = in->style};
    if (in->unique != NULL && in->n_unique < in->max_items) {
        a.max_items = (uint32_t)in->n_unique;
    }
    if (in->matching == GN_IR_NONE && in->prefix_matching == NULL) {
        a.max_matching = in->min_matching != 0 ? 0 : GN_IR_MANY;
    }
    a.prefix = copy(b, in->prefix, in->n_prefix, sizeof *a.prefix);
    a.prefix_matching = copy(b, in->prefix_matching, in->prefix_matching != NULL ? in->n_prefix : 0,
                             sizeof *a.prefix_matching);
    if (in->prefix_matching == NULL) {
        gn_free(a.prefix_matching);
        a.prefix_matching = copy(b, NULL, in->n_prefix, sizeof *a.prefix_matching);
    }
    a.unique = in->unique != NULL ? copy(b, in->unique, in->n_unique, sizeof *a.unique) : NULL;
    if (b->status != GN_OK) {
        gn_free(a.prefix);
        gn_free(a.prefix_matching);
        gn_free(a.unique);
        return GN_IR_NONE;
    }
    b->arrays[b->n_arrays++] = a;
    return add(b, (ir_node){.kind = IR_ARR, .a = b->n_arrays - 1});
}
