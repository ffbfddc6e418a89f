/* The fewest tokens of a text are found from its end: the best way from each byte on, over the tokens that start
 * there. */
#include "grammar/spell.h"

#include "base/alloc.h"
#include "grammar/vocab_impl.h"
#include "text/token_list.h"

#include <string.h>

#define NO_NODE UINT32_MAX

static uint32_t child(const gn_vocab_index *x, uint32_t node, uint8_t byte)
{
    for (uint32_t i = node + 1; i < x->nodes[node].end; i = x->nodes[i].end) {
        if (x->nodes[i].byte >= byte) { /* children are in the order of their bytes */
            return x->nodes[i].byte == byte ? i : NO_NODE;
        }
    }
    return NO_NODE;
}

bool gn_grammar_spells_bytes(const gn_vocab_index *x)
{
    for (unsigned b = 0; b < 256; b++) {
        uint32_t i = child(x, 0, (uint8_t)b);
        if (i == NO_NODE || x->nodes[i].token < 0) {
            return false;
        }
    }
    return true;
}

typedef struct way { /* from a byte to the end of the text */
    uint32_t n;      /* tokens; UINT32_MAX: there is none */
    int32_t first;
    uint32_t bytes; /* of the first */
} way;

static way best_way(const gn_vocab_index *x, const char *s, size_t left, const way *after)
{
    way best = {.n = UINT32_MAX};
    uint32_t node = 0;
    for (uint32_t i = 0; i < left; i++) {
        node = child(x, node, (uint8_t)s[i]);
        if (node == NO_NODE) {
            break;
        }
        const way *rest = &after[i];
        if (x->nodes[node].token >= 0 && rest->n != UINT32_MAX && rest->n + 1 <= best.n) {
            best = (way){rest->n + 1, x->nodes[node].token, i + 1};
        }
    }
    return best;
}

gn_status gn_grammar_spell(const gn_vocab_index *x, const char *text, size_t len,
                           gn_token_list *ids)
{
    GN_REQUIRE(len <= GN_SPELL_MAX, GN_E_LIMIT,
               "grammar: a text of %zu bytes, expected at most %zu", len, GN_SPELL_MAX);
    way *ways = gn_alloc_array(len + 1, sizeof *ways);
    if (ways == NULL) {
        return gn_alloc_failed();
    }
    ways[len] = (way){0};
    for (size_t i = len; i-- > 0;) {
        ways[i] = best_way(x, text + i, len - i, &ways[i + 1]);
    }
    gn_status status = GN_OK;
    size_t before = ids->n;
    if (ways[0].n == UINT32_MAX) {
        status = gn_base_fail(GN_E_REFUSED, "grammar: the vocabulary has no tokens for \"%.*s\"",
                              (int)(len < 40 ? len : 40), text);
    }
    for (size_t at = 0; status == GN_OK && at < len; at += ways[at].bytes) {
        status = gn_token_list_push(ids, ways[at].first);
    }
    if (status != GN_OK) {
        ids->n = before;
    }
    gn_free(ways);
    return status;
}

/* Does a longer token begin with s[0 .. len)? */
static bool extends(const gn_vocab_index *x, const char *s, size_t len)
{
    uint32_t node = 0;
    for (size_t i = 0; i < len && node != NO_NODE; i++) {
        node = child(x, node, (uint8_t)s[i]);
    }
    return node != NO_NODE && x->nodes[node].end > node + 1;
}

/* How many of `ids` spell the beginning of the text byte for byte. */
static size_t count_exact(const gn_vocab_index *x, const char *text, size_t len,
                          const gn_token_list *ids)
{
    size_t at = 0;
    size_t n = 0;
    for (; n < ids->n; n++) {
        size_t bytes;
        const char *s = gn_grammar_vocab_bytes(x, ids->ids[n], &bytes);
        if (bytes == 0 || bytes > len - at || memcmp(s, text + at, bytes) != 0) {
            break;
        }
        at += bytes;
    }
    return n;
}

static size_t count_common(const gn_token_list *a, const gn_token_list *b, size_t most)
{
    size_t n = 0;
    while (n < most && n < b->n && a->ids[n] == b->ids[n]) {
        n++;
    }
    return n;
}

gn_status gn_grammar_spell_stable(const gn_vocab_index *x, const gn_tokenizer *tokenizer,
                                  const char *text, size_t len, bool open, gn_token_list *ids)
{
    gn_token_list whole = {0};
    gn_token_list part = {0};
    gn_status status = gn_tokenizer_encode(tokenizer, text, len, 0, &whole);
    size_t n = status == GN_OK ? count_exact(x, text, len, &whole) : 0;
    for (size_t tail = 1; open && status == GN_OK && n > 0 && tail <= len && tail < x->max_depth;
         tail++) {
        if (!extends(x, text + len - tail, tail)) {
            continue;
        }
        part.n = 0;
        status = gn_tokenizer_encode(tokenizer, text, len - tail, 0, &part);
        n = count_common(&whole, &part, n);
    }
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        status = gn_token_list_push(ids, whole.ids[i]);
    }
    gn_token_list_fini(&part);
    gn_token_list_fini(&whole);
    return status;
}
