/* Frames, closures, states. A closure follows everything that takes no byte, so that each configuration of a state
 * waits for a byte, or is the end of the text: ε with frame 0. */
#include "grammar/automaton.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES    (1u << 20)
#define MAX_STATES    (1u << 18)
#define MAX_CONFIGS   (1u << 21)
#define MAX_CLOSURE   20000u
#define MAX_SET_WORDS (1u << 22)

bool gn_grammar_au_fail(gn_grammar *g, gn_status status, const char *why)
{
    if (g->status == GN_OK) {
        g->status = gn_base_fail(status, "grammar: %s", why);
    }
    return false;
}

gn_status gn_grammar_au_status(const gn_grammar *g)
{
    GN_TRY(gn_grammar_re_status(g->b->pool));
    return g->status == GN_E_LIMIT
               ? gn_base_fail(GN_E_LIMIT, "grammar: its automaton needs too many states")
           : g->status == GN_E_NOMEM ? gn_alloc_failed()
                                     : g->status;
}

bool gn_grammar_au_grow(gn_grammar *g, void **array, uint32_t *cap, size_t need, size_t bytes)
{
    if (need <= *cap) {
        return true;
    }
    size_t want = *cap != 0 ? 2 * (size_t)*cap : 64;
    want = want < need ? need : want;
    void *more = want < UINT32_MAX / 2 ? gn_realloc_array(*array, want, bytes) : NULL;
    if (more == NULL) {
        return gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
    }
    *array = more;
    *cap = (uint32_t)want;
    return true;
}

static uint32_t mix(uint32_t h, uint32_t v)
{
    uint64_t x = ((uint64_t)h << 32 | v) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

/* Double an index of ids when it is half full. hash_at gives the hash of an id. */
static bool make_room(gn_grammar *g, uint32_t **table, uint32_t *cap, uint32_t n,
                      uint32_t (*hash_at)(const gn_grammar *g, uint32_t id))
{
    if (2 * (n + 1) <= *cap) {
        return true;
    }
    uint32_t more = *cap != 0 ? 2 * *cap : 128;
    uint32_t *bigger = gn_calloc(more, sizeof *bigger);
    if (bigger == NULL) {
        return gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
    }
    for (uint32_t id = 0; id < n; id++) {
        uint32_t i = hash_at(g, id) & (more - 1);
        while (bigger[i] != 0) {
            i = (i + 1) & (more - 1);
        }
        bigger[i] = id + 1;
    }
    gn_free(*table);
    *table = bigger;
    *cap = more;
    return true;
}

/* ---- Sets -------------------------------------------------------------------------------------------- */

/* Number of the set words[0 .. n); equal sets are looked for among the newest only, which finds those that
 * matter: the sets of one object as it is filled. */
static uint32_t intern_set(gn_grammar *g, const uint64_t *words, uint32_t n)
{
    uint32_t at = 0;
    for (int looked = 0; at < g->n_set_words && looked < 4096; looked++) {
        uint32_t len = (uint32_t)g->set_words[at];
        if (len == n && memcmp(g->set_words + at + 1, words, n * sizeof *words) == 0) {
            return at;
        }
        at += len + 1;
    }
    if (g->n_set_words > MAX_SET_WORDS) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "too many states");
        return 0;
    }
    if (!gn_grammar_au_grow(g, (void **)&g->set_words, &g->cap_set_words,
                            (size_t)g->n_set_words + n + 1, sizeof *g->set_words)) {
        return 0;
    }
    at = g->n_set_words;
    g->set_words[at] = n;
    memcpy(g->set_words + at + 1, words, n * sizeof *words);
    g->n_set_words += n + 1;
    return at;
}

static bool work_room(gn_grammar *g, uint32_t words)
{
    return gn_grammar_au_grow(g, (void **)&g->work, &g->n_work, words, sizeof *g->work);
}

/* ---- Frames ------------------------------------------------------------------------------------------ */

static uint32_t frame_hash(const gn_grammar *g, uint32_t id)
{
    return g->frames[id].hash;
}

