/* Promise 1: a position's logits have the same bits however its prefix was computed: any number of threads,
 * any split into batches, any order of pages, alone or beside other sequences, with what windows have passed given
 * back or kept. Run on tiny checkpoints of every architecture, and on SmolLM2 (quantized) where it is in the
 * cache; contexts of several parts (attend.c) on some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "model/net.h"

#define N_TOK      150u
#define N_TOK_LONG 600u /* three parts of attention, the last not full; windows give pages back */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RUNNING_SANITIZED 1
#else
#define RUNNING_SANITIZED 0
#endif

typedef struct way {
    int threads;
    uint32_t chunk;
    uint64_t shuffle;
    bool beside;       /* another sequence's rows in each batch */
    bool keeps_passed; /* the pool knows of no windows */
} way;

static const way ways[] = {
    {1, 256, 0, false, false}, {2, 1, 0, false, false}, {3, 7, 5, false, true},
    {8, 64, 9, false, false},  {1, 1, 77, false, true}, {2, 64, 3, true, false},
    {3, 100, 11, true, false}, {8, 7, 6, true, false},  {8, 256, 1234, false, false},
};

static int32_t token(uint32_t i, uint32_t n_vocab)
{
    return (int32_t)((i * 7919u + 13u) % n_vocab);
}

/* Logits of all n_tok positions, computed in one way: [n_tok, n_vocab] (free). */
static float *compute(const gn_source *source, gn_kv_type kv_type, uint32_t n_tok, way w)
{
    gn_os_pool *pool = NULL;
    gn_net *net = NULL;
    gn_kv_pool *kv = NULL;
    assert_int_equal(gn_os_pool_create(w.threads, &pool), GN_OK);
    if (gn_net_create(source, pool, kv_type == GN_KV_F32, kv_type, &net) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    gn_kv_shape shape = gn_net_kv_shape(net);
    if (w.keeps_passed) {
        shape.windowed = NULL;
    }
    assert_int_equal(gn_kv_pool_create(&shape, 1ull << 30, &kv), GN_OK);
    gn_kv_pool_shuffle(kv, w.shuffle);
    gn_kv_table tables[2];
    gn_kv_table_init(&tables[0], kv);
    gn_kv_table_init(&tables[1], kv);
    uint32_t n_vocab = gn_net_hparams(net)->n_vocab;
    float *logits = malloc((size_t)n_tok * n_vocab * sizeof *logits);
    gn_row rows[GN_NET_MAX_ROWS];
    for (uint32_t start = 0; start < n_tok;) {
        uint32_t room = w.beside ? GN_NET_MAX_ROWS - 3 : GN_NET_MAX_ROWS;
        uint32_t m = w.chunk < room ? w.chunk : room;
        m = n_tok - start < m ? n_tok - start : m;
        uint32_t n = 0;
        for (uint32_t i = 0; w.beside && i < 3; i++) {
            uint32_t pos = tables[1].n_tok + i;
            rows[n++] = (gn_row){.id = token(pos + 31, n_vocab), .pos = pos, .table = &tables[1]};
        }
        for (uint32_t i = 0; i < m; i++) {
            rows[n++] = (gn_row){.id = token(start + i, n_vocab),
                                 .pos = start + i,
                                 .table = &tables[0],
                                 .wants_output = true};
        }
        assert_int_equal(gn_kv_table_reserve(&tables[0], start + m), GN_OK);
        assert_int_equal(gn_kv_table_reserve(&tables[1], tables[1].n_tok + 3), GN_OK);
        unsigned loops = gn_os_pool_loops(pool);
        gn_net_forward(net, rows, n, logits + (size_t)start * n_vocab, NULL);
        loops = gn_os_pool_loops(pool) - loops;
        if (n == 1 && gn_net_hparams(net)->n_expert == 0) {
            /* q k v, attention, o, gate and up, down; and the output matrix. */
            assert_in_range(loops, 0, 5 * gn_net_hparams(net)->n_layer + 1);
        }
        start += m;
        gn_kv_table_advance(&tables[0], start);
        gn_kv_table_advance(&tables[1], tables[1].n_tok + (w.beside ? 3 : 0));
    }
    gn_kv_table_fini(&tables[0]);
    gn_kv_table_fini(&tables[1]);
    gn_kv_pool_destroy(kv);
    gn_net_destroy(net);
    gn_os_pool_destroy(pool);
    return logits;
}

static void check_model(const char *path, gn_kv_type kv_type, uint32_t n_tok)
{
    gn_source *source = NULL;
    if (gn_source_open(path, &source) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    size_t bytes = 0;
    float *first = NULL;
    for (size_t i = 0; i < GN_COUNTOF(ways); i++) {
        float *logits = compute(source, kv_type, n_tok, ways[i]);
        if (first == NULL) {
            gn_meta meta;
            assert_int_equal(gn_meta_init(&meta, source), GN_OK);
            first = logits;
            gn_net *net = NULL;
            assert_int_equal(gn_net_create(source, NULL, kv_type == GN_KV_F32, kv_type, &net),
                             GN_OK);
            bytes = (size_t)n_tok * gn_net_hparams(net)->n_vocab * sizeof *logits;
            gn_net_destroy(net);
            continue;
        }
        if (memcmp(first, logits, bytes) != 0) {
            fail_msg("%s: way %zu (%d threads, batches of %u) gives other bits", path, i,
                     ways[i].threads, ways[i].chunk);
        }
        free(logits);
    }
    free(first);
    gn_source_close(source);
}

static void test_tiny(void **state)
{
    (void)state;
    static const char *const names[] = {"llama/",  "mistral/", "mixtral/",
                                        "qwen2/",  "qwen3/",   "qwen3moe/",
                                        "gemma3/", "phi3/",    "gguf_llama/model.gguf"};
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/tiny/%s", GN_TEST_GOLDEN, names[i]);
        for (int type = GN_KV_F16; type <= GN_KV_Q4; type++) {
            check_model(path, (gn_kv_type)type, N_TOK);
        }
    }
}

static void test_long(void **state)
{
    (void)state;
    static const char *const names[] = {"llama/", "mistral/", "gemma3/"};
    static const gn_kv_type types[] = {GN_KV_F16, GN_KV_Q8};
    size_t n_types = RUNNING_SANITIZED ? 1 : GN_COUNTOF(types);
    for (size_t i = 0; i < GN_COUNTOF(names); i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/tiny/%s", GN_TEST_GOLDEN, names[i]);
        for (size_t type = 0; type < n_types; type++) {
            check_model(path, types[type], N_TOK_LONG);
        }
    }
}

static void test_smollm2(void **state)
{
    (void)state;
    char path[512];
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    (void)snprintf(
        path, sizeof path, "%s%s/ganglion/models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf",
        cache != NULL ? cache : (home != NULL ? home : ""), cache != NULL ? "" : "/.cache");
    FILE *f = fopen(path, "rb");
    if (f == NULL || RUNNING_SANITIZED) {
        if (f != NULL) {
            (void)fclose(f);
        }
        skip(); /* too slow under a sanitizer, or not fetched */
    }
    (void)fclose(f);
    for (int type = GN_KV_F16; type <= GN_KV_Q4; type++) {
        if (type != GN_KV_F32) {
            check_model(path, (gn_kv_type)type, N_TOK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiny), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_smollm2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
