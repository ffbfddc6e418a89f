/* Anchors: a parser writes ^ as the byte 0xFE and $ as 0xFF, which no UTF-8 holds, as if each text stood between the two.
 * What is left of an expression once the text is taken from between them is a derivative by the first, a
 * quotient from the right by the second, and ∅ for those that are still there. */
#include "grammar/re_impl.h"

static gn_re erase(gn_re_pool *pool, gn_re a);

static gn_re map_list(gn_re_pool *pool, re_node n, gn_re (*map)(gn_re_pool *, gn_re))
{
    size_t mark = pool->scratch.n;
    for (uint32_t i = 0; i < n.b; i++) {
        if (!gn_grammar_re_push(pool, &pool->scratch, map(pool, pool->lists.v[n.a + i]))) {
            return GN_RE_NONE;
        }
    }
    return gn_grammar_re_join(pool, n.kind, mark);
}

static gn_re erase(gn_re_pool *pool, gn_re a)
{
    re_node n = *re_at(pool, a);
    switch (n.kind) {
    case RE_LIT:
        for (uint32_t i = 0; i < n.b; i++) {
            if ((uint8_t)pool->text[n.a + i] >= 0xfe) {
                return GN_RE_NONE;
            }
        }
        return a;
    case RE_SET: {
        gn_re_set set = pool->sets[n.a];
        if (set.bits[3] >> 62 == 0) {
            return a;
        }
        set.bits[3] &= ~((uint64_t)3 << 62);
        return gn_grammar_re_set(pool, &set);
    }
    case RE_CAT: {
        size_t mark = pool->scratch.n;
        for (; n.kind == RE_CAT; a = n.b, n = *re_at(pool, a)) {
            if (!gn_grammar_re_push(pool, &pool->scratch, erase(pool, n.a))) {
                return GN_RE_NONE;
            }
        }
        gn_re re = erase(pool, a);
        while (pool->scratch.n > mark) {
            re = gn_grammar_re_cat(pool, pool->scratch.v[--pool->scratch.n], re);
        }
        return re;
    }
    case RE_ALT:
    case RE_AND: return map_list(pool, n, erase);
    case RE_NOT: return gn_grammar_re_not(pool, erase(pool, n.a));
    case RE_REP: return gn_grammar_re_repeat(pool, erase(pool, n.a), n.b, n.c);
    default: return a;
    }
}

/* The texts that match once 0xFF follows them. */
static gn_re before_end(gn_re_pool *pool, gn_re a)
{
    re_node n = *re_at(pool, a);
    switch (n.kind) {
    case RE_LIT:
        return (uint8_t)pool->text[n.a + n.b - 1] != 0xff ? GN_RE_NONE
               : n.b == 1
                   ? GN_RE_EPS
                   : gn_grammar_re_intern(pool, (re_node){.kind = RE_LIT, .a = n.a, .b = n.b - 1});
    case RE_SET: return gn_re_set_has(&pool->sets[n.a], 0xff) ? GN_RE_EPS : GN_RE_NONE;
    case RE_CAT: {
        gn_re pair[2] = {gn_grammar_re_cat(pool, n.a, before_end(pool, n.b)), GN_RE_NONE};
        if (gn_grammar_re_nullable(pool, n.b)) {
            pair[1] = before_end(pool, n.a);
        }
        return gn_grammar_re_alt(pool, pair, 2);
    }
    case RE_ALT:
    case RE_AND: return map_list(pool, n, before_end);
    case RE_NOT: return gn_grammar_re_not(pool, before_end(pool, n.a));
    case RE_REP:
        return gn_grammar_re_cat(pool,
                                 gn_grammar_re_repeat(pool, n.a, n.b != 0 ? n.b - 1 : 0,
                                                      n.c == GN_RE_MANY ? n.c : n.c - 1),
                                 before_end(pool, n.a));
    default: return GN_RE_NONE;
    }
}

/* Is a concatenation, looked through alternatives and the like, longer than recursion may go? */
static bool too_long(const gn_re_pool *pool, gn_re a, uint32_t left)
{
    const re_node *n = re_at(pool, a);
    while (n->kind == RE_CAT) {
        if (left-- == 0) {
            return true;
        }
        n = re_at(pool, n->b);
    }
    return false;
}

gn_re gn_grammar_re_between_anchors(gn_re_pool *pool, gn_re a)
{
    if (too_long(pool, a, 4096)) {
        return gn_grammar_re_fail(pool, GN_E_LIMIT,
                                  "a regular expression with anchors inside is too long");
    }
    return erase(pool, before_end(pool, gn_grammar_re_derive_once(pool, a, 0xfe)));
}