static uint32_t n_bits(const gn_grammar *g, const ir_node *n)
{
    return n->kind == IR_OBJ ? g->b->objects[n->a].n_members : g->b->arrays[n->a].n_unique;
}

/* The place of an object's or array's frame; its set is copied to g->work. */
static ir_place place_of(gn_grammar *g, const au_frame *f)
{
    const ir_node *n = &g->b->nodes[f->node];
    ir_place p = {.at = f->a, .count = f->b};
    bool set = n->kind == IR_OBJ ? !g->b->objects[n->a].ordered : g->b->arrays[n->a].unique != NULL;
    if (set) {
        p.at = 0;
        uint32_t words = n_bits(g, n) / 64 + 1;
        if (work_room(g, words)) {
            memcpy(g->work, g->set_words + f->a + 1, words * sizeof *g->work);
            p.seen = g->work;
        }
    }
    return p;
}

static uint64_t frame_cost(gn_grammar *g, const au_frame *f)
{
    const gn_ir_builder *b = g->b;
    const ir_node *n = &b->nodes[f->node];
    uint64_t own = 0;
    switch (n->kind) {
    case IR_SEQ:
        for (uint32_t i = f->a; i < n->b; i++) {
            own = ir_add(own, b->nodes[b->lists.v[n->a + i]].min_len);
        }
        break;
    case IR_REP: own = f->a < n->b ? ir_mul(b->nodes[n->a].min_len, n->b - f->a) : 0; break;
    case IR_OBJ: own = gn_grammar_ir_object_rest(b, &b->objects[n->a], place_of(g, f)); break;
    case IR_ARR: own = gn_grammar_ir_array_rest(b, &b->arrays[n->a], place_of(g, f)); break;
    default: break;
    }
    return ir_add(own, f->node != 0 ? g->frames[f->parent].cost : 0);
}

static uint32_t intern_frame(gn_grammar *g, uint32_t node, uint32_t a, uint32_t b, uint32_t parent)
{
    if (g->status != GN_OK ||
        !make_room(g, &g->frame_table, &g->frame_table_cap, g->n_frames, frame_hash)) {
        return 0;
    }
    uint32_t hash = mix(mix(mix(mix(0x2545f491, node), a), b), parent);
    uint32_t i = hash & (g->frame_table_cap - 1);
    for (; g->frame_table[i] != 0; i = (i + 1) & (g->frame_table_cap - 1)) {
        const au_frame *f = &g->frames[g->frame_table[i] - 1];
        if (f->hash == hash && f->node == node && f->a == a && f->b == b && f->parent == parent) {
            return g->frame_table[i] - 1;
        }
    }
    if (g->n_frames >= MAX_FRAMES) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "too many states");
        return 0;
    }
    if (!gn_grammar_au_grow(g, (void **)&g->frames, &g->cap_frames, (size_t)g->n_frames + 1,
                            sizeof *g->frames)) {
        return 0;
    }
    au_frame f = {.node = node, .a = a, .b = b, .parent = parent, .hash = hash};
    f.cost = frame_cost(g, &f);
    g->frames[g->n_frames] = f;
    g->frame_table[i] = g->n_frames + 1;
    return g->n_frames++;
}

/* The frame of an object or array at a place whose set is g->work. */
static uint32_t place_frame(gn_grammar *g, uint32_t node, ir_place p, uint32_t parent)
{
    const ir_node *n = &g->b->nodes[node];
    bool set = n->kind == IR_OBJ ? !g->b->objects[n->a].ordered : g->b->arrays[n->a].unique != NULL;
    uint32_t a = set ? intern_set(g, g->work, n_bits(g, n) / 64 + 1) : p.at;
    return intern_frame(g, node, a, p.count, parent);
}

/* ---- Closures ---------------------------------------------------------------------------------------- */

static void todo(gn_grammar *g, uint32_t node, uint32_t frame)
{
    if (g->status != GN_OK) {
        return;
    }
    /* Done before? Closures are short, and those that are long are refused. */
    for (uint32_t i = 0; i < g->n_items; i++) {
        if (g->items[i].id == node && g->items[i].frame == frame) {
            return;
        }
    }
    if (g->n_items >= MAX_CLOSURE) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "too many states");
        return;
    }
    if (gn_grammar_au_grow(g, (void **)&g->items, &g->cap_items, (size_t)g->n_items + 1,
                           sizeof *g->items)) {
        g->items[g->n_items++] = (au_item){node, frame};
    }
}

