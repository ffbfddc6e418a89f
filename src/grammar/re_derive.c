/* Derivatives. The row of a node is computed as a whole: the bytes that its first positions tell apart fall into
 * classes, one derivative is made a class. What intersections and complements make unreachable is found by
 * exploring their automata, and left out of the rows, so that every state that is not ∅ can still match. */
#include "base/alloc.h"
#include "grammar/re_impl.h"

#include <assert.h>
#include <string.h>

#define EXPLORE_MAX 20000u

/* ---- One derivative ---------------------------------------------------------------------------------- */

static gn_re derive(gn_re_pool *pool, gn_re a, uint8_t byte);

static gn_re derive_mult(gn_re_pool *pool, re_node n, uint8_t byte)
{
    const re_step *s = &pool->steps[n.a];
    uint64_t rem = n.b | (uint64_t)n.c << 32;
    if (byte == '.') {
        if (n.d != 0) {
            return GN_RE_NONE;
        }
        n.d = 1 + s->scale;
    } else if (byte >= '0' && byte <= '9') {
        if (n.d == 1) { /* digits below the step must be zero */
            return byte == '0' ? gn_grammar_re_intern(pool, n) : GN_RE_NONE;
        }
        rem = (rem * 10 + (byte - '0')) % s->step;
        n.d -= n.d != 0;
    } else {
        return GN_RE_NONE;
    }
    n.b = (uint32_t)rem;
    n.c = (uint32_t)(rem >> 32);
    return gn_grammar_re_intern(pool, n);
}

static gn_re derive_lit(gn_re_pool *pool, re_node n, uint8_t byte)
{
    if ((uint8_t)pool->text[n.a] != byte) {
        return GN_RE_NONE;
    }
    if (n.b == 1) {
        return GN_RE_EPS;
    }
    /* The rest of a literal is in the text already. */
    return gn_grammar_re_intern(pool, (re_node){.kind = RE_LIT, .a = n.a + 1, .b = n.b - 1});
}

/* The derivative of a concatenation, along its right spine while what stands before is nullable. */
static gn_re derive_cat(gn_re_pool *pool, gn_re a, uint8_t byte)
{
    size_t mark = pool->scratch.n;
    for (;;) {
        re_node n = *re_at(pool, a);
        if (n.kind != RE_CAT) {
            gn_re last = derive(pool, a, byte);
            if (last != GN_RE_NONE) {
                (void)gn_grammar_re_push(pool, &pool->scratch, last);
            }
            break;
        }
        gn_re head = derive(pool, n.a, byte);
        if (head != GN_RE_NONE) {
            head = gn_grammar_re_cat(pool, head, n.b);
            (void)gn_grammar_re_push(pool, &pool->scratch, head);
        }
        if ((re_at(pool, n.a)->flags & RE_NULLABLE) == 0) {
            break;
        }
        a = n.b;
    }
    size_t n = pool->scratch.n - mark;
    if (n <= 1) {
        gn_re re = n == 1 ? pool->scratch.v[mark] : GN_RE_NONE;
        pool->scratch.n = mark;
        return re;
    }
    return gn_grammar_re_join(pool, RE_ALT, mark);
}

/* Can a text of the node begin with the byte, as far as a look at its head tells? */
static bool may_begin(const gn_re_pool *pool, gn_re a, uint8_t byte)
{
    const re_node *n = re_at(pool, a);
    if (n->kind == RE_CAT) {
        n = re_at(pool, n->a);
    }
    if (n->kind == RE_LIT) {
        return (uint8_t)pool->text[n->a] == byte;
    }
    return n->kind != RE_SET || gn_re_set_has(&pool->sets[n->a], byte);
}

static gn_re derive_list(gn_re_pool *pool, re_node n, uint8_t byte)
{
    size_t mark = pool->scratch.n;
    for (uint32_t i = 0; i < n.b; i++) {
        gn_re child = pool->lists.v[n.a + i];
        gn_re d = may_begin(pool, child, byte) ? derive(pool, child, byte) : GN_RE_NONE;
        if (d == GN_RE_NONE) {
            if (n.kind == RE_AND) {
                pool->scratch.n = mark;
                return GN_RE_NONE;
            }
            continue;
        }
        if (!gn_grammar_re_push(pool, &pool->scratch, d)) {
            return GN_RE_NONE;
        }
    }
    if (pool->scratch.n == mark) {
        return GN_RE_NONE;
    }
    return gn_grammar_re_join(pool, n.kind, mark);
}

