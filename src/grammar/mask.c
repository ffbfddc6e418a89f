/* Masks. A configuration's tokens fall in two kinds: those that stay inside its regular expression, and those in the
 * middle of which it ends. The first kind, and the places where it may end, depend on the expression alone: that
 * walk over the whole trie is made once and shared, between grammars too (an expression written out is the key).
 * From each place where it ends the frame says what follows, and a short walk of the subtree finds the rest (XGrammar's
 * context-independent and context-dependent tokens, Dong et al. 2024, over llguidance's trie walk). */
#include "base/alloc.h"
#include "grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS  ((uint64_t)1 << 25) /* nodes visited for one mask */
#define KEY_BYTES  4096u
#define MAX_SHARED 2048u

typedef struct au_job { /* tokens below a node of the trie, from a configuration */
    uint32_t node;
    au_config config;
} au_job;

typedef struct pairs { /* node in the low half, state in the high half */
    uint64_t *v;
    uint32_t n, cap;
} pairs;

static void set_tokens(const gn_vocab_index *x, int32_t token, uint32_t *mask)
{
    for (; token >= 0; token = x->next_same[token]) {
        mask[token / 32] |= 1u << (token % 32);
    }
}

static bool too_long(gn_grammar *g)
{
    if (++g->steps > MAX_STEPS) {
        (void)gn_grammar_au_fail(g, GN_E_LIMIT, "a mask takes too long");
        return true;
    }
    return g->b->pool->status != GN_OK || g->status != GN_OK;
}

/* ---- Plain characters: most states inside of strings take all of them and stay where they are ---------------- */

/* Do the bytes first .. last lead from `row` to one state, and its tails (80 .. BF, or less: low .. high) to `re`? */
static bool leads_back(gn_grammar *g, const gn_re *row, unsigned first, unsigned last, unsigned low,
                       unsigned high, int more, gn_re re)
{
    gn_re seen = GN_RE_NONE;
    for (unsigned byte = first; byte <= last; byte++) {
        gn_re next = row[byte];
        if (next == GN_RE_NONE) {
            return false;
        }
        if (next == seen) {
            continue;
        }
        const gn_re *tails = gn_grammar_re_row(g->b->pool, next);
        if (tails == NULL) {
            return false;
        }
        if (more > 0) {
            if (!leads_back(g, tails, low, high, 0x80, 0xbf, more - 1, re)) {
                return false;
            }
        } else {
            for (unsigned tail = low; tail <= high; tail++) {
                if (tails[tail] != re) {
                    return false;
                }
            }
        }
        seen = next;
    }
    return true;
}

static bool find_loops(gn_grammar *g, gn_re re)
{
    static const struct {
        uint8_t first, last, low, high;
        int more;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 0}, {0xe0, 0xe0, 0xa0, 0xbf, 1}, {0xe1, 0xec, 0x80, 0xbf, 1},
        {0xed, 0xed, 0x80, 0x9f, 1}, {0xee, 0xef, 0x80, 0xbf, 1}, {0xf0, 0xf0, 0x90, 0xbf, 2},
        {0xf1, 0xf3, 0x80, 0xbf, 2}, {0xf4, 0xf4, 0x80, 0x8f, 2},
    };
    const gn_re *row = gn_grammar_re_row(g->b->pool, re);
    for (unsigned byte = 0x20; row != NULL && byte < 0x7f; byte++) {
        if (gn_vocab_is_plain((uint8_t)byte) && row[byte] != re) {
            return false;
        }
    }
    for (size_t i = 0; row != NULL && i < GN_COUNTOF(forms); i++) {
        if (!leads_back(g, row, forms[i].first, forms[i].last, forms[i].low, forms[i].high,
                        forms[i].more, re)) {
            return false;
        }
    }
    return row != NULL;
}

/* Does every plain character lead from `re` back to it, and may it not end there? */
static bool ask_loops(gn_grammar *g, gn_re re)
{
    gn_re_pool *pool = g->b->pool;
    bool found = (pool->nodes[re].flags & RE_NULLABLE) == 0 && find_loops(g, re);
    if (pool->status != GN_OK) {
        return false;
    }
    pool->nodes[re].flags |= found ? RE_ASKED | RE_LOOPS : RE_ASKED;
    return found;
}

