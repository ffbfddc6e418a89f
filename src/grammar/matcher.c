/* A matcher is a state of the grammar's automaton and the states before it, for rollback. The automaton is shared
 * and used under the grammar's lock. */
#include "grammar/matcher.h"

#include "base/alloc.h"
#include "grammar/automaton.h"

#include <string.h>

#define ENDED (AU_DEAD - 1) /* an end token came */

struct gn_matcher {
    gn_grammar *grammar;
    gn_vocab_index *index;
    uint32_t state;
    uint32_t *before; /* states before each accepted call */
    size_t n_before, cap_before;
};

static void lock(gn_matcher *m)
{
    (void)pthread_mutex_lock(&m->grammar->lock);
}

static void unlock(gn_matcher *m)
{
    (void)pthread_mutex_unlock(&m->grammar->lock);
}

gn_status gn_matcher_create(gn_grammar *grammar, gn_vocab_index *index, gn_matcher **out)
{
    gn_matcher *m = gn_calloc(1, sizeof *m);
    if (m == NULL) {
        return gn_alloc_failed();
    }
    m->grammar = grammar;
    m->index = index;
    m->state = grammar->start;
    lock(m);
    bool same = grammar->index == NULL || index == NULL || grammar->index == index;
    if (same && index != NULL) {
        grammar->index = index;
    }
    unlock(m);
    if (!same) {
        gn_free(m);
        return gn_base_fail(GN_E_ARG, "matcher: the grammar is in use with another vocabulary");
    }
    (void)gn_grammar_ref(grammar);
    *out = m;
    return GN_OK;
}

gn_status gn_matcher_clone(const gn_matcher *from, gn_matcher **out)
{
    gn_matcher *m = NULL;
    GN_TRY(gn_matcher_create(from->grammar, from->index, &m));
    m->state = from->state;
    m->before = gn_alloc_array(from->n_before + 1, sizeof *m->before);
    if (m->before == NULL) {
        gn_matcher_destroy(m);
        return gn_alloc_failed();
    }
    if (from->n_before > 0) {
        memcpy(m->before, from->before, from->n_before * sizeof *m->before);
    }
    m->n_before = from->n_before;
    m->cap_before = from->n_before + 1;
    *out = m;
    return GN_OK;
}

void gn_matcher_destroy(gn_matcher *m)
{
    if (m != NULL) {
        gn_grammar_destroy(m->grammar);
        gn_free(m->before);
        gn_free(m);
    }
}

void gn_matcher_reset(gn_matcher *m)
{
    m->state = m->grammar->start;
    m->n_before = 0;
}

size_t gn_matcher_mask_words(const gn_matcher *m)
{
    return m->index != NULL ? m->index->words : 0;
}

gn_status gn_matcher_mask(gn_matcher *m, uint32_t *mask)
{
    GN_REQUIRE(m->index != NULL, GN_E_STATE, "matcher: it has no vocabulary");
    if (m->state == ENDED) {
        memset(mask, 0, m->index->words * sizeof *mask);
        return GN_OK;
    }
    lock(m);
    gn_status status = gn_grammar_au_status(m->grammar);
    const uint32_t *found = status == GN_OK ? gn_grammar_au_mask(m->grammar, m->state) : NULL;
    if (found != NULL) {
        memcpy(mask, found, m->index->words * sizeof *mask);
    } else if (status == GN_OK) {
        status = gn_grammar_au_status(m->grammar);
        status = status != GN_OK ? status : gn_alloc_failed();
    }
    unlock(m);
    return status;
}

static gn_status remember(gn_matcher *m, uint32_t next)
{
    uint32_t *more = gn_grow_array(m->before, &m->cap_before, m->n_before + 1, sizeof *more);
    if (more == NULL) {
        return gn_alloc_failed();
    }
    m->before = more;
    m->before[m->n_before++] = m->state;
    m->state = next;
    return GN_OK;
}

gn_status gn_matcher_accept_bytes(gn_matcher *m, const char *s, size_t len, size_t *n_ok)
{
    uint32_t state = m->state;
    size_t i = 0;
    lock(m);
    gn_status status = gn_grammar_au_status(m->grammar);
    while (status == GN_OK && i < len) {
        uint32_t next =
            state == ENDED ? AU_DEAD : gn_grammar_au_step(m->grammar, state, (uint8_t)s[i]);
        if (next == AU_DEAD) {
            status = gn_grammar_au_status(m->grammar);
            if (status == GN_OK) {
                status = gn_base_fail(GN_E_REFUSED, "grammar: byte %zu can't come here", i);
            }
            break;
        }
        state = next;
        i++;
    }
    unlock(m);
    if (n_ok != NULL) {
        *n_ok = i;
    }
    GN_TRY(status);
    return remember(m, state);
}

