/* bits_tool MODEL N_TOK: are the logits of a real model equal to the bit however they are computed?
 *
 * One sequence of N_TOK tokens is computed for each KV type in a first way and then in others: numbers of
 * threads, chunks of the prompt, pages in random order, weights from the cache file or in place, and as a
 * part of passes over 1 to 16 sessions. Each position's row of logits is kept as a hash of its bits.
 * Prints a line for each way; exit 1 with the position at the first difference. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model_impl.h"
#include "ganglion/ganglion.h"

#define MOST_TOK   1024
#define N_SESSIONS 16
#define CHUNK_1    40 /* tokens that are enough one by one */

typedef struct way {
    int32_t threads, prefill_threads;
    int32_t chunk; /* tokens of a forward pass */
    uint64_t shuffle;
    gn_cache_mode cache;
    size_t n_tok; /* 0: all */
} way;

static const way ways[] = {
    {2, 2, 64, 0, GN_CACHE_OFF, 0},      {1, 1, 512, 5, GN_CACHE_OFF, 0},
    {3, 8, 7, 9, GN_CACHE_READ, 0},      {8, 3, 64, 77, GN_CACHE_READ, 0},
    {2, 2, 512, 0, GN_CACHE_READ, 0},    {2, 1, 1, 1234, GN_CACHE_READ, CHUNK_1},
    {1, 2, 1, 0, GN_CACHE_OFF, CHUNK_1},
};

static const char *const kv_names[] = {"f16", "q8", "fp8", "q4"};

static const char *path;
static size_t n_tok;
static size_t n_vocab;
static int32_t ids[MOST_TOK];
static uint64_t expected[MOST_TOK];
static float *logits; /* [n_tok, n_vocab] */

static void check(gn_status status)
{
    if (status != GN_OK) {
        (void)fprintf(stderr, "bits_tool: %s\n", gn_error_message());
        exit(2);
    }
}

static uint64_t hash(const float *row)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a, by words */
    for (size_t i = 0; i < n_vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        h = (h ^ bits) * 1099511628211u;
    }
    return h;
}

static void compare(const char *what, size_t pos, const float *row)
{
    if (hash(row) != expected[pos]) {
        (void)printf("%s: position %zu has other bits\n", what, pos);
        exit(1);
    }
}

static gn_model *open_model(const way *w, gn_kv_format kv)
{
    const gn_model_options options = {.threads = w->threads,
                                      .prefill_threads = w->prefill_threads,
                                      .kv_bytes = 4ull << 30,
                                      .kv_format = kv,
                                      .cache = w->cache};
    gn_model *model = NULL;
    check(gn_model_open(path, &options, &model));
    gn_kv_pool_shuffle(model->kv, w->shuffle);
    return model;
}

/* The sequence in one way; the first way's hashes are what others are held against. */
static void run_way(const way *w, gn_kv_format kv, bool first)
{
    gn_model *model = open_model(w, kv);
    const gn_session_options options = {.n_ctx = MOST_TOK, .n_batch = w->chunk};
    gn_session *session = NULL;
    check(gn_session_create(model, &options, &session));
    size_t n = w->n_tok != 0 ? w->n_tok : n_tok;
    size_t step =
        w->chunk < 64 ? (size_t)w->chunk : n; /* small chunks by calls, others by passes */
    for (size_t done = 0; done < n;) {
        size_t m = n - done < step ? n - done : step;
        check(gn_session_eval(session, ids + done, m, logits + done * n_vocab, m));
        done += m;
    }
    char what[128];
    (void)snprintf(what, sizeof what, "kv %s, threads %d and %d, chunks of %d, pages %s, cache %s",
                   kv_names[kv], w->threads, w->prefill_threads, w->chunk,
                   w->shuffle != 0 ? "shuffled" : "in order",
                   gn_model_get_info(model).cache_bytes != 0 ? "read" : "off");
    for (size_t i = 0; i < n; i++) {
        if (first) {
            expected[i] = hash(logits + i * n_vocab);
        } else {
            compare(what, i, logits + i * n_vocab);
        }
    }
    (void)printf("%s: %zu positions%s\n", what, n, first ? "" : " equal");
    gn_session_destroy(session);
    gn_model_close(model);
}

