/* Scores are summed in double, as the `tokenizers` library does; SentencePiece sums in float,
 * which can decide otherwise between ways whose scores agree to seven digits. */
#include "text/unigram.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "text/bpe.h"

#include <math.h>
#include <string.h>

#define UNK_PENALTY 10.0 /* below the lowest score of a piece; SentencePiece's own constant */

gn_status gn_unigram_build(gn_unigram *u)
{
    const gn_vocab *v = u->vocab;
    gn_trie_item *items = gn_alloc_array((size_t)v->n, sizeof *items);
    if (items == NULL) {
        return gn_alloc_failed();
    }
    size_t n = 0;
    double lowest = INFINITY;
    for (int32_t id = 0; id < v->n; id++) {
        size_t len;
        const char *s = gn_vocab_spelling(v, id, &len);
        if (len != 0 && (v->kind[id] == GN_VOCAB_NORMAL || v->kind[id] == GN_VOCAB_USER)) {
            items[n++] = (gn_trie_item){s, len, id};
            lowest = v->score[id] < lowest ? v->score[id] : lowest;
        }
    }
    u->unk_score = (isfinite(lowest) ? lowest : 0.0) - UNK_PENALTY;
    gn_status status = gn_trie_build(&u->trie, items, n);
    gn_free(items);
    gn_bpe names = {.vocab = v, .symbols = GN_BPE_CHARS};
    gn_bpe_find_bytes(&names);
    memcpy(u->byte_id, names.byte_id, sizeof u->byte_id);
    return status;
}

void gn_unigram_fini(gn_unigram *u)
{
    if (u != NULL) {
        gn_trie_fini(&u->trie);
        *u = (gn_unigram){0};
    }
}

void gn_unigram_work_fini(gn_unigram_work *work)
{
    if (work != NULL) {
        gn_free(work->nodes);
        *work = (gn_unigram_work){0};
    }
}

static gn_status reserve(gn_unigram_work *work, size_t n)
{
    if (n <= work->cap) {
        return GN_OK;
    }
    gn_unigram_node *nodes = gn_realloc_array(work->nodes, n, sizeof *nodes);
    if (nodes == NULL) {
        return gn_alloc_failed();
    }
    work->nodes = nodes;
    work->cap = n;
    return GN_OK;
}

static void reach(gn_unigram_node *node, double score, size_t start, int32_t id)
{
    if (score > node->score) {
        *node = (gn_unigram_node){score, (uint32_t)start, id};
    }
}

/* Extend the best way to `at` by every piece that starts there; where none spans the one character
 * there, by the unknown token. Returns the bytes of that character. */
static size_t extend(const gn_unigram *u, gn_unigram_node *nodes, const char *word, size_t len,
                     size_t at)
{
    uint32_t cp;
    size_t one = gn_utf8_decode(word + at, len - at, &cp);
    one = one != 0 ? one : 1;
    bool has_one = false;
    uint32_t node = 0;
    for (size_t i = at; i < len; i++) {
        node = gn_trie_step(&u->trie, node, (uint8_t)word[i]);
        if (node == 0) {
            break;
        }
        int32_t id = u->trie.nodes[node].value;
        if (id >= 0) {
            reach(&nodes[i + 1], nodes[at].score + u->vocab->score[id], at, id);
            has_one = has_one || i + 1 - at == one;
        }
    }
    if (!has_one) {
        reach(&nodes[at + one], nodes[at].score + u->unk_score, at, -1);
    }
    return one;
}

static gn_status emit_unknown(const gn_unigram *u, const char *s, size_t n, bool *fused,
                              gn_token_list *out)
{
    bool bytes = u->byte_fallback;
    for (size_t i = 0; bytes && i < n; i++) {
        bytes = u->byte_id[(uint8_t)s[i]] >= 0;
    }
    if (bytes) {
        for (size_t i = 0; i < n; i++) {
            GN_TRY(gn_token_list_push(out, u->byte_id[(uint8_t)s[i]]));
        }
        *fused = false;
        return GN_OK;
    }
    if (u->unk >= 0 && !(*fused && u->fuse_unk)) {
        GN_TRY(gn_token_list_push(out, u->unk));
    }
    *fused = true;
    return GN_OK;
}

/* Turn the back pointers around: nodes[start].start becomes the end of the piece that starts
 * there. */
static void forward(gn_unigram_node *nodes, size_t len)
{
    size_t end = len;
    int32_t id = nodes[len].id;
    size_t start = nodes[len].start;
    while (end > 0) {
        size_t before = nodes[start].start;
        int32_t before_id = nodes[start].id;
        nodes[start].start = (uint32_t)end;
        nodes[start].id = id;
        end = start;
        start = before;
        id = before_id;
    }
}

gn_status gn_unigram_encode(const gn_unigram *u, gn_unigram_work *work, const char *word,
                            size_t len, gn_token_list *out)
{
    GN_REQUIRE(len < UINT32_MAX, GN_E_LIMIT, "encode: a word of %zu bytes, expected under 4 GiB",
               len);
    GN_TRY(reserve(work, len + 1));
    gn_unigram_node *nodes = work->nodes;
    for (size_t i = 0; i <= len; i++) {
        nodes[i] = (gn_unigram_node){-INFINITY, 0, -1};
    }
    nodes[0].score = 0.0;
    for (size_t at = 0; at < len;) {
        at += extend(u, nodes, word, len, at);
    }
    forward(nodes, len);
    bool fused = false;
    for (size_t at = 0; at < len;) {
        size_t end = nodes[at].start;
        if (nodes[at].id >= 0) {
            GN_TRY(gn_token_list_push(out, nodes[at].id));
            fused = false;
        } else {
            GN_TRY(emit_unknown(u, word + at, end - at, &fused, out));
        }
        at = end;
    }
    return GN_OK;
}
