/* Building the trie: token texts are sorted, then written in depth-first order with one pass over neighbours. */
#include "grammar/vocab_index.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "grammar/vocab_impl.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TOKENS (1u << 24)
#define MAX_DEPTH  4096u /* bytes of a token that is looked at; longer ones are never allowed */

typedef struct entry {
    const unsigned char *s;
    uint32_t len;
    int32_t id;
} entry;

static int compare_entries(const void *x, const void *y)
{
    const entry *a = x;
    const entry *b = y;
    size_t n = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->s, b->s, n);
    if (c != 0) {
        return c;
    }
    if (a->len != b->len) {
        return a->len < b->len ? -1 : 1;
    }
    return (a->id > b->id) - (a->id < b->id);
}

static gn_status copy_tokens(gn_vocab_index *x, const gn_vocab_token *tokens, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += tokens[i].len;
    }
    GN_REQUIRE(bytes < UINT32_MAX / 2, GN_E_LIMIT, "vocabulary: %zu bytes, expected under 2 GiB",
               bytes);
    x->n = n;
    x->words = (n + 31) / 32;
    x->text = gn_alloc(bytes + 1);
    x->start = gn_alloc_array(n + 1, sizeof *x->start);
    x->next_same = gn_alloc_array(n + 1, sizeof *x->next_same);
    x->end_mask = gn_calloc(x->words + 1, sizeof *x->end_mask);
    if (x->text == NULL || x->start == NULL || x->next_same == NULL || x->end_mask == NULL) {
        return gn_alloc_failed();
    }
    uint32_t at = 0;
    for (size_t i = 0; i < n; i++) {
        x->start[i] = at;
        if (tokens[i].is_end) {
            x->end_mask[i / 32] |= 1u << (i % 32);
        } else if (tokens[i].len > 0) {
            memcpy(x->text + at, tokens[i].s, tokens[i].len);
            at += tokens[i].len;
        }
    }
    x->start[n] = at;
    return GN_OK;
}

/* Nodes of the sorted entries; `open` holds the path to the newest node, one node a byte. */
static void write_nodes(gn_vocab_index *x, const entry *e, size_t n, uint32_t *open)
{
    x->nodes[0] = (gn_vocab_node){.token = -1};
    x->n_nodes = 1;
    uint32_t depth = 0;
    open[0] = 0;
    const entry *last = NULL;
    for (size_t i = 0; i < n; i++) {
        uint32_t same = 0;
        while (last != NULL && same < last->len && same < e[i].len &&
               last->s[same] == e[i].s[same]) {
            same++;
        }
        for (; depth > same; depth--) {
            x->nodes[open[depth]].end = x->n_nodes;
        }
        for (; depth < e[i].len; depth++) {
            open[depth + 1] = x->n_nodes;
            x->nodes[x->n_nodes++] =
                (gn_vocab_node){.token = -1, .depth = (uint16_t)(depth + 1), .byte = e[i].s[depth]};
        }
        gn_vocab_node *node = &x->nodes[open[depth]];
        x->next_same[e[i].id] = node->token;
        node->token = e[i].id;
        x->max_depth = depth > x->max_depth ? depth : x->max_depth;
        last = &e[i];
    }
    for (;; depth--) {
        x->nodes[open[depth]].end = x->n_nodes;
        if (depth == 0) {
            break;
        }
    }
}

/* UTF-8 byte by byte (RFC 3629): where a character stands after a byte. */
enum { IN_WHOLE, IN_1, IN_2, IN_3, IN_E0, IN_ED, IN_F0, IN_F4, IN_NONE };

static uint8_t utf8_next(uint8_t at, uint8_t byte)
{
    bool tail = byte >= 0x80 && byte < 0xc0;
    switch (at) {
    case IN_WHOLE:
        if (byte < 0x80) {
            return gn_vocab_is_plain(byte) ? IN_WHOLE : IN_NONE;
        }
        return byte < 0xc2    ? IN_NONE
               : byte < 0xe0  ? IN_1
               : byte == 0xe0 ? IN_E0
               : byte == 0xed ? IN_ED
               : byte < 0xf0  ? IN_2
               : byte == 0xf0 ? IN_F0
               : byte < 0xf4  ? IN_3
               : byte == 0xf4 ? IN_F4
                              : IN_NONE;
    case IN_1: return tail ? IN_WHOLE : IN_NONE;
    case IN_2: return tail ? IN_1 : IN_NONE;
    case IN_3: return tail ? IN_2 : IN_NONE;
    case IN_E0: return tail && byte >= 0xa0 ? IN_1 : IN_NONE;
    case IN_ED: return tail && byte < 0xa0 ? IN_1 : IN_NONE;
    case IN_F0: return tail && byte >= 0x90 ? IN_2 : IN_NONE;
    case IN_F4: return tail && byte < 0x90 ? IN_2 : IN_NONE;
    default: return IN_NONE;
    }
}

