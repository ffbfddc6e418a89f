/* The pool: nodes are interned, so that equal expressions are one node, and constructors bring what is equal
 * by simple laws to one form (∅ and ε vanish, sets under an alternative merge, literals grow together,
 * concatenations lean right, lists are sorted). That keeps the derivatives of an expression few; it is all that
 * stands in for the minimisation of an automaton. */
#include "grammar/re.h"

#include "base/alloc.h"
#include "grammar/re_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_NODES (1u << 20)
#define MAX_ROWS      (1u << 16)

gn_re gn_grammar_re_fail(gn_re_pool *pool, gn_status status, const char *message)
{
    if (pool->status == GN_OK) {
        pool->status = status;
        (void)snprintf(pool->message, sizeof pool->message, "%s", message);
    }
    return GN_RE_NONE;
}

gn_re gn_grammar_re_nomem(gn_re_pool *pool)
{
    return gn_grammar_re_fail(pool, GN_E_NOMEM, "out of memory");
}

gn_status gn_grammar_re_status(const gn_re_pool *pool)
{
    return pool->status == GN_OK ? GN_OK : gn_base_fail(pool->status, "%s", pool->message);
}

gn_status gn_grammar_re_create(uint32_t max_nodes, gn_re_pool **out)
{
    gn_re_pool *pool = gn_calloc(1, sizeof *pool);
    if (pool == NULL) {
        return gn_alloc_failed();
    }
    pool->max_nodes = max_nodes != 0 ? max_nodes : DEFAULT_NODES;
    pool->max_rows = MAX_ROWS;
    pool->table_cap = 256;
    pool->cap_nodes = 64;
    pool->table = gn_calloc(pool->table_cap, sizeof *pool->table);
    pool->nodes = gn_alloc_array(pool->cap_nodes, sizeof *pool->nodes);
    if (pool->table == NULL || pool->nodes == NULL) {
        gn_grammar_re_destroy(pool);
        return gn_alloc_failed();
    }
    pool->nodes[GN_RE_NONE] = (re_node){.kind = RE_NONE, .min_len = GN_RE_NEVER};
    pool->nodes[GN_RE_EPS] = (re_node){.kind = RE_EPS, .flags = RE_NULLABLE};
    pool->n_nodes = 2;
    *out = pool;
    return GN_OK;
}

void gn_grammar_re_destroy(gn_re_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (uint32_t i = 0; i * RE_ROWS_CHUNK < pool->n_rows; i++) {
        gn_free(pool->row_chunks[i]);
    }
    gn_free(pool->row_chunks);
    gn_free(pool->steps);
    gn_free(pool->scratch.v);
    gn_free(pool->lists.v);
    gn_free(pool->text);
    gn_free(pool->sets);
    gn_free(pool->nodes);
    gn_free(pool->table);
    gn_free(pool);
}

/* Room for `need` elements in an array that doubles; false records the failure. */
static bool grow(gn_re_pool *pool, void **array, uint32_t *cap, size_t need, size_t bytes)
{
    if (need <= *cap) {
        return true;
    }
    size_t want = *cap != 0 ? 2 * (size_t)*cap : 64;
    want = want < need ? need : want;
    void *more = want <= UINT32_MAX / 2 ? gn_realloc_array(*array, want, bytes) : NULL;
    if (more == NULL) {
        gn_grammar_re_nomem(pool);
        return false;
    }
    *array = more;
    *cap = (uint32_t)want;
    return true;
}

bool gn_grammar_re_push(gn_re_pool *pool, re_vec *vec, uint32_t value)
{
    uint32_t *more =
        vec->n < UINT32_MAX / 2 ? gn_grow_array(vec->v, &vec->cap, vec->n + 1, sizeof *more) : NULL;
    if (more == NULL) {
        gn_grammar_re_nomem(pool);
        return false;
    }
    vec->v = more;
    vec->v[vec->n++] = value;
    return true;
}