GN_INLINE bool loops(gn_grammar *g, gn_re re)
{
    uint8_t flags = g->b->pool->nodes[re].flags;
    return (flags & RE_ASKED) != 0 ? (flags & RE_LOOPS) != 0 : ask_loops(g, re);
}

/* Walk what is below `top` from state `re`; nodes where it may end go to `ends`. */
static bool walk_below(gn_grammar *g, uint32_t top, gn_re re, uint32_t *mask, pairs *ends)
{
    const gn_vocab_index *x = g->index;
    gn_re_pool *pool = g->b->pool;
    const gn_vocab_node *nodes = x->nodes;
    const gn_re **rows = g->rows;
    uint32_t end = nodes[top].end;
    rows[nodes[top].depth] = gn_grammar_re_row(pool, re);
    if (rows[nodes[top].depth] == NULL) {
        return false;
    }
    /* loop_at: the state at a depth where it loops and a character begins. What is plain below is allowed, whole. */
    gn_re *loop_at = g->loop_at;
    bool whole = (nodes[top].flags & GN_VOCAB_WHOLE) != 0 && loops(g, re);
    loop_at[nodes[top].depth] = whole ? re : GN_RE_NONE;
    gn_re given = top == 0 && whole ? re : GN_RE_NONE;
    for (size_t w = 0; given != GN_RE_NONE && w < x->words; w++) {
        mask[w] |= x->plain[w];
    }
    for (uint32_t i = top + 1; i < end;) {
        const gn_vocab_node *n = &nodes[i];
        gn_re next = rows[n->depth - 1][n->byte];
        g->steps++;
        if ((n->flags & GN_VOCAB_PLAIN) != 0 && loop_at[n->depth - 1] != GN_RE_NONE) {
            if (loop_at[n->depth - 1] != given || (n->flags & GN_VOCAB_KNOWN) == 0) {
                gn_vocab_set_below(x, i, mask);
            }
            i = n->end;
            continue;
        }
        if (next == GN_RE_NONE) {
            i = n->end;
            continue;
        }
        if (n->token >= 0) {
            set_tokens(x, n->token, mask);
        }
        i++;
        if (n->end == i) {
            continue;
        }
        const re_node *state = &pool->nodes[next];
        if (state->flags & RE_NULLABLE) {
            if (!gn_grammar_au_grow(g, (void **)&ends->v, &ends->cap, (size_t)ends->n + 1,
                                    sizeof *ends->v)) {
                return false;
            }
            ends->v[ends->n++] = (uint64_t)next << 32 | (i - 1);
        }
        if (state->row != 0 && state->flags & RE_ROW_CLEAN) {
            rows[n->depth] = pool->row_chunks[(state->row - 1) / RE_ROWS_CHUNK] +
                             (size_t)256 * ((state->row - 1) % RE_ROWS_CHUNK);
        } else {
            rows[n->depth] = gn_grammar_re_row(pool, next);
            if (rows[n->depth] == NULL || too_long(g)) {
                return false;
            }
        }
        loop_at[n->depth] = (n->flags & GN_VOCAB_WHOLE) != 0 && loops(g, next) ? next : GN_RE_NONE;
    }
    return !too_long(g);
}

/* ---- Shared walks ------------------------------------------------------------------------------------ */

static int compare_pairs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool group_ends(gn_grammar *g, pairs *ends, gn_vocab_walk *walk)
{
    if (ends->n > 1) {
        qsort(ends->v, ends->n, sizeof *ends->v, compare_pairs);
    }
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < ends->n; i++) {
        n_groups += i == 0 || ends->v[i] >> 32 != ends->v[i - 1] >> 32;
    }
    walk->nodes = gn_alloc_array((size_t)ends->n + 1, sizeof *walk->nodes);
    walk->groups = gn_alloc_array((size_t)n_groups + 1, sizeof *walk->groups);
    if (walk->nodes == NULL || walk->groups == NULL) {
        return gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
    }
    walk->n_nodes = ends->n;
    for (uint32_t i = 0; i < ends->n; i++) {
        walk->nodes[i] = (uint32_t)ends->v[i];
        if (i == 0 || ends->v[i] >> 32 != ends->v[i - 1] >> 32) {
            walk->groups[walk->n_groups++] = (gn_vocab_group){.at = i};
        }
        walk->groups[walk->n_groups - 1].n++;
    }
    return true;
}

