/* `ganglion bench`: tokens a second of prefill and decode, start-up time and memory. Token ids are drawn
 * from a fixed seed, since speed does not depend on what a text says. Each test has one run that is not
 * counted, then -r runs whose median, least and most are printed. */
#include "base/alloc.h"
#include "base/rng.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "ganglion/session.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    gn_cli_model_args model;
    gn_cli_ints prompt;
    gn_cli_ints generate;
    gn_cli_ints batch;
    gn_cli_ints depth;
    int64_t repeat;
    bool json;
} options;

#define MAX_BATCH  64
#define MAX_REPEAT 1000
#define MAX_TOKENS 1048576

static const options defaults = {.prompt = {{512}, 1},
                                 .generate = {{128}, 1},
                                 .batch = {{1}, 1},
                                 .depth = {{0}, 1},
                                 .repeat = 5};

static const gn_cli_option rows[] = {
    GN_CLI_MODEL_OPTION(options),
    {.letter = 'p',
     .name = "prompt",
     .kind = GN_CLI_INTS,
     .offset = offsetof(options, prompt),
     .value = "N,…",
     .help = "Tokens of prefill; 0: no such test; default: 512.",
     .min = 0,
     .max = MAX_TOKENS},
    {.letter = 'n',
     .name = "generate",
     .kind = GN_CLI_INTS,
     .offset = offsetof(options, generate),
     .value = "N,…",
     .help = "Tokens of decode; 0: no such test; default: 128.",
     .min = 0,
     .max = MAX_TOKENS},
    {.letter = 'b',
     .name = "batch",
     .kind = GN_CLI_INTS,
     .offset = offsetof(options, batch),
     .value = "B,…",
     .help =
         "Sequences decoded together; for now they take turns, one token each, so that a batch is "
         "no faster than its sequences; default: 1.",
     .min = 1,
     .max = MAX_BATCH},
    {.letter = 'd',
     .name = "depth",
     .kind = GN_CLI_INTS,
     .offset = offsetof(options, depth),
     .value = "D,…",
     .help = "Tokens that are in the context before the test; default: 0.",
     .min = 0,
     .max = MAX_TOKENS},
    {.letter = 'r',
     .name = "repeat",
     .kind = GN_CLI_INT,
     .offset = offsetof(options, repeat),
     .value = "R",
     .help = "Counted runs of each test; default: 5.",
     .min = 1,
     .max = MAX_REPEAT},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print the results as JSON."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

typedef struct bench {
    const options *options;
    gn_model *model;
    gn_model_info info;
    gn_session *sessions[MAX_BATCH];
    int32_t *ids; /* [n_ids] */
    size_t n_ids;
    float *logits; /* [n_vocab] */
    double *rates; /* [repeat] */
    double cold_start;
    gn_cli_json json;
} bench;

typedef struct test {
    bool decode;
    size_t n, batch, depth;
} test;

static gn_status bring_to_depth(bench *b, gn_session *session, size_t depth)
{
    size_t length = gn_session_length(session);
    if (length > depth) {
        return gn_session_truncate(session, depth);
    }
    return length < depth ? gn_session_eval(session, b->ids + length, depth - length, NULL, 0)
                          : GN_OK;
}

/* One run of a test; *rate in tokens a second over all sequences. */
static gn_status run_once(bench *b, const test *t, double *rate)
{
    for (size_t s = 0; s < t->batch; s++) {
        GN_TRY(bring_to_depth(b, b->sessions[s], t->depth));
    }
    uint64_t start = gn_os_now_ns();
    if (!t->decode) {
        GN_TRY(gn_session_eval(b->sessions[0], b->ids + t->depth, t->n, b->logits, 1));
    }
    for (size_t i = 0; t->decode && i < t->n; i++) {
        for (size_t s = 0; s < t->batch; s++) {
            GN_TRY(gn_session_eval(b->sessions[s], b->ids + t->depth + i, 1, b->logits, 1));
        }
    }
    uint64_t ns = gn_os_now_ns() - start;
    *rate = (double)(t->n * t->batch) / ((double)(ns > 0 ? ns : 1) * 1e-9);
    return GN_OK;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

static void print_test(bench *b, const test *t, const double *rates, size_t n)
{
    double median = n % 2 != 0 ? rates[n / 2] : 0.5 * (rates[n / 2 - 1] + rates[n / 2]);
    const char *name = t->decode ? "decode" : "prefill";
    const char *kv = b->options->model.activations == GN_ACTIVATIONS_F32 ? "f32" : "f16";
    if (!b->options->json) {
        (void)printf("%-8s %6zu %6zu %6zu %10.2f %10.2f %10.2f\n", name, t->n, t->batch, t->depth,
                     median, rates[0], rates[n - 1]);
        (void)fflush(stdout);
        return;
    }
    gn_cli_json *json = &b->json;
    gn_cli_json_object(json, NULL);
    gn_cli_json_str(json, "test", name);
    gn_cli_json_uint(json, "n", t->n);
    gn_cli_json_uint(json, "batch", t->batch);
    gn_cli_json_uint(json, "depth", t->depth);
    gn_cli_json_str(json, "kv", kv);
    gn_cli_json_object(json, "tok_s");
    gn_cli_json_real(json, "median", median, 3);
    gn_cli_json_real(json, "min", rates[0], 3);
    gn_cli_json_real(json, "max", rates[n - 1], 3);
    gn_cli_json_end(json);
    gn_cli_json_end(json);
}

static gn_status run_test(bench *b, const test *t)
{
    size_t repeat = (size_t)b->options->repeat;
    double warm_up;
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, t->decode ? "decode" : "prefill", "runs", repeat, 0);
    gn_status status = run_once(b, t, &warm_up);
    for (size_t i = 0; status == GN_OK && i < repeat; i++) {
        gn_cli_progress_at(&progress, i);
        status = run_once(b, t, &b->rates[i]);
    }
    gn_cli_progress_end(&progress);
    if (status == GN_OK) {
        qsort(b->rates, repeat, sizeof *b->rates, ascending);
        print_test(b, t, b->rates, repeat);
    }
    return status;
}

static gn_status run_tests(bench *b)
{
    const options *o = b->options;
    for (size_t d = 0; d < o->depth.n; d++) {
        for (size_t i = 0; i < o->prompt.n; i++) {
            test t = {false, (size_t)o->prompt.v[i], 1, (size_t)o->depth.v[d]};
            if (t.n > 0) {
                GN_TRY(run_test(b, &t));
            }
        }
        for (size_t i = 0; i < o->generate.n * o->batch.n; i++) {
            test t = {true, (size_t)o->generate.v[i / o->batch.n],
                      (size_t)o->batch.v[i % o->batch.n], (size_t)o->depth.v[d]};
            if (t.n > 0) {
                GN_TRY(run_test(b, &t));
            }
        }
    }
    return GN_OK;
}

static size_t most(const gn_cli_ints *list)
{
    int64_t best = 0;
    for (size_t i = 0; i < list->n; i++) {
        best = list->v[i] > best ? list->v[i] : best;
    }
    return (size_t)best;
}

/* A line "NAME:   123 kB" of /proc/self/status, in bytes; 0 where it is absent. */
static uint64_t status_bytes(const gn_buf *text, const char *name)
{
    const char *at = text->data != NULL ? strstr(text->data, name) : NULL;
    return at != NULL ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

/* Memory of this process alone, and pages of mapped files, which processes share. */
static void print_memory(bench *b)
{
    gn_buf text = {0};
    if (gn_cli_read("/proc/self/status", 0, &text) != GN_OK) {
        gn_buf_clear(&text);
    }
    uint64_t private_bytes = status_bytes(&text, "RssAnon:");
    uint64_t shared_bytes = status_bytes(&text, "RssFile:") + status_bytes(&text, "RssShmem:");
    gn_buf_fini(&text);
    if (!b->options->json) {
        char one[GN_CLI_HUMAN];
        char two[GN_CLI_HUMAN];
        (void)printf("cold start %.3f s (from opening the file to the first token)\n"
                     "memory     %s private, %s shared (mapped files)\n",
                     b->cold_start, gn_cli_human_bytes(private_bytes, one),
                     gn_cli_human_bytes(shared_bytes, two));
        return;
    }
    gn_cli_json_object(&b->json, NULL);
    gn_cli_json_str(&b->json, "test", "cold_start");
    gn_cli_json_real(&b->json, "seconds", b->cold_start, 6);
    gn_cli_json_end(&b->json);
    gn_cli_json_object(&b->json, NULL);
    gn_cli_json_str(&b->json, "test", "memory");
    gn_cli_json_uint(&b->json, "private_bytes", private_bytes);
    gn_cli_json_uint(&b->json, "shared_bytes", shared_bytes);
    gn_cli_json_end(&b->json);
}

static void print_head(bench *b)
{
    if (!b->options->json) {
        (void)printf("%s, %s, %d threads, level %s, commit %s\n\n", b->options->model.path,
                     b->info.architecture, b->info.threads, b->info.cpu_level, gn_version_commit());
        (void)printf("%-8s %6s %6s %6s %10s %10s %10s  tok/s\n", "test", "n", "batch", "depth",
                     "median", "min", "max");
        return;
    }
    gn_cli_json *json = &b->json;
    gn_cli_json_init(json, stdout);
    gn_cli_json_object(json, NULL);
    gn_cli_json_str(json, "model", b->options->model.path);
    gn_cli_json_str(json, "architecture", b->info.architecture);
    gn_cli_json_str(json, "level", b->info.cpu_level);
    gn_cli_json_int(json, "threads", b->info.threads);
    gn_cli_json_str(json, "version", gn_version());
    gn_cli_json_str(json, "commit", gn_version_commit());
    gn_cli_json_array(json, "results");
}

static gn_status make_ids(bench *b, size_t n)
{
    b->n_ids = n;
    b->ids = gn_alloc_array(n, sizeof *b->ids);
    b->rates = gn_alloc_array((size_t)b->options->repeat, sizeof *b->rates);
    b->logits = gn_alloc_array((size_t)b->info.n_vocab, sizeof *b->logits);
    if (b->ids == NULL || b->rates == NULL || b->logits == NULL) {
        return gn_alloc_failed();
    }
    gn_rng rng = {1};
    for (size_t i = 0; i < n; i++) {
        b->ids[i] = (int32_t)(gn_rng_next(&rng) % (uint64_t)b->info.n_vocab);
    }
    return GN_OK;
}

static gn_status bench_run(bench *b)
{
    const options *o = b->options;
    size_t longest = most(&o->prompt) > most(&o->generate) ? most(&o->prompt) : most(&o->generate);
    size_t n_ctx = most(&o->depth) + (longest > 0 ? longest : 1);
    gn_session_options session_options = {.n_ctx = (int32_t)n_ctx};
    uint64_t start = gn_os_now_ns();
    GN_TRY(gn_cli_model_open(&o->model, &b->model));
    b->info = gn_model_get_info(b->model);
    GN_TRY(make_ids(b, n_ctx));
    for (size_t i = 0; i < most(&o->batch); i++) {
        GN_TRY(gn_session_create(b->model, &session_options, &b->sessions[i]));
    }
    GN_TRY(gn_session_eval(b->sessions[0], b->ids, 1, b->logits, 1));
    b->cold_start = (double)(gn_os_now_ns() - start) * 1e-9;
    print_head(b);
    GN_TRY(run_tests(b));
    print_memory(b);
    if (o->json) {
        gn_cli_json_end(&b->json);
        gn_cli_json_end(&b->json);
    }
    return GN_OK;
}

static gn_status run(const void *options_, const gn_cli_list *args)
{
    (void)args;
    bench b = {.options = options_};
    gn_status status = bench_run(&b);
    for (size_t i = 0; i < MAX_BATCH; i++) {
        gn_session_destroy(b.sessions[i]);
    }
    gn_free(b.ids);
    gn_free(b.rates);
    gn_free(b.logits);
    gn_model_close(b.model);
    return status;
}

const gn_cli_command gn_cli_cmd_bench = {
    .name = "bench",
    .summary = "tokens a second, start-up time and memory",
    .usage = "-m MODEL [options]",
    .details =
        "Prefill and decode at each depth, decode for each batch size; tok/s of a batch is the "
        "sum\n"
        "over its sequences. cold_start is the time from opening the file to the first token.",
    .example = "ganglion bench -m smollm2-135m -p 512 -n 128 -b 1,8 -t 2 --json",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