/* ---- Interning --------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static const void *payload(const gn_re_pool *pool, const re_node *n, size_t *bytes)
{
    switch (n->kind) {
    case RE_SET: *bytes = sizeof(gn_re_set); return &pool->sets[n->a];
    case RE_LIT: *bytes = n->b; return pool->text + n->a;
    case RE_ALT:
    case RE_AND: *bytes = n->b * sizeof(uint32_t); return pool->lists.v + n->a;
    default: *bytes = 0; return NULL;
    }
}

static uint32_t hash_node(const gn_re_pool *pool, const re_node *n)
{
    size_t bytes;
    const unsigned char *p = payload(pool, n, &bytes);
    uint64_t h = mix(0x51ed270b, n->kind);
    if (p == NULL) {
        h = mix(mix(h, n->a | (uint64_t)n->b << 32), n->c | (uint64_t)n->d << 32);
    }
    while (bytes >= 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        h = mix(h, v);
        p += 8;
        bytes -= 8;
    }
    uint64_t v = bytes;
    for (size_t i = 0; i < bytes; i++) {
        v = v << 8 | p[i];
    }
    h = mix(h, v);
    return (uint32_t)(h >> 32) ^ (uint32_t)h;
}

static bool same_node(const gn_re_pool *pool, const re_node *x, const re_node *y)
{
    if (x->kind != y->kind || x->hash != y->hash) {
        return false;
    }
    size_t nx;
    size_t ny;
    const void *px = payload(pool, x, &nx);
    const void *py = payload(pool, y, &ny);
    if (px == NULL) {
        return x->a == y->a && x->b == y->b && x->c == y->c && x->d == y->d;
    }
    return nx == ny && memcmp(px, py, nx) == 0;
}

static bool rehash(gn_re_pool *pool)
{
    uint32_t cap = pool->table_cap * 2;
    uint32_t *table = gn_calloc(cap, sizeof *table);
    if (table == NULL) {
        gn_grammar_re_nomem(pool);
        return false;
    }
    for (uint32_t id = 2; id < pool->n_nodes; id++) {
        uint32_t i = pool->nodes[id].hash & (cap - 1);
        while (table[i] != 0) {
            i = (i + 1) & (cap - 1);
        }
        table[i] = id;
    }
    gn_free(pool->table);
    pool->table = table;
    pool->table_cap = cap;
    return true;
}

static uint32_t sum_len(uint32_t a, uint32_t b)
{
    if (a == GN_RE_NEVER || b == GN_RE_NEVER) {
        return GN_RE_NEVER;
    }
    if (a == RE_UNKNOWN || b == RE_UNKNOWN) {
        return RE_UNKNOWN;
    }
    uint64_t sum = (uint64_t)a + b;
    return sum < RE_UNKNOWN ? (uint32_t)sum : RE_UNKNOWN - 1;
}

/* Nullable, tagged, depth and shortest length of a node from its children. */
static void derive_list(const gn_re_pool *pool, re_node *n)
{
    bool is_and = n->kind == RE_AND;
    uint32_t best = GN_RE_NEVER;
    bool unknown = is_and;
    n->flags = is_and ? RE_NULLABLE : 0;
    for (uint32_t i = 0; i < n->b; i++) {
        const re_node *c = re_at(pool, pool->lists.v[n->a + i]);
        n->flags |= c->flags & (is_and ? RE_TAGGED : RE_TAGGED | RE_NULLABLE);
        if (is_and && (c->flags & RE_NULLABLE) == 0) {
            n->flags &= (uint8_t)~RE_NULLABLE;
        }
        n->depth = c->depth + 1 > n->depth ? (uint16_t)(c->depth + 1) : n->depth;
        unknown |= c->min_len == RE_UNKNOWN;
        best = c->min_len < best ? c->min_len : best;
    }
    n->min_len = unknown ? RE_UNKNOWN : best;
}

static void derive_facts(const gn_re_pool *pool, re_node *n)
{
    const re_node *a =
        re_at(pool, n->kind == RE_CAT || n->kind == RE_NOT || n->kind == RE_REP ? n->a : 0);
    n->flags = 0;
    n->depth = (uint16_t)(a->depth + 1);
    switch (n->kind) {
    case RE_SET: n->min_len = 1; break;
    case RE_LIT: n->min_len = n->b; break;
    case RE_TAG:
        n->min_len = 0;
        n->flags = RE_NULLABLE | RE_TAGGED;
        break;
    case RE_CAT: {
        const re_node *b = re_at(pool, n->b);
        n->flags = (a->flags & b->flags & RE_NULLABLE) | (b->flags & RE_TAGGED);
        n->depth = b->depth > n->depth ? b->depth : n->depth;
        n->min_len = sum_len(a->min_len, b->min_len);
        break;
    }
    case RE_ALT:
    case RE_AND:
        n->depth = 0;
        derive_list(pool, n);
        break;
    case RE_NOT:
        n->flags = (a->flags & RE_NULLABLE) ^ RE_NULLABLE;
        n->min_len = n->a == GN_RE_NONE ? 0 : RE_UNKNOWN;
        break;
    case RE_REP:
        n->flags = n->b == 0 ? RE_NULLABLE : a->flags & RE_NULLABLE;
        n->min_len = 0;
        if (n->b != 0) {
            uint64_t len = (uint64_t)a->min_len * n->b;
            n->min_len = a->min_len >= RE_UNKNOWN ? a->min_len
                         : len < RE_UNKNOWN       ? (uint32_t)len
                                                  : RE_UNKNOWN - 1;
        }
        break;
    case RE_MULT: {
        uint64_t rem = n->b | (uint64_t)n->c << 32;
        const re_step *s = &pool->steps[n->a];
        uint32_t left = n->d == 0 ? s->scale : n->d - 1;
        for (uint32_t i = 0; i < left; i++) {
            rem = rem * 10 % s->step;
        }
        n->flags = rem == 0 ? RE_NULLABLE : 0;
        n->min_len = RE_UNKNOWN;
        break;
    }
    default: assert(false);
    }
    if (n->flags & RE_NULLABLE) {
        n->min_len = 0;
    }
}

