/* Compiling: the nodes in reach are put in an order in which children come first; along it the shortest texts are
 * found (repeated until nothing changes, for recursion), and what is regular as a whole becomes one
 * regular expression. Walks keep their own stack. */
#include "grammar/compile.h"

#include "base/alloc.h"
#include "grammar/automaton.h"

#include <string.h>

#define MAX_PASSES      200
#define LOWER_DEPTH_MAX (RE_DEPTH_MAX / 2)

typedef struct walk_item {
    gn_ir node;
    uint32_t next; /* child to visit next */
} walk_item;

typedef struct walk {
    walk_item *stack;
    uint32_t n;
    size_t cap;
    gn_ir *order; /* children before parents, but for recursion */
    uint32_t n_order;
} walk;

/* The k-th child; false: there are no more. `left`: only those that a text may begin with. */
static bool child(const gn_ir_builder *b, gn_ir id, uint32_t k, bool left, gn_ir *out)
{
    const ir_node *n = &b->nodes[id];
    switch (n->kind) {
    case IR_SEQ:
        if (k >= n->b || (left && k > 0 && b->nodes[b->lists.v[n->a + k - 1]].min_len != 0)) {
            return false;
        }
        *out = b->lists.v[n->a + k];
        return true;
    case IR_ALT: *out = k < n->b ? b->lists.v[n->a + k] : 0; return k < n->b;
    case IR_REP:
    case IR_RULE: *out = n->a; return k == 0;
    case IR_OBJ: {
        const ir_object *o = &b->objects[n->a];
        *out = !left && k < o->n_members ? o->members[k].value : 0;
        return !left && k < o->n_members;
    }
    case IR_ARR: {
        const ir_array *a = &b->arrays[n->a];
        if (left || k >= 2 * a->n_prefix + 2) {
            return false;
        }
        *out = k < a->n_prefix        ? a->prefix[k]
               : k < 2 * a->n_prefix  ? a->prefix_matching[k - a->n_prefix]
               : k == 2 * a->n_prefix ? a->items
                                      : a->matching;
        return true;
    }
    default: return false;
    }
}

static gn_status push(walk *w, gn_ir_builder *b, gn_ir node)
{
    walk_item *more = gn_grow_array(w->stack, &w->cap, (size_t)w->n + 1, sizeof *more);
    if (more == NULL) {
        return gn_alloc_failed();
    }
    w->stack = more;
    w->stack[w->n++] = (walk_item){node, 0};
    b->nodes[node].mark |= 1;
    return GN_OK;
}

static gn_status refuse_rule(const gn_ir_builder *b, const walk *w, gn_ir node)
{
    for (uint32_t i = w->n; b->nodes[node].kind != IR_RULE && i-- > 0;) {
        node = b->nodes[w->stack[i].node].kind == IR_RULE ? w->stack[i].node : node;
    }
    const ir_node *r = &b->nodes[node];
    int len = r->kind == IR_RULE ? (int)(r->c < 60 ? r->c : 60) : 0;
    return gn_base_fail(GN_E_UNSUPPORTED, "grammar: rule \"%.*s\" begins with itself", len,
                        b->names != NULL ? b->names + r->b : "");
}

/* Depth first from `root`; mark 1: on the stack, 2: done. */
static gn_status visit(gn_ir_builder *b, gn_ir root, bool left, walk *w)
{
    GN_TRY(push(w, b, root));
    while (w->n > 0) {
        walk_item *top = &w->stack[w->n - 1];
        gn_ir next;
        if (!child(b, top->node, top->next, left, &next)) {
            b->nodes[top->node].mark = 2;
            if (!left) {
                w->order[w->n_order++] = top->node;
            }
            w->n--;
            continue;
        }
        top->next++;
        GN_REQUIRE(next < b->n_nodes, GN_E_FORMAT, "grammar: rule \"%.*s\" is not defined",
                   (int)(b->nodes[top->node].c < 60 ? b->nodes[top->node].c : 60),
                   b->names != NULL ? b->names + b->nodes[top->node].b : "");
        if (b->nodes[next].mark == 0) {
            GN_TRY(push(w, b, next));
        } else if (left && b->nodes[next].mark == 1) {
            return refuse_rule(b, w, next);
        }
    }
    return GN_OK;
}

/* ---- Shortest texts ---------------------------------------------------------------------------------- */

static uint64_t length_now(gn_ir_builder *b, gn_ir id)
{
    ir_node *n = &b->nodes[id];
    uint64_t len = IR_NEVER;
    switch (n->kind) {
    case IR_EPS: return 0;
    case IR_TERM: return ir_re_len(b->pool, n->a);
    case IR_SEQ:
        len = 0;
        for (uint32_t i = 0; i < n->b; i++) {
            len = ir_add(len, b->nodes[b->lists.v[n->a + i]].min_len);
        }
        return len;
    case IR_ALT:
        for (uint32_t i = 0; i < n->b; i++) {
            uint64_t one = b->nodes[b->lists.v[n->a + i]].min_len;
            len = one < len ? one : len;
        }
        return len;
    case IR_REP: return ir_mul(b->nodes[n->a].min_len, n->b);
    case IR_RULE: return b->nodes[n->a].min_len;
    case IR_OBJ: return gn_grammar_ir_object_len(b, &b->objects[n->a]);
    case IR_ARR: return gn_grammar_ir_array_len(b, &b->arrays[n->a]);
    default: return IR_NEVER;
    }
}

