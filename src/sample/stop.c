/* Stop strings: an Aho-Corasick automaton (A. V. Aho and M. J. Corasick, "Efficient string matching",
 * 1975) over bytes.
 *
 * After each byte the automaton's state is the longest suffix of the text that starts any stop string; just
 * that suffix is held back, so what is shown is never taken back and never late. The first byte that
 * completes a stop string decides, however the text was cut into calls; of several that end there, the one
 * that starts first (the longest) wins and nothing from its start on is shown.
 *
 * A state is a node of the trie of all strings: children are a linked list (stop strings are few, so lists
 * are short), `fail` is the longest proper suffix that is also a node, `match` the longest string that ends
 * at the node. Where text is whole UTF-8 sequences and so are the strings, what is held starts at a sequence,
 * so what is shown ends at one. */
#include "ganglion/sample.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/checked.h"

#include <assert.h>
#include <string.h>

typedef struct node {
    int32_t first_child; /* 0: none; the root is nobody's child */
    int32_t next;        /* the next child of the same parent, or 0 */
    int32_t fail;
    int32_t match; /* index of the longest string that is a suffix of this node, or -1 */
    int32_t depth;
    int32_t match_len;
    unsigned char byte; /* on the edge from the parent */
} node;

struct gn_stop {
    node *nodes; /* [n_nodes], the root first; children follow their parents */
    int32_t n_nodes;
    int32_t state;
    int32_t hit; /* -1 until a string was reached */
    gn_buf text; /* what was shown by the last call, then what is held */
    size_t n_shown;
};

static int32_t child(const gn_stop *stop, int32_t at, unsigned char byte)
{
    int32_t i = stop->nodes[at].first_child;
    while (i != 0 && stop->nodes[i].byte != byte) {
        i = stop->nodes[i].next;
    }
    return i;
}

static int32_t step(const gn_stop *stop, int32_t at, unsigned char byte)
{
    for (;;) {
        int32_t to = child(stop, at, byte);
        if (to != 0 || at == 0) {
            return to;
        }
        at = stop->nodes[at].fail;
    }
}

/* Put one string into the trie. Memory for its nodes is there. */
static void insert(gn_stop *stop, const char *string, size_t len, int32_t index)
{
    int32_t at = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)string[i];
        int32_t to = child(stop, at, byte);
        if (to == 0) {
            to = stop->n_nodes++;
            stop->nodes[to] = (node){.next = stop->nodes[at].first_child,
                                     .match = -1,
                                     .depth = stop->nodes[at].depth + 1,
                                     .byte = byte};
            stop->nodes[at].first_child = to;
        }
        at = to;
    }
    if (stop->nodes[at].match < 0) { /* of equal strings the first counts */
        stop->nodes[at].match = index;
        stop->nodes[at].match_len = stop->nodes[at].depth;
    }
}

/* Set fail and match of every node, shallow nodes first. queue [n_nodes] is scratch. */
static void link_nodes(gn_stop *stop, int32_t *queue)
{
    int32_t n = 0;
    queue[n++] = 0;
    for (int32_t head = 0; head < n; head++) {
        int32_t parent = queue[head];
        for (int32_t i = stop->nodes[parent].first_child; i != 0; i = stop->nodes[i].next) {
            node *it = &stop->nodes[i];
            it->fail = parent == 0 ? 0 : step(stop, stop->nodes[parent].fail, it->byte);
            if (it->match < 0) {
                it->match = stop->nodes[it->fail].match;
                it->match_len = stop->nodes[it->fail].match_len;
            }
            queue[n++] = i;
        }
    }
    assert(n == stop->n_nodes);
}

static gn_status build(gn_stop *stop, const char *const *strings, const size_t *lens, size_t n)
{
    size_t total = 1;
    for (size_t i = 0; i < n; i++) {
        GN_REQUIRE(lens[i] != 0, GN_E_ARG, "stop string %zu: found an empty string", i);
        GN_REQUIRE(gn_checked_add(total, lens[i], &total) && total <= INT32_MAX, GN_E_LIMIT,
                   "stop strings: found more than 2^31 bytes in all");
    }
    stop->nodes = gn_alloc_array(total, sizeof *stop->nodes);
    if (stop->nodes == NULL) {
        return gn_alloc_failed();
    }
    stop->nodes[0] = (node){.match = -1};
    stop->n_nodes = 1;
    stop->hit = -1;
    for (size_t i = 0; i < n; i++) {
        insert(stop, strings[i], lens[i], (int32_t)i);
    }
    int32_t *queue = gn_alloc_array((size_t)stop->n_nodes, sizeof *queue);
    if (queue == NULL) {
        return gn_alloc_failed();
    }
    link_nodes(stop, queue);
    gn_free(queue);
    return GN_OK;
}

gn_status gn_stop_create(const char *const *strings, const size_t *lens, size_t n, gn_stop **out)
{
    gn_stop *stop = gn_calloc(1, sizeof *stop);
    if (stop == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = build(stop, strings, lens, n);
    if (status != GN_OK) {
        gn_stop_destroy(stop);
        return status;
    }
    *out = stop;
    return GN_OK;
}

void gn_stop_destroy(gn_stop *stop)
{
    if (stop != NULL) {
        gn_buf_fini(&stop->text);
        gn_free(stop->nodes);
        gn_free(stop);
    }
}

/* Forget what the last call showed. */
static void drop_shown(gn_stop *stop)
{
    size_t held = stop->text.len - stop->n_shown;
    if (stop->n_shown != 0) {
        memmove(stop->text.data, stop->text.data + stop->n_shown, held);
        stop->text.len = held;
        stop->text.data[held] = '\0';
        stop->n_shown = 0;
    }
}

gn_status gn_stop_push(gn_stop *stop, const char *text, size_t len, size_t *emit, int32_t *hit)
{
    if (stop->hit >= 0) { /* nothing after a stop string is ever shown */
        len = 0;
    }
    GN_TRY(gn_buf_reserve(&stop->text, len));
    drop_shown(stop);
    for (size_t i = 0; i < len; i++) {
        stop->state = step(stop, stop->state, (unsigned char)text[i]);
        stop->hit = stop->nodes[stop->state].match;
        if (stop->hit >= 0) {
            len = i + 1;
        }
    }
    GN_TRY(gn_buf_append(&stop->text, text, len)); /* there is room: it can't fail */
    const node *at = &stop->nodes[stop->state];
    if (len != 0 && stop->hit >= 0) {
        stop->text.len -= (size_t)at->match_len;
        stop->n_shown = stop->text.len;
    } else if (stop->hit < 0) {
        stop->n_shown = stop->text.len - (size_t)at->depth;
    }
    *emit = stop->n_shown;
    *hit = stop->hit;
    return GN_OK;
}

const char *gn_stop_text(const gn_stop *stop)
{
    return stop->text.data != NULL ? stop->text.data : "";
}

size_t gn_stop_flush(gn_stop *stop)
{
    drop_shown(stop);
    stop->n_shown = stop->text.len;
    return stop->n_shown;
}
