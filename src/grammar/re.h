/* Regular expressions over bytes as hash-consed nodes: equal expressions are one node, so a node is also a
 * state of the automaton that Brzozowski's derivatives give (Brzozowski 1964; Owens, Reppy, Turon 2009).
 *
 * A pool owns its nodes. One thread at a time. Constructors simplify; each returns GN_RE_NONE (∅) once the
 * pool has failed, and gn_grammar_re_status() gives the first failure, so that builders check once at the
 * end. Failures: GN_E_NOMEM, GN_E_LIMIT (too many nodes, too deep).
 *
 * A tag is a mark at the end of an alternative: it takes no byte and says which alternative was matched.
 * Tags may stand only at the end of concatenations and under alternatives. */
#ifndef GN_GRAMMAR_RE_H
#define GN_GRAMMAR_RE_H

#include "base/attr.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t gn_re;
#define GN_RE_NONE  0u         /* ∅: matches nothing */
#define GN_RE_EPS   1u         /* the empty text */
#define GN_RE_MANY  UINT32_MAX /* no upper bound of a repeat */
#define GN_RE_NEVER UINT32_MAX /* length of the shortest text of a node that has none */

typedef struct gn_re_pool gn_re_pool;

typedef struct gn_re_set { /* a set of bytes */
    uint64_t bits[4];
} gn_re_set;

typedef struct gn_re_range { /* code points lo .. hi, both inside */
    uint32_t lo, hi;
} gn_re_range;

GN_INLINE void gn_re_set_add(gn_re_set *set, uint8_t byte)
{
    set->bits[byte >> 6] |= (uint64_t)1 << (byte & 63);
}
GN_INLINE bool gn_re_set_has(const gn_re_set *set, uint8_t byte)
{
    return (set->bits[byte >> 6] >> (byte & 63) & 1) != 0;
}

/* max_nodes 0: the default, 2^20. */
GN_MUST_USE gn_status gn_grammar_re_create(uint32_t max_nodes, gn_re_pool **out);
void gn_grammar_re_destroy(gn_re_pool *pool);
/* The first failure of a constructor (its message is recorded again), or GN_OK. */
GN_MUST_USE gn_status gn_grammar_re_status(const gn_re_pool *pool);

gn_re gn_grammar_re_set(gn_re_pool *pool, const gn_re_set *set);
gn_re gn_grammar_re_literal(gn_re_pool *pool, const char *s, size_t len);
gn_re gn_grammar_re_cat(gn_re_pool *pool, gn_re a, gn_re b);
gn_re gn_grammar_re_alt(gn_re_pool *pool, const gn_re *list, size_t n);
gn_re gn_grammar_re_and(gn_re_pool *pool, const gn_re *list, size_t n);
gn_re gn_grammar_re_not(gn_re_pool *pool, gn_re a); /* relative to all byte strings */
gn_re gn_grammar_re_repeat(gn_re_pool *pool, gn_re a, uint32_t min, uint32_t max);
gn_re gn_grammar_re_tag(gn_re_pool *pool, uint32_t tag);

/* One code point of the ranges, in UTF-8; the ranges may overlap and come in any order, surrogates drop
 * out. With `negate` any other scalar value. */
gn_re gn_grammar_re_chars(gn_re_pool *pool, const gn_re_range *ranges, size_t n, bool negate);

/* Digits, or digits "." digits, whose decimal value is a multiple of step × 10^-scale, 1 ≤ step ≤ 2^40,
 * scale ≤ 18: no sign, no exponent, any number of leading zeros (intersect with the form that is wanted). */
gn_re gn_grammar_re_multiple(gn_re_pool *pool, uint64_t step, uint32_t scale);

bool gn_grammar_re_nullable(const gn_re_pool *pool, gn_re a);
/* Bytes of the shortest text that matches (to the next tag), GN_RE_NEVER where none does. Exact, also under
 * intersection and complement, whose automata are explored for it up to a bound; past the bound the pool
 * fails with GN_E_LIMIT and the answer is GN_RE_NEVER. */
uint32_t gn_grammar_re_min_len(gn_re_pool *pool, gn_re a);
/* The derivative: what may follow after `byte`. GN_RE_NONE where no text goes on. */
gn_re gn_grammar_re_step(gn_re_pool *pool, gn_re a, uint8_t byte);
/* The whole row of derivatives [256], valid as long as the pool; NULL once the pool has failed. */
const gn_re *gn_grammar_re_row(gn_re_pool *pool, gn_re a);
/* The tags that stand where `a` may end. Returns how many there are, and stores at most cap of them. */
size_t gn_grammar_re_tags(const gn_re_pool *pool, gn_re a, uint32_t *tags, size_t cap);
bool gn_grammar_re_has_tag(const gn_re_pool *pool, gn_re a);

/* ---- Forms that JSON needs ------------------------------------------------------------------------- */

/* How strings of JSON spell one code point of the ranges: itself in UTF-8 where JSON lets it stand, the
 * short escapes, and for all but printable ASCII \uXXXX in either case, surrogate pairs included. Printable
 * ASCII thus has one spelling (and \" \\ \/): complements and intersections over such texts are exact, and a
 * key of plain letters is a plain literal. */
gn_re gn_grammar_re_json_chars(gn_re_pool *pool, const gn_re_range *ranges, size_t n, bool negate);
/* The inside of a JSON string (no quotes) that stands for the UTF-8 text s, in any spelling as above. */
gn_re gn_grammar_re_json_literal(gn_re_pool *pool, const char *s, size_t len);

#endif
