/* One engine for three kinds of BPE; they differ in how a word becomes symbols and how a pair is
 * looked up.
 *
 * Words of up to SHORT symbols are joined by looking through the array for the lowest rank, which
 * is quickest for the words of ordinary text. Longer words use a linked list of symbols and a
 * binary heap of pairs. A pair in the heap goes stale when either side is joined to something
 * else; symbols only grow, so it is known by the length it had when it was pushed. */
#include "text/bpe.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE     UINT32_MAX
#define SHORT    40
#define FREE_KEY UINT64_MAX

/* --- byte alphabet --- */

static bool is_printable(uint32_t b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
}

uint32_t gn_bpe_letter(uint8_t byte)
{
    if (is_printable(byte)) {
        return byte;
    }
    /* The others take U+0100 on, in ascending order: 00-20, 7F-A0, AD. */
    if (byte <= 0x20) {
        return 0x100u + byte;
    }
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

int gn_bpe_byte(uint32_t letter)
{
    if (letter < 0x100) {
        return is_printable(letter) ? (int)letter : -1;
    }
    if (letter <= 0x120) {
        return (int)(letter - 0x100);
    }
    if (letter <= 0x142) {
        return (int)(letter - 0x121 + 0x7f);
    }
    return letter == 0x143 ? 0xad : -1;
}

void gn_bpe_find_bytes(gn_bpe *bpe)
{
    static const char hex[] = "0123456789ABCDEF";
    for (unsigned b = 0; b < 256; b++) {
        if (bpe->symbols == GN_BPE_BYTES) {
            char letter[4];
            size_t n = gn_utf8_encode(gn_bpe_letter((uint8_t)b), letter);
            bpe->byte_id[b] = gn_vocab_find(bpe->vocab, letter, n);
        } else {
            char name[] = "<0x00>";
            name[3] = hex[b >> 4];
            name[4] = hex[b & 15];
            bpe->byte_id[b] = gn_vocab_find(bpe->vocab, name, 6);
        }
    }
}

/* --- building --- */

/* Where the search for a pair starts. */
static size_t first_slot(const gn_bpe *bpe, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    return (size_t)(h * 0xbf58476d1ce4e5b9u >> 20) & (bpe->cap - 1);
}

static size_t pair_slot(const gn_bpe *bpe, uint64_t key)
{
    size_t i = first_slot(bpe, key);
    while (bpe->pairs[i].key != key && bpe->pairs[i].key != FREE_KEY) {
        i = (i + 1) & (bpe->cap - 1);
    }
    return i;
}

static uint64_t pair_key(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

gn_status gn_bpe_reserve(gn_bpe *bpe, size_t n_merges)
{
    GN_REQUIRE(n_merges < UINT32_MAX / 4, GN_E_FORMAT, "merges: found %zu, expected under 2^30",
               n_merges);
    bpe->cap = 16;
    while (bpe->cap < n_merges + n_merges / 2) {
        bpe->cap *= 2;
    }
    bpe->pairs = gn_alloc_array(bpe->cap, sizeof *bpe->pairs);
    if (bpe->pairs == NULL) {
        return gn_alloc_failed();
    }
    memset(bpe->pairs, 0xff, bpe->cap * sizeof *bpe->pairs);
    return GN_OK;
}

static gn_status find_joined(const gn_bpe *bpe, const gn_bpe_merge *m, int32_t *id)
{
    char small[256];
    size_t skip = bpe->prefix != NULL ? strlen(bpe->prefix) : 0;
    skip = skip <= m->right.len ? skip : 0;
    size_t len = m->left.len + m->right.len - skip;
    *id = -1;
    if (len > bpe->vocab->max_len) {
        return GN_OK;
    }
    char *joined = len <= sizeof small ? small : gn_alloc(len);
    if (joined == NULL) {
        return gn_alloc_failed();
    }
    memcpy(joined, m->left.s, m->left.len);
    memcpy(joined + m->left.len, m->right.s + skip, m->right.len - skip);
    *id = gn_vocab_find(bpe->vocab, joined, len);
    if (joined != small) {
        gn_free(joined);
    }
    return GN_OK;
}

/* Vocabularies list the pieces in the order of their merges, so that most of the searching can be
 * done by looking at the id after the last one found; memory is then read in order. */
static bool is_next(const gn_bpe *bpe, const gn_bpe_merge *m)
{
    int32_t id = bpe->last_joined + 1;
    if (bpe->prefix != NULL || id >= bpe->vocab->n) {
        return false;
    }
    size_t len;
    const char *s = gn_vocab_spelling(bpe->vocab, id, &len);
    return len == m->left.len + m->right.len && memcmp(s, m->left.s, m->left.len) == 0 &&
           memcmp(s + m->left.len, m->right.s, m->right.len) == 0;
}

static gn_status fail_merge(const gn_bpe_merge *m, uint32_t rank)
{
    return gn_base_fail(GN_E_FORMAT,
                        "merge %u: found \"%.*s\" + \"%.*s\", expected parts and a whole that are "
                        "tokens",
                        rank, (int)(m->left.len < 40 ? m->left.len : 40), m->left.s,
                        (int)(m->right.len < 40 ? m->right.len : 40), m->right.s);
}

/* The tables of a large vocabulary are larger than the second-level cache, and a list of merges meets them
 * in no order: all searches of a batch are on their way at once. */
gn_status gn_bpe_add(gn_bpe *bpe, const gn_bpe_merge *merges, size_t n, uint32_t rank)
{
    gn_vocab_query parts[GN_VOCAB_BATCH];
    int32_t ids[GN_VOCAB_BATCH];
    assert(n <= GN_BPE_BATCH);
    if (n == 0) {
        return GN_OK;
    }
    for (size_t i = 0; i < n; i++) {
        parts[2 * i] = merges[i].left;
        parts[2 * i + 1] = merges[i].right;
    }
    gn_vocab_find_many(bpe->vocab, parts, 2 * n, ids);
    for (size_t i = 0; i < n; i++) {
        GN_WILL_WRITE(&bpe->pairs[first_slot(bpe, pair_key(ids[2 * i], ids[2 * i + 1]))]);
    }
    for (size_t i = 0; i < n; i++, rank++) {
        int32_t left = ids[2 * i];
        int32_t right = ids[2 * i + 1];
        int32_t joined = -1;
        if (left >= 0 && right >= 0) {
            if (is_next(bpe, &merges[i])) {
                joined = bpe->last_joined + 1;
            } else {
                GN_TRY(find_joined(bpe, &merges[i], &joined));
            }
        }
        if (joined < 0) {
            return fail_merge(&merges[i], rank);
        }
        bpe->last_joined = joined;
        size_t slot = pair_slot(bpe, pair_key(left, right));
        bpe->pairs[slot] = (gn_bpe_pair){pair_key(left, right), rank, joined};
    }
    return GN_OK;
}

typedef struct scored {
    double score;
    int32_t id;
} scored;

static int by_score_down(const void *a, const void *b)
{
    double x = ((const scored *)a)->score;
    double y = ((const scored *)b)->score;
    return (x < y) - (x > y);
}

gn_status gn_bpe_rank_scores(gn_bpe *bpe)
{
    const gn_vocab *v = bpe->vocab;
    size_t n = (size_t)v->n;
    scored *order = gn_alloc_array(n, sizeof *order);
    bpe->rank = gn_alloc_array(n, sizeof *bpe->rank);
    if (order == NULL || bpe->rank == NULL) {
        gn_free(order);
        return gn_alloc_failed();
    }
    memset(bpe->rank, 0xff, n * sizeof *bpe->rank);
    size_t used = 0;
    for (int32_t id = 0; id < v->n; id++) {
        if (v->kind[id] == GN_VOCAB_NORMAL || v->kind[id] == GN_VOCAB_USER) {
            order[used++] = (scored){v->score[id], id};
            size_t len = v->start[id + 1] - v->start[id] - 1;
            bpe->max_piece = len > bpe->max_piece ? len : bpe->max_piece;
        }
    }
    qsort(order, used, sizeof *order, by_score_down);
    uint32_t rank = 0;
    for (size_t i = 0; i < used; i++) {
        /* Equal scores share a rank, so that position decides between them. */
        if (i != 0 && order[i].score < order[i - 1].score) {
            rank = (uint32_t)i;
        }
        bpe->rank[order[i].id] = rank;
    }
    gn_free(order);
    bpe->by_score = true;
    return GN_OK;
}

void gn_bpe_fini(gn_bpe *bpe)
{
    if (bpe != NULL) {
        gn_free(bpe->pairs);
        gn_free(bpe->rank);
        gn_free(bpe->prefix);
        gn_free(bpe->suffix);
        *bpe = (gn_bpe){0};
    }
}

/* --- encoding --- */

void gn_bpe_work_fini(gn_bpe_work *work)
{
    if (work != NULL) {
        gn_free(work->symbols);
        gn_free(work->heap);
        gn_buf_fini(&work->letters);
        *work = (gn_bpe_work){0};
    }
}

static gn_status grow(void **p, size_t *cap, size_t want, size_t bytes)
{
    size_t next = *cap + *cap / 2;
    next = next > want ? next : want;
    next = next > 64 ? next : 64;
    void *more = gn_realloc_array(*p, next, bytes);
    if (more == NULL) {
        return gn_alloc_failed();
    }
    *p = more;
    *cap = next;
    return GN_OK;
}

/* Room for n more symbols. */
static gn_status reserve_symbols(gn_bpe_work *w, size_t n)
{
    if (w->n + n <= w->cap) {
        return GN_OK;
    }
    void *p = w->symbols;
    gn_status status = grow(&p, &w->cap, w->n + n, sizeof *w->symbols);
    w->symbols = p;
    return status;
}

static void add_symbol(gn_bpe_work *w, int32_t id, size_t start, size_t len)
{
    w->symbols[w->n++] = (gn_bpe_symbol){.id = id, .start = (uint32_t)start, .len = (uint32_t)len};
}

static gn_status split_bytes(const gn_bpe *bpe, gn_bpe_work *w, const char *word, size_t len)
{
    GN_TRY(reserve_symbols(w, len));
    bool fused = false;
    for (size_t i = 0; i < len; i++) {
        int32_t id = bpe->byte_id[(uint8_t)word[i]];
        if (id < 0) {
            if (bpe->unk < 0) {
                continue;
            }
            if (fused && bpe->fuse_unk) {
                w->symbols[w->n - 1].len++;
                continue;
            }
        }
        fused = id < 0;
        add_symbol(w, fused ? bpe->unk : id, i, 1);
    }
    return GN_OK;
}

/* The token of one code point with the word's affixes around it. */
static gn_status find_char(const gn_bpe *bpe, gn_bpe_work *w, const char *s, size_t n, bool first,
                           bool last, int32_t *id)
{
    bool prefix = bpe->prefix != NULL && !first;
    bool suffix = bpe->suffix != NULL && last;
    if (!prefix && !suffix) {
        *id = gn_vocab_find(bpe->vocab, s, n);
        return GN_OK;
    }
    gn_buf_clear(&w->letters);
    if (prefix) {
        GN_TRY(gn_buf_puts(&w->letters, bpe->prefix));
    }
    GN_TRY(gn_buf_append(&w->letters, s, n));
    if (suffix) {
        GN_TRY(gn_buf_puts(&w->letters, bpe->suffix));
    }
    *id = gn_vocab_find(bpe->vocab, w->letters.data, w->letters.len);
    return GN_OK;
}

static bool has_bytes(const gn_bpe *bpe, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bpe->byte_id[(uint8_t)s[i]] < 0) {
            return false;
        }
    }
    return true;
}