static gn_status find_lengths(gn_ir_builder *b, const walk *w)
{
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        b->nodes[i].min_len = b->nodes[i].kind == IR_EPS ? 0 : IR_NEVER;
    }
    bool more = true;
    for (int pass = 0; more; pass++) {
        GN_REQUIRE(pass < MAX_PASSES, GN_E_LIMIT,
                   "grammar: its rules depend on each other too far");
        more = false;
        for (uint32_t i = 0; i < w->n_order; i++) {
            uint64_t len = length_now(b, w->order[i]);
            more |= len != b->nodes[w->order[i]].min_len;
            b->nodes[w->order[i]].min_len = len;
        }
    }
    return gn_grammar_re_status(b->pool);
}

/* ---- What is regular --------------------------------------------------------------------------------- */

static gn_re lower_list(gn_ir_builder *b, const ir_node *n)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n->b; i++) {
        const ir_node *c = &b->nodes[b->lists.v[n->a + i]];
        bool skip = n->kind == IR_ALT && c->min_len == IR_NEVER;
        if (!skip && c->re == GN_RE_NONE) {
            return GN_RE_NONE;
        }
        depth = re_at(b->pool, c->re)->depth > depth ? re_at(b->pool, c->re)->depth : depth;
    }
    if (depth > LOWER_DEPTH_MAX) {
        return GN_RE_NONE;
    }
    if (n->kind == IR_SEQ) {
        gn_re re = GN_RE_EPS;
        for (uint32_t i = n->b; i-- > 0;) {
            re = gn_grammar_re_cat(b->pool, b->nodes[b->lists.v[n->a + i]].re, re);
        }
        return re;
    }
    size_t mark = b->pool->scratch.n;
    for (uint32_t i = 0; i < n->b; i++) {
        (void)gn_grammar_re_push(b->pool, &b->pool->scratch, b->nodes[b->lists.v[n->a + i]].re);
    }
    return gn_grammar_re_join(b->pool, RE_ALT, mark);
}

static void lower(gn_ir_builder *b, const walk *w)
{
    for (uint32_t i = 0; i < w->n_order; i++) {
        ir_node *n = &b->nodes[w->order[i]];
        if (n->min_len == IR_NEVER) {
            continue;
        }
        if (n->kind == IR_SEQ || n->kind == IR_ALT) {
            n->re = lower_list(b, n);
        } else if (n->kind == IR_RULE) {
            n->re = b->nodes[n->a].re;
        } else if (n->kind == IR_REP && b->nodes[n->a].re != GN_RE_NONE &&
                   re_at(b->pool, b->nodes[n->a].re)->depth <= LOWER_DEPTH_MAX) {
            n->re = gn_grammar_re_repeat(b->pool, b->nodes[n->a].re, n->b, n->c);
        }
        /* A text of a nullable child fills the least number of repeats. */
        if (n->kind == IR_REP && b->nodes[n->a].min_len == 0) {
            n->b = 0;
        }
    }
}

static gn_status prepare(gn_ir_builder *b, gn_ir root)
{
    GN_TRY(gn_grammar_ir_status(b));
    walk w = {0};
    w.order = gn_alloc_array(b->n_nodes, sizeof *w.order);
    gn_status status = w.order != NULL ? visit(b, root, false, &w) : gn_alloc_failed();
    if (status == GN_OK) {
        gn_grammar_ir_measure_style(b);
        status = find_lengths(b, &w);
    }
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        b->nodes[i].mark = 0;
    }
    w.n = 0;
    for (uint32_t i = 0; i < w.n_order && status == GN_OK; i++) {
        if (b->nodes[w.order[i]].mark == 0) {
            status = visit(b, w.order[i], true, &w);
        }
    }
    if (status == GN_OK) {
        lower(b, &w);
        status = gn_grammar_re_status(b->pool);
    }
    gn_free(w.stack);
    gn_free(w.order);
    GN_TRY(status);
    GN_REQUIRE(b->nodes[root].min_len != IR_NEVER, GN_E_REFUSED,
               "grammar: no text fulfils it, expected one that some text does");
    return GN_OK;
}

gn_status gn_grammar_compile(gn_ir_builder *b, gn_ir root, gn_grammar **out)
{
    gn_status status = prepare(b, root);
    gn_grammar *g = NULL;
    if (status == GN_OK) {
        g = gn_calloc(1, sizeof *g);
        status = g != NULL ? GN_OK : gn_alloc_failed();
    }
    if (status != GN_OK) {
        gn_grammar_ir_destroy(b);
        return status;
    }
    g->refs = 1;
    (void)pthread_mutex_init(&g->lock, NULL);
    g->b = b;
    g->root = root;
    g->start = gn_grammar_au_start(g);
    status = gn_grammar_au_status(g);
    if (status != GN_OK) {
        gn_grammar_destroy(g);
        return status;
    }
    *out = g;
    return GN_OK;
}

gn_grammar *gn_grammar_ref(gn_grammar *g)
{
    (void)__atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    return g;
}

void gn_grammar_destroy(gn_grammar *g)
{
    if (g == NULL || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (uint32_t i = 0; i < g->n_states; i++) {
        gn_free(g->states[i].mask);
    }
    for (uint32_t i = 0; i < g->n_terminals; i++) {
        if (g->terminals[i].mine) {
            gn_vocab_walk_destroy((gn_vocab_walk *)(uintptr_t)g->terminals[i].walk);
        }
    }
    gn_free(g->rows);
    gn_free(g->loop_at);
    gn_free(g->jobs);
    gn_free(g->terminals);
    gn_free(g->build);
    gn_free(g->items);
    gn_free(g->state_table);
    gn_free(g->states);
    gn_free(g->configs);
    gn_free(g->work);
    gn_free(g->set_words);
    gn_free(g->frame_table);
    gn_free(g->frames);
    gn_grammar_ir_destroy(g->b);
    (void)pthread_mutex_destroy(&g->lock);
    gn_free(g);
}

uint64_t gn_grammar_min_len(const gn_grammar *g)
{
    return g->b->nodes[g->root].min_len;
}