void gn_grammar_au_begin(gn_grammar *g)
{
    g->n_items = 0;
    g->done_items = 0;
    g->n_build = 0;
    g->build_end = false;
}

static void member_done(gn_grammar *g, uint32_t frame, uint32_t tag)
{
    au_frame f = g->frames[frame];
    const ir_node *n = &g->b->nodes[f.node];
    ir_place p = place_of(g, &f);
    if (g->status != GN_OK) {
        return;
    }
    if (n->kind == IR_OBJ) {
        const ir_object *o = &g->b->objects[n->a];
        p = gn_grammar_ir_object_after(o, p, tag, g->work);
        uint32_t next = place_frame(g, f.node, p, f.parent);
        todo(g, o->members[tag].value, next);
        return;
    }
    const ir_array *a = &g->b->arrays[n->a];
    if (a->unique != NULL) {
        g->work[tag / 64] |= (uint64_t)1 << (tag % 64);
        p.count++;
        todo(g, 0, place_frame(g, f.node, p, f.parent));
        return;
    }
    gn_ir plain;
    gn_ir matching;
    gn_grammar_ir_array_forms(g->b, a, p, &plain, &matching);
    if (plain != GN_IR_NONE) {
        todo(g, plain, place_frame(g, f.node, gn_grammar_ir_array_after(a, p, false), f.parent));
    }
    if (matching != GN_IR_NONE) {
        todo(g, matching, place_frame(g, f.node, gn_grammar_ir_array_after(a, p, true), f.parent));
    }
}

void gn_grammar_au_end_of(gn_grammar *g, gn_re re, uint32_t frame)
{
    if (!gn_grammar_re_nullable(g->b->pool, re)) {
        return;
    }
    if (!gn_grammar_re_has_tag(g->b->pool, re)) {
        todo(g, 0, frame);
        return;
    }
    uint32_t few[16];
    uint32_t *tags = few;
    size_t n = gn_grammar_re_tags(g->b->pool, re, few, GN_COUNTOF(few));
    if (n > GN_COUNTOF(few)) {
        tags = gn_alloc_array(n, sizeof *tags);
        if (tags == NULL) {
            (void)gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
            return;
        }
        (void)gn_grammar_re_tags(g->b->pool, re, tags, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (tags[i] == IR_TAG_CLOSE) {
            todo(g, 0, g->frames[frame].parent);
        } else {
            member_done(g, frame, tags[i]);
        }
    }
    if (tags != few) {
        gn_free(tags);
    }
}

static void add_config(gn_grammar *g, gn_re re, uint32_t frame)
{
    for (uint32_t i = 0; i < g->n_build; i++) {
        if (g->build[i].re == re && g->build[i].frame == frame) {
            return;
        }
    }
    if (g->n_build >= MAX_CLOSURE) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "too many states");
        return;
    }
    if (gn_grammar_au_grow(g, (void **)&g->build, &g->cap_build, (size_t)g->n_build + 1,
                           sizeof *g->build)) {
        g->build[g->n_build++] = (au_config){re, frame};
    }
}

/* A state of a regular expression with its frame: waits for a byte, and may end. */
static void arrive(gn_grammar *g, gn_re re, uint32_t frame)
{
    if (re == GN_RE_NONE) {
        return;
    }
    if (re != GN_RE_EPS && re_at(g->b->pool, re)->kind != RE_TAG) {
        add_config(g, re, frame);
    }
    gn_grammar_au_end_of(g, re, frame);
}