static gn_status split_chars(const gn_bpe *bpe, gn_bpe_work *w, const char *word, size_t len)
{
    GN_TRY(reserve_symbols(w, len));
    bool fused = false;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = gn_utf8_decode(word + i, len - i, &cp);
        n = n != 0 ? n : 1;
        int32_t id;
        GN_TRY(find_char(bpe, w, word + i, n, i == 0, i + n == len, &id));
        if (id >= 0) {
            add_symbol(w, id, i, n);
            fused = false;
        } else if (bpe->byte_fallback && has_bytes(bpe, word + i, n)) {
            for (size_t b = 0; b < n; b++) {
                add_symbol(w, bpe->byte_id[(uint8_t)word[i + b]], i + b, 1);
            }
            fused = false;
        } else if (bpe->unk >= 0) {
            if (fused && bpe->fuse_unk) {
                w->symbols[w->n - 1].len += (uint32_t)n;
            } else {
                add_symbol(w, bpe->unk, i, n);
            }
            fused = true;
        }
        i += n;
    }
    return GN_OK;
}

/* SentencePiece looks a symbol up only once all joining is done, so the symbols carry no ids. */
static gn_status split_pieces(gn_bpe_work *w, const char *word, size_t len)
{
    GN_TRY(reserve_symbols(w, len));
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = gn_utf8_decode(word + i, len - i, &cp);
        n = n != 0 ? n : 1;
        add_symbol(w, -1, i, n);
        i += n;
    }
    return GN_OK;
}