gn_status gn_matcher_accept_token(gn_matcher *m, int32_t id)
{
    GN_REQUIRE(m->index != NULL, GN_E_STATE, "matcher: it has no vocabulary");
    if (gn_grammar_vocab_is_end(m->index, id)) {
        GN_REQUIRE(gn_matcher_may_end(m), GN_E_REFUSED, "grammar: the text can't end here");
        return remember(m, ENDED);
    }
    size_t len;
    const char *s = gn_grammar_vocab_bytes(m->index, id, &len);
    GN_REQUIRE(len > 0, GN_E_REFUSED, "grammar: token %d stands in no text", id);
    return gn_matcher_accept_bytes(m, s, len, NULL);
}

gn_status gn_matcher_rollback(gn_matcher *m, size_t n)
{
    GN_REQUIRE(n <= m->n_before, GN_E_ARG, "rollback: found %zu steps, expected at most %zu", n,
               m->n_before);
    if (n > 0) {
        m->n_before -= n;
        m->state = m->before[m->n_before];
    }
    return GN_OK;
}

bool gn_matcher_may_end(gn_matcher *m)
{
    lock(m);
    bool end = m->state != ENDED && m->grammar->states[m->state].may_end;
    unlock(m);
    return end;
}

bool gn_matcher_must_end(gn_matcher *m)
{
    lock(m);
    const au_state *s = m->state != ENDED ? &m->grammar->states[m->state] : NULL;
    bool end = s == NULL || (s->may_end && s->n == 0);
    unlock(m);
    return end;
}

/* The only byte that may come, or -1. */
static int only_byte(gn_grammar *g, uint32_t state)
{
    int only = -1;
    if (g->states[state].may_end) {
        return -1;
    }
    for (uint32_t i = 0; i < g->states[state].n; i++) {
        const gn_re *row = gn_grammar_re_row(g->b->pool, g->configs[g->states[state].at + i].re);
        for (int b = 0; row != NULL && b < 256; b++) {
            if (row[b] != GN_RE_NONE && b != only) {
                if (only >= 0) {
                    return -1;
                }
                only = b;
            }
        }
    }
    return only;
}

gn_status gn_matcher_forced(gn_matcher *m, size_t limit, gn_buf *out)
{
    if (m->state == ENDED) {
        return GN_OK;
    }
    lock(m);
    gn_status status = gn_grammar_au_status(m->grammar);
    uint32_t state = m->state;
    for (size_t i = 0; i < limit && status == GN_OK; i++) {
        int byte = only_byte(m->grammar, state);
        if (byte < 0) {
            status = gn_grammar_au_status(m->grammar);
            break;
        }
        state = gn_grammar_au_step(m->grammar, state, (uint8_t)byte);
        status = gn_grammar_au_status(m->grammar);
        if (status == GN_OK) {
            status = gn_buf_putc(out, (char)byte);
        }
    }
    unlock(m);
    return status;
}

/* The byte that brings the text nearest to its end, and what is left behind it; letters and digits first among
 * equals. IR_NEVER: no byte does. */
static uint64_t best_step(gn_grammar *g, uint32_t state, uint8_t *byte)
{
    uint64_t best = IR_NEVER;
    for (uint32_t k = 0; k < g->states[state].n; k++) {
        au_config c = g->configs[g->states[state].at + k];
        const gn_re *row = gn_grammar_re_row(g->b->pool, c.re);
        gn_re last = GN_RE_NONE;
        for (unsigned i = 0; row != NULL && i < 256; i++) {
            uint8_t b = (uint8_t)(i + '0');
            if (row[b] == GN_RE_NONE || row[b] == last) {
                continue;
            }
            last = row[b];
            uint64_t cost = gn_grammar_au_cost(g, (au_config){last, c.frame});
            if (cost < best) {
                best = cost;
                *byte = b;
            }
        }
    }
    return best;
}

gn_status gn_matcher_shortest(gn_matcher *m, gn_buf *out)
{
    if (m->state == ENDED) {
        return GN_OK;
    }
    lock(m);
    gn_grammar *g = m->grammar;
    gn_status status = gn_grammar_au_status(g);
    uint32_t state = m->state;
    uint64_t before = IR_NEVER;
    while (status == GN_OK && !g->states[state].may_end) {
        uint8_t byte = 0;
        uint64_t cost = best_step(g, state, &byte);
        status = gn_grammar_au_status(g);
        if (status == GN_OK && cost >= before) {
            status =
                gn_base_fail(GN_E_LIMIT, "grammar: its shortest end is beyond what is counted");
        }
        if (status != GN_OK) {
            break;
        }
        before = cost;
        state = gn_grammar_au_step(g, state, byte);
        status = state == AU_DEAD ? gn_grammar_au_status(g) : GN_OK;
        if (state == AU_DEAD) {
            status = status != GN_OK ? status : gn_base_fail(GN_E_STATE, "grammar: no way to end");
            break;
        }
        status = gn_buf_putc(out, (char)byte);
    }
    unlock(m);
    return status;
}

uint64_t gn_matcher_shortest_len(gn_matcher *m)
{
    if (m->state == ENDED) {
        return 0;
    }
    lock(m);
    uint8_t byte = 0;
    uint64_t cost = 0;
    if (!m->grammar->states[m->state].may_end) {
        cost = ir_add(best_step(m->grammar, m->state, &byte), 1);
    }
    unlock(m);
    return cost;
}