/* Sessions at different places of the sequence, 1 to 16 of them in one pass. */
static void run_together(gn_kv_format kv)
{
    const way w = {.threads = 3, .shuffle = 31, .cache = GN_CACHE_READ};
    gn_model *model = open_model(&w, kv);
    gn_session *sessions[N_SESSIONS] = {0};
    for (size_t i = 0; i < N_SESSIONS; i++) {
        check(gn_session_create(model, NULL, &sessions[i]));
        check(gn_session_eval(sessions[i], ids, 3 + 5 * i, NULL, 0));
    }
    for (size_t n = 1; n <= N_SESSIONS; n++) {
        int32_t next[N_SESSIONS];
        for (size_t i = 0; i < n; i++) {
            next[i] = ids[gn_session_length(sessions[i])];
        }
        check(gn_session_eval_many(sessions, next, n, logits));
        for (size_t i = 0; i < n; i++) {
            compare("sessions together", gn_session_length(sessions[i]) - 1, logits + i * n_vocab);
        }
    }
    (void)printf("kv %s, 1 to %d sessions in one pass: equal\n", kv_names[kv], N_SESSIONS);
    for (size_t i = 0; i < N_SESSIONS; i++) {
        gn_session_destroy(sessions[i]);
    }
    gn_model_close(model);
}

/* Is the KV type one of its own in this build, and not another's bytes? */
static bool has_kv(gn_kv_format kv)
{
    if (kv == GN_KV_FORMAT_F16) {
        return true;
    }
    gn_model *f16 = open_model(&ways[0], GN_KV_FORMAT_F16);
    const gn_model_options options = {.kv_format = kv, .cache = GN_CACHE_OFF};
    gn_model *other = NULL;
    bool has = gn_model_open(path, &options, &other) == GN_OK &&
               gn_model_get_info(other).kv_bytes_per_tok < gn_model_get_info(f16).kv_bytes_per_tok;
    gn_model_close(other);
    gn_model_close(f16);
    return has;
}

int main(int argc, char **argv)
{
    if (argc != 3 || (n_tok = strtoul(argv[2], NULL, 10)) < 3 + 5 * N_SESSIONS + N_SESSIONS ||
        n_tok > MOST_TOK) {
        (void)fprintf(stderr, "usage: bits_tool MODEL N_TOK (100 to %d)\n", MOST_TOK);
        return 2;
    }
    path = argv[1];
    gn_model *model = open_model(&ways[0], GN_KV_FORMAT_F16);
    n_vocab = (size_t)gn_model_get_info(model).n_vocab;
    gn_model_close(model);
    logits = malloc(n_tok * n_vocab * sizeof *logits);
    if (logits == NULL) {
        return 2;
    }
    for (size_t i = 0; i < n_tok; i++) {
        ids[i] = (int32_t)((i * 7919u + 13u) % n_vocab);
    }
    for (int kv = GN_KV_FORMAT_F16; kv <= GN_KV_FORMAT_Q4; kv++) {
        if (!has_kv((gn_kv_format)kv)) {
            (void)printf("kv %s: not in this build\n", kv_names[kv]);
            continue;
        }
        /* f16 in every way; of the other types what their own code can change. */
        size_t n_ways = kv == GN_KV_FORMAT_F16 ? sizeof ways / sizeof ways[0] : 3;
        for (size_t i = 0; i < n_ways; i++) {
            run_way(&ways[i], (gn_kv_format)kv, i == 0);
        }
        run_together((gn_kv_format)kv);
    }
    free(logits);
    return 0;
}