gn_re gn_grammar_re_intern(gn_re_pool *pool, re_node n)
{
    if (pool->status != GN_OK) {
        return GN_RE_NONE;
    }
    n.row = 0;
    n.hash = hash_node(pool, &n);
    uint32_t i = n.hash & (pool->table_cap - 1);
    for (; pool->table[i] != 0; i = (i + 1) & (pool->table_cap - 1)) {
        if (same_node(pool, re_at(pool, pool->table[i]), &n)) {
            return pool->table[i];
        }
    }
    if (pool->n_nodes >= pool->max_nodes) {
        return gn_grammar_re_fail(pool, GN_E_LIMIT,
                                  "the grammar's automaton needs too many states");
    }
    if (!grow(pool, (void **)&pool->nodes, &pool->cap_nodes, (size_t)pool->n_nodes + 1,
              sizeof *pool->nodes)) {
        return GN_RE_NONE;
    }
    derive_facts(pool, &n);
    if (n.depth > RE_DEPTH_MAX) {
        return gn_grammar_re_fail(pool, GN_E_LIMIT, "a regular expression is nested too deeply");
    }
    uint32_t id = pool->n_nodes++;
    pool->nodes[id] = n;
    pool->table[i] = id;
    if (pool->n_nodes * 2 > pool->table_cap && !rehash(pool)) {
        return GN_RE_NONE;
    }
    return id;
}

/* ---- Constructors ------------------------------------------------------------------------------------ */

static gn_re lit(gn_re_pool *pool, const char *s, size_t len)
{
    assert(len >= 1 && len <= RE_LIT_MAX);
    /* The bytes go to the end of the text; they stay only if the node is new. */
    if (!grow(pool, (void **)&pool->text, &pool->cap_text, (size_t)pool->n_text + len, 1)) {
        return GN_RE_NONE;
    }
    memcpy(pool->text + pool->n_text, s, len);
    uint32_t before = pool->n_nodes;
    gn_re id = gn_grammar_re_intern(
        pool, (re_node){.kind = RE_LIT, .a = pool->n_text, .b = (uint32_t)len});
    if (pool->n_nodes != before) {
        pool->n_text += (uint32_t)len;
    }
    return id;
}

gn_re gn_grammar_re_set(gn_re_pool *pool, const gn_re_set *set)
{
    int count = 0;
    char only = 0;
    for (int i = 0; i < 4; i++) {
        count += __builtin_popcountll(set->bits[i]);
        if (set->bits[i] != 0) {
            only = (char)(i * 64 + __builtin_ctzll(set->bits[i]));
        }
    }
    if (count == 0) {
        return GN_RE_NONE;
    }
    if (count == 1) {
        return lit(pool, &only, 1);
    }
    if (!grow(pool, (void **)&pool->sets, &pool->cap_sets, (size_t)pool->n_sets + 1,
              sizeof *pool->sets)) {
        return GN_RE_NONE;
    }
    pool->sets[pool->n_sets] = *set;
    uint32_t before = pool->n_nodes;
    gn_re id = gn_grammar_re_intern(pool, (re_node){.kind = RE_SET, .a = pool->n_sets});
    pool->n_sets += pool->n_nodes != before;
    return id;
}