static gn_vocab_walk *make_walk(gn_grammar *g, gn_re re, gn_buf *key)
{
    gn_vocab_walk *walk = gn_calloc(1, sizeof *walk);
    if (walk == NULL) {
        (void)gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
        return NULL;
    }
    pairs ends = {0};
    walk->mask = gn_calloc(g->index->words + 1, sizeof *walk->mask);
    bool ok = walk->mask != NULL || gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
    ok = ok && walk_below(g, 0, re, walk->mask, &ends) && group_ends(g, &ends, walk);
    gn_free(ends.v);
    if (!ok) {
        gn_vocab_walk_destroy(walk);
        return NULL;
    }
    walk->key_len = key->len;
    walk->key = gn_buf_take(key);
    return walk;
}

/* The shared walk with this key, or NULL. */
static const gn_vocab_walk *find_shared(gn_vocab_index *x, const gn_buf *key)
{
    const gn_vocab_walk *found = NULL;
    (void)pthread_mutex_lock(&x->lock);
    for (uint32_t i = x->n_walks; i-- > 0 && found == NULL;) {
        if (x->walks[i]->key_len == key->len &&
            memcmp(x->walks[i]->key, key->data, key->len) == 0) {
            found = x->walks[i];
        }
    }
    (void)pthread_mutex_unlock(&x->lock);
    return found;
}

/* Hand the walk to the index; false: it has as many as it keeps. */
static bool share(gn_vocab_index *x, gn_vocab_walk *walk)
{
    bool kept = false;
    (void)pthread_mutex_lock(&x->lock);
    if (x->n_walks == x->cap_walks && x->n_walks < MAX_SHARED) {
        uint32_t cap = x->cap_walks != 0 ? 2 * x->cap_walks : 64;
        gn_vocab_walk **more = gn_realloc_array(x->walks, cap, sizeof *more);
        if (more != NULL) {
            x->walks = more;
            x->cap_walks = cap;
        }
    }
    if (x->n_walks < x->cap_walks) {
        x->walks[x->n_walks++] = walk;
        kept = true;
    }
    (void)pthread_mutex_unlock(&x->lock);
    return kept;
}

static const gn_vocab_walk *walk_of(gn_grammar *g, gn_re re)
{
    for (uint32_t i = 0; i < g->n_terminals; i++) {
        if (g->terminals[i].re == re) {
            return g->terminals[i].walk;
        }
    }
    gn_buf key = {0};
    const gn_vocab_walk *walk = NULL;
    bool mine = false;
    bool shareable = gn_grammar_re_write(g->b->pool, re, &key, KEY_BYTES);
    if (shareable) {
        walk = find_shared(g->index, &key);
    }
    if (walk == NULL) {
        gn_vocab_walk *made = make_walk(g, re, &key);
        mine = made != NULL && !(shareable && share(g->index, made));
        walk = made;
    }
    gn_buf_fini(&key);
    if (walk == NULL) {
        return NULL;
    }
    if (!gn_grammar_au_grow(g, (void **)&g->terminals, &g->cap_terminals,
                            (size_t)g->n_terminals + 1, sizeof *g->terminals)) {
        if (mine) {
            gn_vocab_walk_destroy((gn_vocab_walk *)(uintptr_t)walk);
        }
        return NULL;
    }
    g->terminals[g->n_terminals++] = (au_terminal){re, walk, mine};
    return walk;
}

/* ---- What follows ------------------------------------------------------------------------------------ */