static gn_status list_tokens(gn_vocab_index *x)
{
    x->order = gn_alloc_array(x->n + 1, sizeof *x->order);
    if (x->order == NULL) {
        return gn_alloc_failed();
    }
    for (uint32_t i = 0; i < x->n_nodes; i++) {
        x->nodes[i].first = x->n_order;
        for (int32_t t = x->nodes[i].token; t >= 0; t = x->next_same[t]) {
            x->order[x->n_order++] = t;
        }
    }
    return GN_OK;
}

/* Mark subtrees of plain characters. A control character in the middle of a token is no plain one, but a new character
 * may begin behind it: such nodes are whole too. */
static void mark_bytes(gn_vocab_index *x, uint8_t *at)
{
    at[0] = IN_WHOLE;
    x->nodes[0].flags = GN_VOCAB_WHOLE;
    for (uint32_t i = 1; i < x->n_nodes; i++) {
        gn_vocab_node *n = &x->nodes[i];
        uint8_t before = at[n->depth - 1];
        bool other = before == IN_WHOLE && n->byte < 0x80 && !gn_vocab_is_plain(n->byte);
        at[n->depth] = other ? IN_WHOLE : utf8_next(before, n->byte);
        n->flags = at[n->depth] == IN_WHOLE ? GN_VOCAB_WHOLE : 0;
        n->flags |= at[n->depth] != IN_NONE && !other ? GN_VOCAB_PLAIN : 0;
    }
}

/* Tokens of plain subtrees below plain characters alone; then PLAIN is of the whole subtree. */
static void mark_subtrees(gn_vocab_index *x, uint8_t *path)
{
    path[0] = 1; /* the bytes up to a depth are plain characters, the last perhaps not whole */
    for (uint32_t i = 1; i < x->n_nodes; i++) {
        gn_vocab_node *n = &x->nodes[i];
        path[n->depth] = path[n->depth - 1] != 0 && (n->flags & GN_VOCAB_PLAIN) != 0;
        n->flags |= path[n->depth] != 0 ? GN_VOCAB_KNOWN : 0;
    }
    for (uint32_t i = x->n_nodes; i-- > 1;) { /* children come behind their parent */
        gn_vocab_node *n = &x->nodes[i];
        bool plain =
            (n->flags & GN_VOCAB_PLAIN) != 0 && (n->token < 0 || (n->flags & GN_VOCAB_WHOLE) != 0);
        for (uint32_t c = i + 1; c < n->end && plain; c = x->nodes[c].end) {
            plain = (x->nodes[c].flags & GN_VOCAB_PLAIN) != 0;
        }
        if (!plain) {
            n->flags &= GN_VOCAB_WHOLE;
        }
    }
    for (uint32_t i = 1; i < x->n_nodes;) {
        bool known = (x->nodes[i].flags & GN_VOCAB_KNOWN) != 0;
        if (known) {
            gn_vocab_set_below(x, i, x->plain);
        }
        i = known ? x->nodes[i].end : i + 1;
    }
}

/* Mark subtrees of plain characters. A control character in the middle of a token is no plain one, but a new character
 * may begin behind it: such nodes are whole too. */
static gn_status mark_plain(gn_vocab_index *x)
{
    uint8_t *by_depth = gn_calloc((size_t)x->max_depth + 1, 1);
    x->plain = gn_calloc(x->words + 1, sizeof *x->plain);
    gn_status status = by_depth != NULL && x->plain != NULL ? GN_OK : gn_alloc_failed();
    if (status == GN_OK) {
        mark_bytes(x, by_depth);
        mark_subtrees(x, by_depth);
    }
    gn_free(by_depth);
    return status;
}