gn_re gn_grammar_re_literal(gn_re_pool *pool, const char *s, size_t len)
{
    gn_re re = GN_RE_EPS;
    while (len > 0 && pool->status == GN_OK) {
        size_t n = len % RE_LIT_MAX != 0 ? len % RE_LIT_MAX : RE_LIT_MAX;
        len -= n;
        re = gn_grammar_re_cat(pool, lit(pool, s + len, n), re);
    }
    return re;
}

/* a is no concatenation. */
static gn_re cat2(gn_re_pool *pool, gn_re a, gn_re b)
{
    if (a == GN_RE_NONE || b == GN_RE_NONE) {
        return GN_RE_NONE;
    }
    if (a == GN_RE_EPS || b == GN_RE_EPS) {
        return a == GN_RE_EPS ? b : a;
    }
    const re_node *na = re_at(pool, a);
    const re_node *nb = re_at(pool, b);
    const re_node *head = nb->kind == RE_CAT ? re_at(pool, nb->a) : nb;
    if (na->kind == RE_LIT && head->kind == RE_LIT && na->b + head->b <= RE_LIT_MAX) {
        char joined[RE_LIT_MAX];
        memcpy(joined, pool->text + na->a, na->b);
        memcpy(joined + na->b, pool->text + head->a, head->b);
        gn_re rest = nb->kind == RE_CAT ? nb->b : GN_RE_EPS;
        return cat2(pool, lit(pool, joined, na->b + head->b), rest);
    }
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_CAT, .a = a, .b = b});
}

gn_re gn_grammar_re_cat(gn_re_pool *pool, gn_re a, gn_re b)
{
    size_t mark = pool->scratch.n;
    while (re_at(pool, a)->kind == RE_CAT) {
        if (!gn_grammar_re_push(pool, &pool->scratch, re_at(pool, a)->a)) {
            return GN_RE_NONE;
        }
        a = re_at(pool, a)->b;
    }
    gn_re re = cat2(pool, a, b);
    while (pool->scratch.n > mark) {
        re = cat2(pool, pool->scratch.v[--pool->scratch.n], re);
    }
    return re;
}

