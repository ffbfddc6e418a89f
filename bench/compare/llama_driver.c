/* Speed of llama.cpp through its C interface, built against one of its builds by peers.py. No Python in the way,
 * so that its start-up time and memory are its own.
 *
 *     llama_driver MODEL THREADS REPACK(0|1) FLASH(0|1) KV(f16|q8) STATES TEST…
 *
 * A TEST is `prefill:N:DEPTH`, `decode:N:BATCH:DEPTH` or `first`. For each one line of JSON:
 * {"test":…,"tok_s":…,"private_bytes":…}, or {"test":"first"} as soon as the first token is chosen. STATES
 * is a folder for the KV cache of a context DEPTH tokens long, which is computed once and loaded from then
 * on ("-": never kept). Each test has a short run that is not counted. Exit 1 with a line where llama.cpp
 * refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llama.h"

#define CHUNK 512

typedef struct driver {
    struct llama_model *model;
    int threads, flash;
    enum ggml_type kv;
    const char *states;
    const char *name; /* the model's, for file names */
    int repack;
    int n_vocab;
} driver;

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "llama.cpp: %s\n", what);
    exit(1);
}

static void be_quiet(enum ggml_log_level level, const char *text, void *data)
{
    (void)level;
    (void)text;
    (void)data;
}

static llama_token token(const driver *d, int i)
{
    return (llama_token)((7919LL * i + 13) % (d->n_vocab - 1000) + 500);
}

static struct llama_context *context(const driver *d, int n_ctx, int n_seq)
{
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = (uint32_t)((n_ctx + 64) * n_seq);
    p.n_batch = p.n_ubatch = CHUNK;
    p.n_seq_max = (uint32_t)n_seq;
    p.n_threads = p.n_threads_batch = d->threads;
    p.flash_attn_type = d->flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    p.type_k = p.type_v = d->kv;
    struct llama_context *ctx = llama_init_from_model(d->model, p);
    if (ctx == NULL) {
        fail("no context of this kind");
    }
    return ctx;
}

/* Tokens [from, from + n) of sequence 0. */
static void prefill(const driver *d, struct llama_context *ctx, int from, int n)
{
    llama_token ids[CHUNK];
    for (int done = 0; done < n;) {
        int m = n - done < CHUNK ? n - done : CHUNK;
        for (int i = 0; i < m; i++) {
            ids[i] = token(d, from + done + i);
        }
        if (llama_decode(ctx, llama_batch_get_one(ids, m)) != 0) {
            fail("llama_decode failed");
        }
        done += m;
    }
}

/* n steps of one token for each of n_seq sequences that hold `from` tokens. */
static void decode(const driver *d, struct llama_context *ctx, int from, int n, int n_seq)
{
    struct llama_batch batch = llama_batch_init(n_seq, 0, 1);
    for (int i = 0; i < n; i++) {
        batch.n_tokens = n_seq;
        for (int s = 0; s < n_seq; s++) {
            batch.token[s] = token(d, from + i + 31 * s);
            batch.pos[s] = from + i;
            batch.n_seq_id[s] = 1;
            batch.seq_id[s][0] = s;
            batch.logits[s] = 1;
        }
        if (llama_decode(ctx, batch) != 0) {
            fail("llama_decode failed");
        }
    }
    llama_batch_free(batch);
}

/* Bring sequence 0 to `depth` tokens, from a kept state where there is one. */
static void fill(const driver *d, struct llama_context *ctx, int depth)
{
    char path[4096];
    size_t n = 0;
    if (depth == 0) {
        return;
    }
    int keep = strcmp(d->states, "-") != 0;
    (void)snprintf(path, sizeof path, "%s/%s-%s-flash%d-%d.state", d->states, d->name,
                   d->kv == GGML_TYPE_F16 ? "f16" : "q8", d->flash, depth);
    llama_token *ids = calloc((size_t)depth, sizeof *ids);
    for (int i = 0; i < depth; i++) {
        ids[i] = token(d, i);
    }
    if (!keep || llama_state_seq_load_file(ctx, path, 0, ids, (size_t)depth, &n) == 0) {
        llama_memory_clear(llama_get_memory(ctx), true);
        prefill(d, ctx, 0, depth);
        if (keep) {
            (void)llama_state_seq_save_file(ctx, path, 0, ids, (size_t)depth);
        }
    }
    free(ids);
}

static long private_bytes(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "RssAnon: %ld", &kib);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib * 1024;
}

static void run_test(const driver *d, const char *test)
{
    int n = 0;
    int batch = 1;
    int depth = 0;
    int is_prefill = sscanf(test, "prefill:%d:%d", &n, &depth) == 2;
    if (!is_prefill && sscanf(test, "decode:%d:%d:%d", &n, &batch, &depth) != 3) {
        fail("unknown test");
    }
    struct llama_context *ctx = context(d, depth + n, batch);
    llama_memory_t memory = llama_get_memory(ctx);
    prefill(d, ctx, 0, 64);
    llama_memory_clear(memory, true);
    if (!is_prefill) {
        decode(d, ctx, 0, 4, batch);
        llama_memory_clear(memory, true);
    }
    fill(d, ctx, depth);
    double start = now();
    if (is_prefill) {
        prefill(d, ctx, depth, n);
    } else {
        decode(d, ctx, depth, n, batch);
    }
    double seconds = now() - start;
    (void)printf("{\"test\":\"%s\",\"tok_s\":%.4f,\"private_bytes\":%ld}\n", test,
                 n * batch / seconds, private_bytes());
    (void)fflush(stdout);
    llama_free(ctx);
}

/* The way from the start of the process to the first token: the text is "The quick brown fox". */
static void first(const driver *d)
{
    llama_token ids[64];
    const char *text = "The quick brown fox";
    struct llama_context *ctx = context(d, 64, 1);
    int n = llama_tokenize(llama_model_get_vocab(d->model), text, (int)strlen(text), ids, 64, true,
                           true);
    if (n < 1 || llama_decode(ctx, llama_batch_get_one(ids, n)) != 0) {
        fail("llama_decode failed");
    }
    const float *logits = llama_get_logits_ith(ctx, -1);
    int best = 0;
    for (int i = 1; i < d->n_vocab; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    char piece[128];
    (void)llama_token_to_piece(llama_model_get_vocab(d->model), best, piece, sizeof piece, 0, true);
    (void)printf("{\"test\":\"first\",\"id\":%d}\n", best);
    (void)fflush(stdout);
    llama_free(ctx);
}

int main(int argc, char **argv)
{
    if (argc < 8) {
        (void)fprintf(stderr, "usage: llama_driver MODEL THREADS REPACK FLASH KV STATES TEST...\n");
        return 2;
    }
    llama_log_set(be_quiet, NULL);
    llama_backend_init();
    driver d = {.threads = atoi(argv[2]),
                .repack = atoi(argv[3]),
                .flash = atoi(argv[4]),
                .kv = strcmp(argv[5], "q8") == 0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16,
                .states = argv[6]};
    const char *slash = strrchr(argv[1], '/');
    d.name = slash != NULL ? slash + 1 : argv[1];
    struct llama_model_params p = llama_model_default_params();
    p.use_extra_bufts = d.repack != 0;
    d.model = llama_model_load_from_file(argv[1], p);
    if (d.model == NULL) {
        fail("can't load the model");
    }
    d.n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(d.model));
    for (int i = 7; i < argc; i++) {
        if (strcmp(argv[i], "first") == 0) {
            first(&d);
        } else {
            run_test(&d, argv[i]);
        }
    }
    llama_model_free(d.model);
    llama_backend_free();
    return 0;
}