static gn_status build_trie(gn_vocab_index *x)
{
    entry *list = gn_alloc_array(x->n + 1, sizeof *list);
    uint32_t *open = gn_alloc_array(MAX_DEPTH + 1, sizeof *open);
    gn_status status = list != NULL && open != NULL ? GN_OK : gn_alloc_failed();
    if (status == GN_OK) {
        size_t n = 0;
        for (size_t i = 0; i < x->n; i++) {
            uint32_t len = x->start[i + 1] - x->start[i];
            if (len > 0 && len <= MAX_DEPTH) {
                list[n++] = (entry){(const unsigned char *)x->text + x->start[i], len, (int32_t)i};
            }
        }
        qsort(list, n, sizeof *list, compare_entries);
        size_t most = 1;
        for (size_t i = 0; i < n; i++) {
            uint32_t same = 0;
            while (i > 0 && same < list[i].len && same < list[i - 1].len &&
                   list[i].s[same] == list[i - 1].s[same]) {
                same++;
            }
            most += list[i].len - same;
        }
        x->nodes = gn_alloc_array(most, sizeof *x->nodes);
        status = x->nodes != NULL ? GN_OK : gn_alloc_failed();
        if (status == GN_OK) {
            write_nodes(x, list, n, open);
        }
    }
    gn_free(open);
    gn_free(list);
    return status;
}

gn_status gn_grammar_vocab_create(const gn_vocab_token *tokens, size_t n, gn_vocab_index **out)
{
    GN_REQUIRE(n <= MAX_TOKENS, GN_E_ARG, "vocabulary: found %zu tokens, expected at most %u", n,
               MAX_TOKENS);
    gn_vocab_index *x = gn_calloc(1, sizeof *x);
    if (x == NULL) {
        return gn_alloc_failed();
    }
    (void)pthread_mutex_init(&x->lock, NULL);
    gn_status status = copy_tokens(x, tokens, n);
    if (status == GN_OK) {
        status = build_trie(x);
    }
    if (status == GN_OK) {
        status = list_tokens(x);
    }
    if (status == GN_OK) {
        status = mark_plain(x);
    }
    if (status != GN_OK) {
        gn_grammar_vocab_destroy(x);
        return status;
    }
    *out = x;
    return GN_OK;
}

gn_status gn_grammar_vocab_from_tokenizer(const gn_tokenizer *tokenizer, size_t n_rows,
                                          gn_vocab_index **out)
{
    size_t n = (size_t)gn_tokenizer_n_vocab(tokenizer);
    n_rows = n_rows > n ? n_rows : n;
    gn_vocab_token *tokens = gn_calloc(n_rows + 1, sizeof *tokens);
    uint32_t *start = gn_alloc_array(n + 1, sizeof *start);
    gn_buf text = {0};
    gn_status status = tokens != NULL && start != NULL ? GN_OK : gn_alloc_failed();
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        start[i] = (uint32_t)text.len;
        tokens[i].is_end = gn_tokenizer_is_end(tokenizer, (int32_t)i);
        if (!tokens[i].is_end && !gn_tokenizer_is_special(tokenizer, (int32_t)i)) {
            status = gn_tokenizer_piece(tokenizer, (int32_t)i, false, &text);
        }
        tokens[i].len = (uint32_t)(text.len - start[i]);
    }
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        tokens[i].s = text.data != NULL ? text.data + start[i] : "";
    }
    if (status == GN_OK) {
        status = gn_grammar_vocab_create(tokens, n_rows, out);
    }
    gn_buf_fini(&text);
    gn_free(start);
    gn_free(tokens);
    return status;
}

void gn_grammar_vocab_destroy(gn_vocab_index *x)
{
    if (x == NULL) {
        return;
    }
    for (uint32_t i = 0; i < x->n_walks; i++) {
        gn_vocab_walk_destroy(x->walks[i]);
    }
    gn_free(x->walks);
    gn_free(x->nodes);
    gn_free(x->end_mask);
    gn_free(x->plain);
    gn_free(x->order);
    gn_free(x->next_same);
    gn_free(x->start);
    gn_free(x->text);
    (void)pthread_mutex_destroy(&x->lock);
    gn_free(x);
}

void gn_vocab_walk_destroy(gn_vocab_walk *walk)
{
    if (walk != NULL) {
        gn_free(walk->mask);
        gn_free(walk->groups);
        gn_free(walk->nodes);
        gn_free(walk->key);
        gn_free(walk);
    }
}

size_t gn_grammar_vocab_size(const gn_vocab_index *x)
{
    return x->n;
}

const char *gn_grammar_vocab_bytes(const gn_vocab_index *x, int32_t id, size_t *len)
{
    if (id < 0 || (size_t)id >= x->n) {
        *len = 0;
        return "";
    }
    *len = x->start[id + 1] - x->start[id];
    return x->text + x->start[id];
}

bool gn_grammar_vocab_is_end(const gn_vocab_index *x, int32_t id)
{
    return id >= 0 && (size_t)id < x->n && (x->end_mask[id / 32] >> (id % 32) & 1) != 0;
}