static int compare_ids(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x;
    uint32_t b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* Replace nested lists of the same kind in scratch[mark ..] by their members. */
static bool flatten(gn_re_pool *pool, re_kind kind, size_t mark)
{
    size_t end = pool->scratch.n;
    for (size_t i = mark; i < end; i++) {
        re_node n = *re_at(pool, pool->scratch.v[i]);
        if (n.kind != kind) {
            continue;
        }
        pool->scratch.v[i] = pool->lists.v[n.a];
        for (uint32_t k = 1; k < n.b; k++) {
            if (!gn_grammar_re_push(pool, &pool->scratch, pool->lists.v[n.a + k])) {
                return false;
            }
        }
    }
    return true;
}

static bool is_all(const gn_re_pool *pool, gn_re a)
{
    return re_at(pool, a)->kind == RE_NOT && re_at(pool, a)->a == GN_RE_NONE;
}

static bool one_byte(const gn_re_pool *pool, const re_node *n, gn_re_set *set)
{
    if (n->kind == RE_SET) {
        *set = pool->sets[n->a];
        return true;
    }
    if (n->kind == RE_LIT && n->b == 1) {
        *set = (gn_re_set){{0}};
        gn_re_set_add(set, (uint8_t)pool->text[n->a]);
        return true;
    }
    return false;
}

/* All members of one byte become one set: their union or their intersection. */
static void merge_sets(gn_re_pool *pool, re_kind kind, size_t mark)
{
    gn_re_set sum = {{0}};
    size_t n_sets = 0;
    size_t out = mark;
    uint32_t *v = pool->scratch.v;
    for (size_t i = mark; i < pool->scratch.n; i++) {
        gn_re_set set;
        if (!one_byte(pool, re_at(pool, v[i]), &set)) {
            v[out++] = v[i];
            continue;
        }
        for (int w = 0; w < 4; w++) {
            sum.bits[w] = n_sets == 0      ? set.bits[w]
                          : kind == RE_ALT ? sum.bits[w] | set.bits[w]
                                           : sum.bits[w] & set.bits[w];
        }
        n_sets++;
    }
    if (n_sets == 0) {
        return;
    }
    pool->scratch.n = out;
    gn_re merged = gn_grammar_re_set(pool, &sum);
    (void)gn_grammar_re_push(pool, &pool->scratch, merged);
}

/* Drop what changes nothing, and find what decides all; true: *result is the node. */
static bool absorb(gn_re_pool *pool, re_kind kind, size_t mark, gn_re *result)
{
    uint32_t *v = pool->scratch.v;
    size_t out = mark;
    bool eps = false;
    bool all = false;
    bool others_nullable = kind == RE_AND;
    for (size_t i = mark; i < pool->scratch.n; i++) {
        const re_node *n = re_at(pool, v[i]);
        if (v[i] == GN_RE_NONE) {
            if (kind == RE_AND) {
                *result = GN_RE_NONE;
                return true;
            }
            continue;
        }
        if (v[i] == GN_RE_EPS) {
            eps = true;
            continue;
        }
        if (is_all(pool, v[i])) {
            all = true;
            continue;
        }
        if (kind == RE_ALT) {
            others_nullable |= (n->flags & (RE_NULLABLE | RE_TAGGED)) == RE_NULLABLE;
        } else {
            others_nullable &= (n->flags & RE_NULLABLE) != 0;
        }
        v[out++] = v[i];
    }
    pool->scratch.n = out;
    if (kind == RE_AND && eps) {
        *result = others_nullable ? GN_RE_EPS : GN_RE_NONE;
        return true;
    }
    if (kind == RE_ALT && all) {
        *result = gn_grammar_re_not(pool, GN_RE_NONE);
        return true;
    }
    if (kind == RE_AND && all && out == mark) {
        *result = gn_grammar_re_not(pool, GN_RE_NONE);
        return true;
    }
    if (kind == RE_ALT && eps && !others_nullable) {
        (void)gn_grammar_re_push(pool, &pool->scratch, GN_RE_EPS);
    }
    return false;
}

static void sort_unique(gn_re_pool *pool, size_t mark)
{
    uint32_t *v = pool->scratch.v + mark;
    size_t n = pool->scratch.n - mark;
    bool sorted = true;
    for (size_t i = 1; i < n; i++) {
        sorted &= v[i - 1] < v[i];
    }
    if (sorted) {
        return;
    }
    qsort(v, n, sizeof *v, compare_ids);
    size_t out = 1;
    for (size_t i = 1; i < n; i++) {
        if (v[i] != v[out - 1]) {
            v[out++] = v[i];
        }
    }
    pool->scratch.n = mark + out;
}

gn_re gn_grammar_re_join(gn_re_pool *pool, re_kind kind, size_t mark)
{
    gn_re result = GN_RE_NONE;
    if (pool->status != GN_OK || !flatten(pool, kind, mark) || absorb(pool, kind, mark, &result) ||
        pool->status != GN_OK) {
        pool->scratch.n = mark;
        return result;
    }
    merge_sets(pool, kind, mark);
    if (pool->scratch.n > mark) {
        sort_unique(pool, mark);
    }
    size_t n = pool->scratch.n - mark;
    if (kind == RE_AND && n > 0 && pool->scratch.v[mark] == GN_RE_NONE) {
        n = 0; /* disjoint sets */
    }
    if (n <= 1) {
        result = n == 1 ? pool->scratch.v[mark] : GN_RE_NONE;
    } else {
        size_t at = pool->lists.n;
        for (size_t i = 0; i < n; i++) {
            if (!gn_grammar_re_push(pool, &pool->lists, pool->scratch.v[mark + i])) {
                break;
            }
        }
        uint32_t before = pool->n_nodes;
        result = gn_grammar_re_intern(
            pool, (re_node){.kind = (uint8_t)kind, .a = (uint32_t)at, .b = (uint32_t)n});
        if (pool->n_nodes == before) {
            pool->lists.n = at;
        }
    }
    pool->scratch.n = mark;
    if (kind == RE_AND && pool->status == GN_OK && re_at(pool, result)->flags & RE_TAGGED &&
        n > 1) {
        return gn_grammar_re_fail(pool, GN_E_ARG, "a tag stands under an intersection");
    }
    return result;
}

static gn_re join(gn_re_pool *pool, re_kind kind, const gn_re *list, size_t n)
{
    size_t mark = pool->scratch.n;
    for (size_t i = 0; i < n; i++) {
        if (!gn_grammar_re_push(pool, &pool->scratch, list[i])) {
            return GN_RE_NONE;
        }
    }
    if (n == 0) {
        return kind == RE_ALT ? GN_RE_NONE : gn_grammar_re_not(pool, GN_RE_NONE);
    }
    return gn_grammar_re_join(pool, kind, mark);
}

gn_re gn_grammar_re_alt(gn_re_pool *pool, const gn_re *list, size_t n)
{
    return join(pool, RE_ALT, list, n);
}

gn_re gn_grammar_re_and(gn_re_pool *pool, const gn_re *list, size_t n)
{
    return join(pool, RE_AND, list, n);
}

gn_re gn_grammar_re_not(gn_re_pool *pool, gn_re a)
{
    const re_node *n = re_at(pool, a);
    if (n->kind == RE_NOT) {
        return n->a;
    }
    if (n->flags & RE_TAGGED) {
        return gn_grammar_re_fail(pool, GN_E_ARG, "a tag stands under a complement");
    }
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_NOT, .a = a});
}

