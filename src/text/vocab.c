/* Spellings lie one after another in one block; the index is an open-addressed table of 8-byte
 * slots at a load of at most 1/2, so that a lookup touches one cache line of the table and, where
 * the tag agrees, one of the text. The general map of base/ takes 32 bytes a key, which costs a
 * vocabulary of 150,000 ids several milliseconds of page faults. */
#include "text/vocab.h"

#include "base/alloc.h"
#include "base/map.h"

#include <assert.h>
#include <string.h>

void gn_vocab_fini(gn_vocab *vocab)
{
    if (vocab != NULL) {
        gn_free(vocab->text);
        gn_free(vocab->start);
        gn_free(vocab->kind);
        gn_free(vocab->score);
        gn_free(vocab->slots);
        *vocab = (gn_vocab){0};
    }
}

/* The slot that holds this spelling, or the free one where it belongs. */
static gn_vocab_slot *probe(const gn_vocab *vocab, const char *s, size_t len, uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    size_t i = (size_t)hash & (vocab->cap - 1);
    while (vocab->slots[i].id >= 0) {
        if (vocab->slots[i].tag == tag) {
            size_t have_len;
            const char *have = gn_vocab_spelling(vocab, vocab->slots[i].id, &have_len);
            if (have_len == len && memcmp(have, s, len) == 0) {
                break;
            }
        }
        i = (i + 1) & (vocab->cap - 1);
    }
    return &vocab->slots[i];
}

int32_t gn_vocab_find(const gn_vocab *vocab, const char *s, size_t len)
{
    if (vocab->cap == 0 || len == 0 || len > vocab->max_len) {
        return -1;
    }
    return probe(vocab, s, len, gn_map_hash(s, len))->id;
}

void gn_vocab_find_many(const gn_vocab *vocab, const gn_vocab_query *queries, size_t n,
                        int32_t *ids)
{
    uint64_t hash[GN_VOCAB_BATCH];
    assert(n <= GN_VOCAB_BATCH);
    for (size_t i = 0; i < n; i++) {
        ids[i] = -1;
    }
    if (vocab->cap == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        hash[i] = gn_map_hash(queries[i].s, queries[i].len);
        GN_WILL_READ(&vocab->slots[(size_t)hash[i] & (vocab->cap - 1)]);
    }
    for (size_t i = 0; i < n; i++) {
        int32_t first = vocab->slots[(size_t)hash[i] & (vocab->cap - 1)].id;
        if (first >= 0) {
            GN_WILL_READ(vocab->text + vocab->start[first]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (queries[i].len != 0 && queries[i].len <= vocab->max_len) {
            ids[i] = probe(vocab, queries[i].s, queries[i].len, hash[i])->id;
        }
    }
}

static gn_status copy_text(gn_vocab *vocab, const gn_vocab_item *items, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(items[i].len < UINT32_MAX - 1 - bytes, GN_E_FORMAT,
                   "vocabulary: the spellings up to id %zu take over 4 GiB", i);
        bytes += items[i].len + 1;
    }
    vocab->text = gn_alloc(bytes);
    vocab->start = gn_alloc_array(n + 1, sizeof *vocab->start);
    vocab->kind = gn_alloc(n);
    if (vocab->text == NULL || vocab->start == NULL || vocab->kind == NULL) {
        return gn_alloc_failed();
    }
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        vocab->start[i] = at;
        if (items[i].len != 0) {
            memcpy(vocab->text + at, items[i].s, items[i].len);
        }
        at += (uint32_t)items[i].len;
        vocab->text[at++] = '\0';
        vocab->kind[i] = (uint8_t)items[i].kind;
        vocab->max_len = items[i].len > vocab->max_len ? items[i].len : vocab->max_len;
    }
    vocab->start[n] = at;
    vocab->n = (int32_t)n;
    return GN_OK;
}

/* The hashes of up to GN_VOCAB_BATCH spellings from `first` on; their slots are asked for. */
static void hash_batch(const gn_vocab *vocab, int32_t first, uint64_t *hashes)
{
    for (int32_t i = 0; i < GN_VOCAB_BATCH && first + i < vocab->n; i++) {
        size_t len;
        const char *s = gn_vocab_spelling(vocab, first + i, &len);
        hashes[i] = gn_map_hash(s, len);
        GN_WILL_WRITE(&vocab->slots[(size_t)hashes[i] & (vocab->cap - 1)]);
    }
}

static gn_status build_index(gn_vocab *vocab)
{
    vocab->cap = 16;
    while (vocab->cap < 2 * (size_t)vocab->n) {
        vocab->cap *= 2;
    }
    vocab->slots = gn_alloc_array(vocab->cap, sizeof *vocab->slots);
    if (vocab->slots == NULL) {
        return gn_alloc_failed();
    }
    memset(vocab->slots, 0xff, vocab->cap * sizeof *vocab->slots);
    uint64_t hashes[GN_VOCAB_BATCH];
    for (int32_t id = 0; id < vocab->n; id++) {
        if (id % GN_VOCAB_BATCH == 0) {
            hash_batch(vocab, id, hashes);
        }
        size_t len;
        const char *s = gn_vocab_spelling(vocab, id, &len);
        if (len == 0) {
            continue;
        }
        uint64_t hash = hashes[id % GN_VOCAB_BATCH];
        gn_vocab_slot *slot = probe(vocab, s, len, hash);
        GN_REQUIRE(slot->id < 0, GN_E_FORMAT,
                   "vocabulary: ids %d and %d have the same spelling \"%.40s\"", slot->id, id, s);
        *slot = (gn_vocab_slot){(uint32_t)(hash >> 32), id};
    }
    return GN_OK;
}

gn_status gn_vocab_build(gn_vocab *vocab, const gn_vocab_item *items, size_t n)
{
    *vocab = (gn_vocab){0};
    GN_REQUIRE(n != 0, GN_E_FORMAT, "vocabulary: found no tokens, expected at least one");
    GN_REQUIRE(n <= GN_VOCAB_MAX, GN_E_FORMAT, "vocabulary: found %zu tokens, expected at most %d",
               n, GN_VOCAB_MAX);
    gn_status status = copy_text(vocab, items, n);
    if (status == GN_OK) {
        status = build_index(vocab);
    }
    if (status != GN_OK) {
        gn_vocab_fini(vocab);
    }
    return status;
}