static void enter(gn_grammar *g, gn_ir id, uint32_t frame)
{
    gn_ir_builder *b = g->b;
    const ir_node *n = &b->nodes[id];
    if (n->min_len == IR_NEVER) {
        return;
    }
    if (n->re != GN_RE_NONE) {
        arrive(g, n->re, frame);
        return;
    }
    switch (n->kind) {
    case IR_SEQ: todo(g, b->lists.v[n->a], intern_frame(g, id, 1, 0, frame)); break;
    case IR_ALT:
        for (uint32_t i = 0; i < n->b; i++) {
            todo(g, b->lists.v[n->a + i], frame);
        }
        break;
    case IR_REP:
        if (n->b == 0) {
            todo(g, 0, frame);
        }
        todo(g, n->a, intern_frame(g, id, n->b == 0 && n->c == GN_IR_MANY ? 0 : 1, 0, frame));
        break;
    case IR_RULE: todo(g, n->a, frame); break;
    case IR_OBJ:
    case IR_ARR: {
        bool object = n->kind == IR_OBJ;
        uint32_t words = n_bits(g, n) / 64 + 1;
        if (!work_room(g, words)) {
            return;
        }
        memset(g->work, 0, words * sizeof *g->work);
        uint32_t f = place_frame(g, id, (ir_place){.seen = g->work}, frame);
        if (g->status != GN_OK) {
            return;
        }
        ir_place p = place_of(g, &g->frames[f]);
        arrive(g,
               object ? gn_grammar_ir_object_next(b, &b->objects[n->a], p, true)
                      : gn_grammar_ir_array_next(b, &b->arrays[n->a], p, true),
               f);
        break;
    }
    default: break;
    }
}

static void go_on(gn_grammar *g, uint32_t frame)
{
    gn_ir_builder *b = g->b;
    if (frame == 0) {
        g->build_end = true;
        return;
    }
    au_frame f = g->frames[frame];
    const ir_node *n = &b->nodes[f.node];
    switch (n->kind) {
    case IR_SEQ:
        /* The last child goes on with the parent's frame: right recursion takes no stack. */
        todo(g, b->lists.v[n->a + f.a],
             f.a + 1 < n->b ? intern_frame(g, f.node, f.a + 1, 0, f.parent) : f.parent);
        break;
    case IR_REP:
        if (f.a >= n->b) {
            todo(g, 0, f.parent);
        }
        if (n->c == GN_IR_MANY || f.a < n->c) {
            uint32_t top = n->c == GN_IR_MANY ? n->b : n->c;
            uint32_t times = f.a < top ? f.a + 1 : top;
            todo(g, n->a, intern_frame(g, f.node, times, 0, f.parent));
        }
        break;
    case IR_OBJ:
    case IR_ARR:
        if (f.next == 0) {
            ir_place p = place_of(g, &f);
            if (g->status != GN_OK) {
                return;
            }
            f.next = n->kind == IR_OBJ ? gn_grammar_ir_object_next(b, &b->objects[n->a], p, false)
                                       : gn_grammar_ir_array_next(b, &b->arrays[n->a], p, false);
            g->frames[frame].next = f.next;
        }
        arrive(g, f.next, frame);
        break;
    default: break;
    }
}

void gn_grammar_au_close(gn_grammar *g)
{
    for (; g->done_items < g->n_items && g->status == GN_OK; g->done_items++) {
        au_item item = g->items[g->done_items];
        if (item.id != 0) {
            enter(g, item.id, item.frame);
        } else {
            go_on(g, item.frame);
        }
    }
}

/* ---- States ------------------------------------------------------------------------------------------ */

static uint32_t state_hash(const gn_grammar *g, uint32_t id)
{
    return g->states[id].hash;
}

static int compare_configs(const void *x, const void *y)
{
    const au_config *a = x;
    const au_config *b = y;
    if (a->frame != b->frame) {
        return a->frame < b->frame ? -1 : 1;
    }
    return (a->re > b->re) - (a->re < b->re);
}