gn_re gn_grammar_re_repeat(gn_re_pool *pool, gn_re a, uint32_t min, uint32_t max)
{
    if (max < min || pool->status != GN_OK) {
        return GN_RE_NONE;
    }
    if (max == 0 || a == GN_RE_EPS || a == GN_RE_NONE) {
        return a == GN_RE_NONE && min != 0 ? GN_RE_NONE : GN_RE_EPS;
    }
    const re_node *n = re_at(pool, a);
    if (n->flags & RE_TAGGED) {
        return gn_grammar_re_fail(pool, GN_E_ARG, "a tag stands under a repeat");
    }
    if (n->flags & RE_NULLABLE) {
        min = 0;
    }
    if ((min == 1 && max == 1) || is_all(pool, a) ||
        (n->kind == RE_REP && n->b == 0 && n->c == GN_RE_MANY)) {
        return a;
    }
    if (n->kind == RE_REP && n->b == 0 && n->c == 1) {
        return gn_grammar_re_repeat(pool, n->a, 0, max);
    }
    if (min == 0 && max == 1 && n->flags & RE_NULLABLE) {
        return a;
    }
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_REP, .a = a, .b = min, .c = max});
}

gn_re gn_grammar_re_tag(gn_re_pool *pool, uint32_t tag)
{
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_TAG, .a = tag});
}

gn_re gn_grammar_re_multiple(gn_re_pool *pool, uint64_t step, uint32_t scale)
{
    if (step == 0 || step > (uint64_t)1 << 40 || scale > 18) {
        return gn_grammar_re_fail(pool, GN_E_LIMIT, "multipleOf: the step has too many digits");
    }
    uint32_t at = 0;
    while (at < pool->n_steps && (pool->steps[at].step != step || pool->steps[at].scale != scale)) {
        at++;
    }
    if (at == pool->n_steps) {
        if (!grow(pool, (void **)&pool->steps, &pool->cap_steps, (size_t)at + 1,
                  sizeof *pool->steps)) {
            return GN_RE_NONE;
        }
        pool->steps[pool->n_steps++] = (re_step){step, scale};
    }
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_MULT, .a = at});
}

bool gn_grammar_re_nullable(const gn_re_pool *pool, gn_re a)
{
    return (re_at(pool, a)->flags & RE_NULLABLE) != 0;
}

bool gn_grammar_re_has_tag(const gn_re_pool *pool, gn_re a)
{
    return (re_at(pool, a)->flags & RE_TAGGED) != 0;
}

bool gn_grammar_re_write(const gn_re_pool *pool, gn_re a, gn_buf *out, size_t limit)
{
    for (;;) {
        const re_node *n = re_at(pool, a);
        size_t bytes = 0;
        const void *p = n->kind == RE_SET || n->kind == RE_LIT ? payload(pool, n, &bytes) : NULL;
        uint32_t head[4] = {n->kind, 0, 0, 0};
        switch (n->kind) {
        case RE_LIT:
        case RE_ALT:
        case RE_AND: head[1] = n->b; break;
        case RE_REP:
            head[1] = n->b;
            head[2] = n->c;
            break;
        case RE_TAG: head[1] = n->a; break;
        case RE_MULT: return false;
        default: break;
        }
        if (out->len + sizeof head > limit || gn_buf_append(out, head, sizeof head) != GN_OK ||
            (p != NULL && gn_buf_append(out, p, bytes) != GN_OK)) {
            return false;
        }
        switch (n->kind) {
        case RE_CAT:
            if (!gn_grammar_re_write(pool, n->a, out, limit)) {
                return false;
            }
            a = n->b;
            continue;
        case RE_NOT:
        case RE_REP: a = n->a; continue;
        case RE_ALT:
        case RE_AND:
            for (uint32_t i = 0; i < n->b; i++) {
                if (!gn_grammar_re_write(pool, pool->lists.v[n->a + i], out, limit)) {
                    return false;
                }
            }
            return true;
        default: return true;
        }
    }
}