/* Rank and id of joining two neighbours; NONE where they can't be. */
static uint32_t pair_rank(const gn_bpe *bpe, const char *word, const gn_bpe_symbol *l,
                          const gn_bpe_symbol *r, int32_t *id)
{
    if (bpe->by_score) {
        size_t len = (size_t)l->len + r->len;
        if (len > bpe->max_piece) {
            return NONE;
        }
        *id = gn_vocab_find(bpe->vocab, word + l->start, len);
        return *id >= 0 ? bpe->rank[*id] : NONE;
    }
    const gn_bpe_pair *p = &bpe->pairs[pair_slot(bpe, pair_key(l->id, r->id))];
    if (p->key == FREE_KEY) {
        return NONE;
    }
    *id = p->id;
    return p->rank;
}

static void join_short(const gn_bpe *bpe, gn_bpe_work *w, const char *word)
{
    uint32_t rank[SHORT];
    int32_t id[SHORT];
    gn_bpe_symbol *s = w->symbols;
    size_t n = w->n;
    for (size_t i = 0; i + 1 < n; i++) {
        rank[i] = pair_rank(bpe, word, &s[i], &s[i + 1], &id[i]);
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++) {
            best = rank[i] < rank[best] ? i : best;
        }
        if (rank[best] == NONE) {
            break;
        }
        s[best].id = id[best];
        s[best].len += s[best + 1].len;
        size_t after = n - best - 2; /* symbols to the right of the pair */
        memmove(&s[best + 1], &s[best + 2], after * sizeof *s);
        memmove(&rank[best], &rank[best + 1], after * sizeof *rank);
        memmove(&id[best], &id[best + 1], after * sizeof *id);
        n--;
        if (best + 1 < n) {
            rank[best] = pair_rank(bpe, word, &s[best], &s[best + 1], &id[best]);
        }
        if (best > 0) {
            rank[best - 1] = pair_rank(bpe, word, &s[best - 1], &s[best], &id[best - 1]);
        }
    }
    w->n = n;
}