static uint32_t intern_state(gn_grammar *g)
{
    gn_grammar_au_close(g);
    if (g->status != GN_OK || g->b->pool->status != GN_OK || (g->n_build == 0 && !g->build_end) ||
        !make_room(g, &g->state_table, &g->state_table_cap, g->n_states, state_hash)) {
        return AU_DEAD;
    }
    if (g->n_build > 1) {
        qsort(g->build, g->n_build, sizeof *g->build, compare_configs);
    }
    uint32_t hash = 0x811c9dc5u + g->build_end;
    for (uint32_t i = 0; i < g->n_build; i++) {
        hash = mix(mix(hash, g->build[i].re), g->build[i].frame);
    }
    uint32_t i = hash & (g->state_table_cap - 1);
    for (; g->state_table[i] != 0; i = (i + 1) & (g->state_table_cap - 1)) {
        const au_state *s = &g->states[g->state_table[i] - 1];
        if (s->hash == hash && s->n == g->n_build && s->may_end == g->build_end &&
            (s->n == 0 || memcmp(g->configs + s->at, g->build, s->n * sizeof *g->build) == 0)) {
            return g->state_table[i] - 1;
        }
    }
    if (g->n_states >= MAX_STATES || g->n_configs + g->n_build > MAX_CONFIGS) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "too many states");
        return AU_DEAD;
    }
    if (!gn_grammar_au_grow(g, (void **)&g->states, &g->cap_states, (size_t)g->n_states + 1,
                            sizeof *g->states) ||
        !gn_grammar_au_grow(g, (void **)&g->configs, &g->cap_configs,
                            (size_t)g->n_configs + g->n_build + 1, sizeof *g->configs)) {
        return AU_DEAD;
    }
    if (g->n_build > 0) {
        memcpy(g->configs + g->n_configs, g->build, g->n_build * sizeof *g->build);
    }
    g->states[g->n_states] =
        (au_state){.at = g->n_configs, .n = g->n_build, .hash = hash, .may_end = g->build_end};
    g->n_configs += g->n_build;
    g->state_table[i] = g->n_states + 1;
    return g->n_states++;
}

uint32_t gn_grammar_au_start(gn_grammar *g)
{
    (void)intern_frame(g, 0, 0, 0, 0); /* the bottom */
    gn_grammar_au_begin(g);
    todo(g, g->root, 0);
    return intern_state(g);
}

uint32_t gn_grammar_au_step(gn_grammar *g, uint32_t state, uint8_t byte)
{
    gn_grammar_au_begin(g);
    for (uint32_t i = 0; i < g->states[state].n; i++) {
        au_config c = g->configs[g->states[state].at + i];
        gn_re next = gn_grammar_re_step(g->b->pool, c.re, byte);
        if (next != GN_RE_NONE) {
            arrive(g, next, c.frame);
        }
    }
    return intern_state(g);
}

/* ---- Costs ------------------------------------------------------------------------------------------- */

/* Least bytes of a tagged expression and what follows its tags. */
static uint64_t tagged_cost(gn_grammar *g, gn_re re, uint32_t frame)
{
    gn_re_pool *pool = g->b->pool;
    uint64_t sum = 0;
    for (;;) {
        re_node n = *re_at(pool, re);
        if (n.kind == RE_CAT) {
            sum = ir_add(sum, ir_re_len(pool, n.a));
            re = n.b;
            continue;
        }
        uint64_t best = IR_NEVER;
        if (n.kind == RE_ALT) {
            for (uint32_t i = 0; i < n.b; i++) {
                uint64_t one = tagged_cost(g, pool->lists.v[n.a + i], frame);
                best = one < best ? one : best;
            }
            return ir_add(sum, best);
        }
        if (n.kind != RE_TAG) {
            return IR_NEVER;
        }
        gn_grammar_au_begin(g);
        if (n.a == IR_TAG_CLOSE) {
            return ir_add(sum, g->frames[g->frames[frame].parent].cost);
        }
        member_done(g, frame, n.a);
        for (uint32_t i = 0; i < g->n_items; i++) {
            uint32_t id = g->items[i].id;
            uint64_t one =
                ir_add(id != 0 ? g->b->nodes[id].min_len : 0, g->frames[g->items[i].frame].cost);
            best = one < best ? one : best;
        }
        return ir_add(sum, best);
    }
}

uint64_t gn_grammar_au_cost(gn_grammar *g, au_config c)
{
    if (gn_grammar_re_has_tag(g->b->pool, c.re)) {
        return tagged_cost(g, c.re, c.frame);
    }
    return ir_add(ir_re_len(g->b->pool, c.re), g->frames[c.frame].cost);
}