static gn_re derive(gn_re_pool *pool, gn_re a, uint8_t byte)
{
    if (pool->status != GN_OK) {
        return GN_RE_NONE;
    }
    re_node n = *re_at(pool, a);
    switch (n.kind) {
    case RE_SET: return gn_re_set_has(&pool->sets[n.a], byte) ? GN_RE_EPS : GN_RE_NONE;
    case RE_LIT: return derive_lit(pool, n, byte);
    case RE_CAT: return derive_cat(pool, a, byte);
    case RE_ALT:
    case RE_AND: return derive_list(pool, n, byte);
    case RE_NOT: return gn_grammar_re_not(pool, derive(pool, n.a, byte));
    case RE_REP: {
        gn_re head = derive(pool, n.a, byte);
        if (head == GN_RE_NONE) {
            return GN_RE_NONE;
        }
        gn_re rest = gn_grammar_re_repeat(pool, n.a, n.b != 0 ? n.b - 1 : 0,
                                          n.c == GN_RE_MANY ? n.c : n.c - 1);
        return gn_grammar_re_cat(pool, head, rest);
    }
    case RE_MULT: return derive_mult(pool, n, byte);
    default: return GN_RE_NONE;
    }
}

gn_re gn_grammar_re_derive_once(gn_re_pool *pool, gn_re a, uint8_t byte)
{
    return derive(pool, a, byte);
}

/* ---- Rows -------------------------------------------------------------------------------------------- */

typedef struct classes { /* bytes with equal signatures are told apart by nothing */
    uint64_t sig[256];
    gn_re_set single; /* bytes that form a class of their own */
    uint64_t next;
} classes;

static void split_by(classes *c, const gn_re_set *set)
{
    uint64_t mark = c->next * 0x9e3779b97f4a7c15u;
    c->next += 2;
    for (int w = 0; w < 4; w++) {
        for (uint64_t bits = set->bits[w]; bits != 0; bits &= bits - 1) {
            uint64_t *sig = &c->sig[w * 64 + __builtin_ctzll(bits)];
            *sig = (*sig ^ mark) * 0xbf58476d1ce4e5b9u;
            *sig ^= *sig >> 31;
        }
    }
}

static void split_firsts(const gn_re_pool *pool, gn_re a, classes *c)
{
    for (;;) {
        const re_node *n = re_at(pool, a);
        switch (n->kind) {
        case RE_SET: split_by(c, &pool->sets[n->a]); return;
        case RE_LIT: gn_re_set_add(&c->single, (uint8_t)pool->text[n->a]); return;
        case RE_CAT:
            split_firsts(pool, n->a, c);
            if ((re_at(pool, n->a)->flags & RE_NULLABLE) == 0) {
                return;
            }
            a = n->b;
            continue;
        case RE_ALT:
        case RE_AND:
            for (uint32_t i = 0; i < n->b; i++) {
                split_firsts(pool, pool->lists.v[n->a + i], c);
            }
            return;
        case RE_NOT:
        case RE_REP: a = n->a; continue;
        case RE_MULT:
            for (uint8_t b = '0'; b <= '9'; b++) {
                gn_re_set_add(&c->single, b);
            }
            gn_re_set_add(&c->single, '.');
            return;
        default: return;
        }
    }
}

/* One row of room; NULL once the pool has failed. */
static gn_re *new_row(gn_re_pool *pool, uint32_t *index)
{
    if (pool->n_rows >= pool->max_rows) {
        (void)gn_grammar_re_fail(pool, GN_E_LIMIT, "the grammar's automaton needs too many states");
        return NULL;
    }
    uint32_t chunk = pool->n_rows / RE_ROWS_CHUNK;
    if (pool->n_rows % RE_ROWS_CHUNK == 0) {
        if (chunk == pool->cap_chunks) {
            uint32_t cap = chunk != 0 ? 2 * chunk : 16;
            gn_re **more = gn_realloc_array(pool->row_chunks, cap, sizeof *more);
            if (more == NULL) {
                (void)gn_grammar_re_nomem(pool);
                return NULL;
            }
            pool->row_chunks = more;
            pool->cap_chunks = cap;
        }
        pool->row_chunks[chunk] = gn_alloc_array(RE_ROWS_CHUNK, 256 * sizeof(gn_re));
        if (pool->row_chunks[chunk] == NULL) {
            (void)gn_grammar_re_nomem(pool);
            return NULL;
        }
    }
    *index = pool->n_rows++;
    return pool->row_chunks[chunk] + (size_t)256 * (*index % RE_ROWS_CHUNK);
}

static gn_re *row_of(const gn_re_pool *pool, uint32_t index)
{
    return pool->row_chunks[index / RE_ROWS_CHUNK] + (size_t)256 * (index % RE_ROWS_CHUNK);
}

