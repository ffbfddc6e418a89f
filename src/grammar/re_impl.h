/* The inside of a pool of regular expressions: shared by the files that build, derive and measure. */
#ifndef GN_GRAMMAR_RE_IMPL_H
#define GN_GRAMMAR_RE_IMPL_H

#include "base/buf.h"
#include "grammar/re.h"

typedef enum re_kind {
    RE_NONE,
    RE_EPS,
    RE_SET, /* a: index of the set */
    RE_LIT, /* a: offset of the bytes, b: how many, 1 .. RE_LIT_MAX */
    RE_CAT, /* a, b; a is no RE_CAT */
    RE_ALT, /* a: offset of the list, b: its length; children ascend */
    RE_AND, /* as RE_ALT */
    RE_NOT, /* a */
    RE_REP, /* a, b: min, c: max */
    RE_TAG, /* a: the tag */
    RE_MULT, /* a: index of the step, b | c << 32: remainder, d: 0 before the point, else 1 + digits that
              * still count */
} re_kind;

#define RE_NULLABLE  1u
#define RE_TAGGED    2u
#define RE_ROW_CLEAN 4u  /* the row has no dead successors */
#define RE_ASKED     8u  /* RE_LOOPS is known */
#define RE_LOOPS     16u /* every plain character leads back here (mask.c) */

#define RE_UNKNOWN   (UINT32_MAX - 1) /* min_len not yet found */
#define RE_LIT_MAX   64u
#define RE_DEPTH_MAX 600u

typedef struct re_node {
    uint8_t kind;
    uint8_t flags;
    uint16_t depth;
    uint32_t a, b, c, d;
    uint32_t min_len;
    uint32_t row; /* 1 + index of the row, 0: none yet */
    uint32_t hash;
} re_node;

typedef struct re_step {
    uint64_t step;
    uint32_t scale;
} re_step;

typedef struct re_vec { /* a stack of ids */
    uint32_t *v;
    size_t n, cap;
} re_vec;

#define RE_ROWS_CHUNK 64u

struct gn_re_pool {
    re_node *nodes;
    uint32_t n_nodes, cap_nodes, max_nodes;
    uint32_t *table; /* open addressing, 0: free */
    uint32_t table_cap;
    gn_re_set *sets;
    uint32_t n_sets, cap_sets;
    char *text;
    uint32_t n_text, cap_text;
    re_vec lists;
    re_vec scratch;
    re_step *steps;
    uint32_t n_steps, cap_steps;
    gn_re **row_chunks;
    uint32_t n_rows, cap_chunks, max_rows;
    gn_status status;
    char message[200];
};

gn_re gn_grammar_re_fail(gn_re_pool *pool, gn_status status, const char *message);
gn_re gn_grammar_re_nomem(gn_re_pool *pool);
bool gn_grammar_re_push(gn_re_pool *pool, re_vec *vec, uint32_t value);
/* The node equal to `n` (lists compared by content), made where there is none. */
gn_re gn_grammar_re_intern(gn_re_pool *pool, re_node n);
/* ALT or AND of scratch[mark ..], which is taken off. */
gn_re gn_grammar_re_join(gn_re_pool *pool, re_kind kind, size_t mark);

/* One derivative, dead states not looked for. */
gn_re gn_grammar_re_derive_once(gn_re_pool *pool, gn_re a, uint8_t byte);
/* The texts t such that 0xFE t 0xFF matches. */
gn_re gn_grammar_re_between_anchors(gn_re_pool *pool, gn_re a);
/* Append the expression written out, the same for equal expressions of any pool; false: over `limit` bytes, or
 * out of memory. */
bool gn_grammar_re_write(const gn_re_pool *pool, gn_re a, gn_buf *out, size_t limit);

static inline const re_node *re_at(const gn_re_pool *pool, gn_re a)
{
    return &pool->nodes[a];
}

#endif