/* Jobs for what may follow at `node`, where the state may end. */
static bool follow(gn_grammar *g, const uint32_t *nodes, uint32_t n, gn_re re, uint32_t frame)
{
    gn_grammar_au_begin(g);
    gn_grammar_au_end_of(g, re, frame);
    gn_grammar_au_close(g);
    if (g->status != GN_OK ||
        !gn_grammar_au_grow(g, (void **)&g->jobs, &g->cap_jobs,
                            (size_t)g->n_jobs + (size_t)n * g->n_build, sizeof *g->jobs)) {
        return false;
    }
    for (uint32_t k = 0; k < g->n_build; k++) {
        for (uint32_t i = 0; i < n; i++) {
            g->jobs[g->n_jobs++] = (au_job){nodes[i], g->build[k]};
        }
    }
    return true;
}

static bool run_jobs(gn_grammar *g, uint32_t *mask)
{
    pairs ends = {0};
    bool ok = true;
    while (ok && g->n_jobs > 0) {
        au_job job = g->jobs[--g->n_jobs];
        ends.n = 0;
        ok = walk_below(g, job.node, job.config.re, mask, &ends);
        for (uint32_t i = 0; ok && i < ends.n; i++) {
            uint32_t node = (uint32_t)ends.v[i];
            ok = follow(g, &node, 1, (gn_re)(ends.v[i] >> 32), job.config.frame);
        }
    }
    gn_free(ends.v);
    return ok;
}

/* The state of `re` at a node of the trie: along the bytes of a token below it. */
static gn_re state_at(gn_grammar *g, gn_re re, uint32_t node)
{
    const gn_vocab_index *x = g->index;
    uint32_t below = node;
    while (x->nodes[below].token < 0) {
        below++;
    }
    const char *s = x->text + x->start[x->nodes[below].token];
    for (uint32_t i = 0; i < x->nodes[node].depth; i++) {
        re = gn_grammar_re_step(g->b->pool, re, (uint8_t)s[i]);
    }
    return re;
}

static bool add_config_tokens(gn_grammar *g, au_config c, uint32_t *mask)
{
    const gn_vocab_walk *walk = walk_of(g, c.re);
    if (walk == NULL) {
        return false;
    }
    for (size_t w = 0; w < g->index->words; w++) {
        mask[w] |= walk->mask[w];
    }
    for (uint32_t i = 0; i < walk->n_groups; i++) {
        const gn_vocab_group *group = &walk->groups[i];
        gn_re re = state_at(g, c.re, walk->nodes[group->at]);
        g->n_jobs = 0;
        if (!follow(g, walk->nodes + group->at, group->n, re, c.frame) || !run_jobs(g, mask)) {
            return false;
        }
    }
    return true;
}

const uint32_t *gn_grammar_au_mask(gn_grammar *g, uint32_t state)
{
    if (g->states[state].mask != NULL) {
        return g->states[state].mask;
    }
    size_t depths = (size_t)g->index->max_depth + 1;
    g->rows = g->rows != NULL ? g->rows : gn_calloc(depths, sizeof *g->rows);
    g->loop_at = g->loop_at != NULL ? g->loop_at : gn_calloc(depths, sizeof *g->loop_at);
    if (g->rows == NULL || g->loop_at == NULL) {
        (void)gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
        return NULL;
    }
    uint32_t *mask = gn_calloc(g->index->words + 1, sizeof *mask);
    if (mask == NULL) {
        (void)gn_grammar_au_fail(g, GN_E_NOMEM, "out of memory");
        return NULL;
    }
    g->steps = 0;
    if (g->states[state].may_end) {
        memcpy(mask, g->index->end_mask, g->index->words * sizeof *mask);
    }
    for (uint32_t i = 0; i < g->states[state].n; i++) {
        if (!add_config_tokens(g, g->configs[g->states[state].at + i], mask)) {
            gn_free(mask);
            return NULL;
        }
    }
    uint32_t slot = g->n_masked++ % AU_MASKS;
    if (g->n_masked > AU_MASKS) {
        gn_free(g->states[g->masked[slot]].mask);
        g->states[g->masked[slot]].mask = NULL;
    }
    g->masked[slot] = state;
    g->states[state].mask = mask;
    return mask;
}