/* The row with states that may turn out dead. */
static gn_re *raw_row(gn_re_pool *pool, gn_re a)
{
    if (pool->status != GN_OK) {
        return NULL;
    }
    if (re_at(pool, a)->row != 0) {
        return row_of(pool, re_at(pool, a)->row - 1);
    }
    uint32_t index;
    gn_re *row = new_row(pool, &index);
    if (row == NULL) {
        return NULL;
    }
    classes c = {.next = 1};
    split_firsts(pool, a, &c);
    uint64_t seen_sig[64];
    gn_re seen_re[64];
    size_t n_seen = 0;
    for (unsigned b = 0; b < 256; b++) {
        bool single = gn_re_set_has(&c.single, (uint8_t)b);
        size_t i = 0;
        while (!single && i < n_seen && seen_sig[i] != c.sig[b]) {
            i++;
        }
        if (!single && i < n_seen) {
            row[b] = seen_re[i];
            continue;
        }
        row[b] = derive(pool, a, (uint8_t)b);
        if (!single && n_seen < GN_COUNTOF(seen_sig)) {
            seen_sig[n_seen] = c.sig[b];
            seen_re[n_seen++] = row[b];
        }
    }
    if (pool->status != GN_OK) {
        return NULL;
    }
    pool->nodes[a].row = index + 1;
    return row;
}

/* ---- The shortest text ------------------------------------------------------------------------------- */

typedef struct explored {
    re_vec states;
    re_vec edges;    /* pairs: from, to, as indices of states */
    uint32_t *index; /* open addressing over ids: 1 + index of states, 0: free */
    uint32_t cap;
} explored;

static uint32_t *find_state(const explored *e, gn_re id)
{
    uint32_t i = (id * 0x9e3779b1u) & (e->cap - 1);
    while (e->index[i] != 0 && e->states.v[e->index[i] - 1] != id) {
        i = (i + 1) & (e->cap - 1);
    }
    return &e->index[i];
}

static bool add_edges(gn_re_pool *pool, explored *e, uint32_t from)
{
    const gn_re *row = raw_row(pool, e->states.v[from]);
    if (row == NULL) {
        return false;
    }
    gn_re last = GN_RE_NONE;
    for (unsigned b = 0; b < 256; b++) {
        if (row[b] == last || row[b] == GN_RE_NONE) {
            continue;
        }
        last = row[b];
        uint32_t *slot = find_state(e, last);
        if (*slot == 0) {
            if (e->states.n >= EXPLORE_MAX) {
                (void)gn_grammar_re_fail(
                    pool, GN_E_LIMIT,
                    "an intersection, complement or multiple needs too many states");
                return false;
            }
            if (!gn_grammar_re_push(pool, &e->states, last)) {
                return false;
            }
            *slot = (uint32_t)e->states.n;
        }
        if (!gn_grammar_re_push(pool, &e->edges, from) ||
            !gn_grammar_re_push(pool, &e->edges, *slot - 1)) {
            return false;
        }
    }
    return true;
}