static gn_status heap_push(gn_bpe_work *w, gn_bpe_entry entry)
{
    if (w->heap_n == w->heap_cap) {
        void *p = w->heap;
        gn_status status = grow(&p, &w->heap_cap, w->heap_n + 1, sizeof *w->heap);
        w->heap = p;
        GN_TRY(status);
    }
    size_t i = w->heap_n++;
    while (i > 0 && w->heap[(i - 1) / 2].key > entry.key) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = entry;
    return GN_OK;
}

static gn_bpe_entry heap_pop(gn_bpe_work *w)
{
    gn_bpe_entry top = w->heap[0];
    gn_bpe_entry last = w->heap[--w->heap_n];
    size_t i = 0;
    for (size_t child = 1; child < w->heap_n; child = 2 * i + 1) {
        child += child + 1 < w->heap_n && w->heap[child + 1].key < w->heap[child].key;
        if (w->heap[child].key >= last.key) {
            break;
        }
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

static gn_status push_pair(const gn_bpe *bpe, gn_bpe_work *w, const char *word, uint32_t left)
{
    const gn_bpe_symbol *l = &w->symbols[left];
    if (l->next == NONE) {
        return GN_OK;
    }
    const gn_bpe_symbol *r = &w->symbols[l->next];
    int32_t id = -1;
    uint32_t rank = pair_rank(bpe, word, l, r, &id);
    if (rank == NONE) {
        return GN_OK;
    }
    return heap_push(w, (gn_bpe_entry){(uint64_t)rank << 32 | left, l->len + r->len, id});
}

static gn_status join_long(const gn_bpe *bpe, gn_bpe_work *w, const char *word)
{
    gn_bpe_symbol *s = w->symbols;
    w->heap_n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        s[i].prev = i != 0 ? i - 1 : NONE;
        s[i].next = i + 1 < w->n ? i + 1 : NONE;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        GN_TRY(push_pair(bpe, w, word, i));
    }
    while (w->heap_n != 0) {
        gn_bpe_entry e = heap_pop(w);
        uint32_t left = (uint32_t)e.key;
        uint32_t right = s[left].next;
        if (s[left].len == 0 || right == NONE || s[left].len + s[right].len != e.len) {
            continue;
        }
        s[left].id = e.id;
        s[left].len = e.len;
        s[left].next = s[right].next;
        s[right].len = 0;
        if (s[left].next != NONE) {
            s[s[left].next].prev = left;
        }
        GN_TRY(push_pair(bpe, w, word, left));
        if (s[left].prev != NONE) {
            GN_TRY(push_pair(bpe, w, word, s[left].prev));
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (s[i].len != 0) {
            s[n++] = s[i];
        }
    }
    w->n = n;
    return GN_OK;
}

/* SentencePiece's last step: pieces to ids, the rest to bytes or to one unknown token a run. */
static gn_status emit_pieces(const gn_bpe *bpe, const gn_bpe_work *w, const char *word,
                             gn_token_list *out)
{
    bool fused = false;
    for (size_t i = 0; i < w->n; i++) {
        const gn_bpe_symbol *s = &w->symbols[i];
        int32_t id = gn_vocab_find(bpe->vocab, word + s->start, s->len);
        if (id >= 0 && bpe->rank[id] != NONE) {
            GN_TRY(gn_token_list_push(out, id));
            fused = false;
        } else if (bpe->byte_fallback && has_bytes(bpe, word + s->start, s->len)) {
            for (size_t b = 0; b < s->len; b++) {
                GN_TRY(gn_token_list_push(out, bpe->byte_id[(uint8_t)word[s->start + b]]));
            }
            fused = false;
        } else if (bpe->unk >= 0) {
            if (!fused || !bpe->fuse_unk) {
                GN_TRY(gn_token_list_push(out, bpe->unk));
            }
            fused = true;
        }
    }
    return GN_OK;
}

/* The token that is the whole word, or -1. */
static gn_status find_word(const gn_bpe *bpe, gn_bpe_work *w, const char *word, size_t len,
                           int32_t *id)
{
    *id = -1;
    if (len > bpe->vocab->max_len) {
        return GN_OK;
    }
    if (bpe->symbols == GN_BPE_CHARS) {
        *id = gn_vocab_find(bpe->vocab, word, len);
        return GN_OK;
    }
    gn_buf_clear(&w->letters);
    GN_TRY(gn_buf_reserve(&w->letters, 2 * len));
    for (size_t i = 0; i < len; i++) {
        char letter[4];
        size_t n = gn_utf8_encode(gn_bpe_letter((uint8_t)word[i]), letter);
        GN_TRY(gn_buf_append(&w->letters, letter, n));
    }
    *id = gn_vocab_find(bpe->vocab, w->letters.data, w->letters.len);
    return GN_OK;
}

gn_status gn_bpe_encode(const gn_bpe *bpe, gn_bpe_work *work, const char *word, size_t len,
                        gn_token_list *out)
{
    GN_REQUIRE(len < NONE, GN_E_LIMIT, "encode: a word of %zu bytes, expected under 4 GiB", len);
    if (bpe->ignore_merges) {
        int32_t id;
        GN_TRY(find_word(bpe, work, word, len, &id));
        if (id >= 0 && bpe->vocab->kind[id] != GN_VOCAB_CONTROL) {
            return gn_token_list_push(out, id);
        }
    }
    work->n = 0;
    if (bpe->by_score) {
        GN_TRY(split_pieces(work, word, len));
    } else if (bpe->symbols == GN_BPE_BYTES) {
        GN_TRY(split_bytes(bpe, work, word, len));
    } else {
        GN_TRY(split_chars(bpe, work, word, len));
    }
    if (work->n <= SHORT) {
        join_short(bpe, work, word);
    } else {
        GN_TRY(join_long(bpe, work, word));
    }
    if (bpe->by_score) {
        return emit_pieces(bpe, work, word, out);
    }
    for (size_t i = 0; i < work->n; i++) {
        GN_TRY(gn_token_list_push(out, work->symbols[i].id));
    }
    return GN_OK;
}