/* Lengths by breadth-first search against the edges, from the states where a text may end. */
static void measure(gn_re_pool *pool, explored *e, uint32_t *head, uint32_t *next, uint32_t *queue)
{
    size_t n = e->states.n;
    size_t n_queue = 0;
    memset(head, 0xff, n * sizeof *head);
    for (size_t i = 0; 2 * i < e->edges.n; i++) {
        uint32_t to = e->edges.v[2 * i + 1];
        next[i] = head[to];
        head[to] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        re_node *node = &pool->nodes[e->states.v[i]];
        node->min_len = GN_RE_NEVER;
        if (node->flags & RE_NULLABLE) {
            node->min_len = 0;
            queue[n_queue++] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < n_queue; i++) {
        uint32_t len = pool->nodes[e->states.v[queue[i]]].min_len;
        for (uint32_t k = head[queue[i]]; k != UINT32_MAX; k = next[k]) {
            re_node *node = &pool->nodes[e->states.v[e->edges.v[2 * k]]];
            if (node->min_len == GN_RE_NEVER) {
                node->min_len = len + 1;
                queue[n_queue++] = e->edges.v[2 * k];
            }
        }
    }
}

/* Find min_len of `a` and of all states behind it. */
static void explore(gn_re_pool *pool, gn_re a)
{
    explored e = {.cap = 65536};
    e.index = gn_calloc(e.cap, sizeof *e.index);
    bool ok = e.index != NULL && gn_grammar_re_push(pool, &e.states, a);
    if (ok) {
        *find_state(&e, a) = 0;
        uint32_t i = (a * 0x9e3779b1u) & (e.cap - 1);
        e.index[i] = 1;
    }
    for (uint32_t i = 0; ok && i < e.states.n; i++) {
        ok = add_edges(pool, &e, i);
    }
    if (ok) {
        uint32_t *head = gn_alloc_array(2 * e.states.n + e.edges.n / 2 + 1, sizeof *head);
        if (head != NULL) {
            measure(pool, &e, head, head + 2 * e.states.n, head + e.states.n);
            gn_free(head);
        } else {
            (void)gn_grammar_re_nomem(pool);
        }
    } else if (pool->status == GN_OK) {
        (void)gn_grammar_re_nomem(pool);
    }
    gn_free(e.index);
    gn_free(e.states.v);
    gn_free(e.edges.v);
}

static uint32_t add_len(uint32_t a, uint32_t b)
{
    if (a == GN_RE_NEVER || b == GN_RE_NEVER) {
        return GN_RE_NEVER;
    }
    uint64_t sum = (uint64_t)a + b;
    return sum < RE_UNKNOWN ? (uint32_t)sum : RE_UNKNOWN - 1;
}

uint32_t gn_grammar_re_min_len(gn_re_pool *pool, gn_re a)
{
    if (pool->status != GN_OK) {
        return GN_RE_NEVER;
    }
    re_node n = *re_at(pool, a);
    if (n.min_len != RE_UNKNOWN) {
        return n.min_len;
    }
    uint32_t len = GN_RE_NEVER;
    switch (n.kind) {
    case RE_CAT:
        len = 0;
        for (gn_re at = a; at != GN_RE_EPS && len != GN_RE_NEVER;) {
            re_node m = *re_at(pool, at);
            bool cat = m.kind == RE_CAT;
            len = add_len(len, gn_grammar_re_min_len(pool, cat ? m.a : at));
            at = cat ? m.b : GN_RE_EPS;
        }
        break;
    case RE_ALT:
        for (uint32_t i = 0; i < n.b; i++) {
            uint32_t one = gn_grammar_re_min_len(pool, pool->lists.v[n.a + i]);
            len = one < len ? one : len;
        }
        break;
    case RE_REP: {
        uint32_t one = gn_grammar_re_min_len(pool, n.a);
        uint64_t all = (uint64_t)one * n.b;
        len = n.b == 0               ? 0
              : one == GN_RE_NEVER   ? GN_RE_NEVER
              : all < RE_UNKNOWN - 1 ? (uint32_t)all
                                     : RE_UNKNOWN - 1;
        break;
    }
    default: explore(pool, a); return pool->status == GN_OK ? pool->nodes[a].min_len : GN_RE_NEVER;
    }
    if (pool->status != GN_OK) {
        return GN_RE_NEVER;
    }
    pool->nodes[a].min_len = len;
    return len;
}

const gn_re *gn_grammar_re_row(gn_re_pool *pool, gn_re a)
{
    gn_re *row = raw_row(pool, a);
    if (row == NULL || pool->nodes[a].flags & RE_ROW_CLEAN) {
        return row;
    }
    gn_re last = GN_RE_NONE;
    bool dead = false;
    for (unsigned b = 0; b < 256; b++) {
        if (row[b] != last) {
            last = row[b];
            dead = last != GN_RE_NONE && gn_grammar_re_min_len(pool, last) == GN_RE_NEVER;
        }
        row[b] = dead ? GN_RE_NONE : row[b];
    }
    if (pool->status != GN_OK) {
        return NULL;
    }
    pool->nodes[a].flags |= RE_ROW_CLEAN;
    return row;
}

gn_re gn_grammar_re_step(gn_re_pool *pool, gn_re a, uint8_t byte)
{
    const gn_re *row = gn_grammar_re_row(pool, a);
    return row != NULL ? row[byte] : GN_RE_NONE;
}

/* ---- Tags -------------------------------------------------------------------------------------------- */

static void collect_tags(const gn_re_pool *pool, gn_re a, uint32_t *tags, size_t cap, size_t *n)
{
    for (;;) {
        const re_node *node = re_at(pool, a);
        if ((node->flags & (RE_NULLABLE | RE_TAGGED)) != (RE_NULLABLE | RE_TAGGED)) {
            return;
        }
        if (node->kind == RE_TAG) {
            if (*n < cap) {
                tags[*n] = node->a;
            }
            ++*n;
            return;
        }
        if (node->kind == RE_CAT) {
            a = node->b;
            continue;
        }
        for (uint32_t i = 0; node->kind == RE_ALT && i < node->b; i++) {
            collect_tags(pool, pool->lists.v[node->a + i], tags, cap, n);
        }
        return;
    }
}

size_t gn_grammar_re_tags(const gn_re_pool *pool, gn_re a, uint32_t *tags, size_t cap)
{
    size_t n = 0;
    collect_tags(pool, a, tags, cap, &n);
    return n;
}
