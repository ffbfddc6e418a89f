/* `ganglion bench`: tokens a second of prefill and decode, start-up time, memory, and the share of the memory's
 * bandwidth that decode uses. Token ids are drawn from a fixed seed, since speed does not depend on what a
 * text says. The tests of one depth take turns, run after run, so that a disturbance meets all of them;
 * each has a short run that is not counted, then -r runs whose median, least and most are printed. */
#include "base/alloc.h"
#include "base/rng.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_path.h"
#include "cli/out.h"
#include "ganglion/session.h"
#include "os/clock.h"
#include "os/process.h"
#include "tensor/bandwidth.h"

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
    bool no_extras;
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
     .help = "Sequences decoded together, a token each in one pass; default: 1.",
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
    {.name = "no-extras",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, no_extras),
     .help = "Leave cold start and bandwidth out."},
    {.name = "json",
     .kind = GN_CLI_FLAG,
     .offset = offsetof(options, json),
     .help = "Print the results as JSON."},
    GN_CLI_COMPUTE_OPTIONS(options),
};

#define WARM_UP_PREFILL 512
#define WARM_UP_DECODE  8

typedef struct test {
    bool decode;
    size_t n, batch, depth;
    double *rates; /* [repeat] tokens a second over all sequences */
} test;

typedef struct bench {
    const options *options;
    gn_model *model;
    gn_model_info info;
    gn_session *sessions[MAX_BATCH];
    int32_t *ids; /* [largest batch, n_ids], different ones for each sequence */
    size_t n_ids;
    float *logits; /* [largest batch, n_vocab] */
    test *tests;   /* of the depth that runs: [n_tests] */
    size_t n_tests;
    double *rates;      /* [most tests, repeat] */
    double decode_rate; /* median of one sequence at depth 0; 0: not measured */
    uint64_t private_bytes;
    gn_cli_json json;
} bench;

/* Waiting for the cache file takes Ctrl-C for itself, so that it is asked for from then on. */
static gn_status not_interrupted(void)
{
    GN_REQUIRE(!gn_cli_interrupt_pending(), GN_E_CANCELLED, "interrupted");
    return GN_OK;
}

/* --- one test --- */

static gn_status bring_to_depth(bench *b, size_t s, size_t depth)
{
    gn_session *session = b->sessions[s];
    const int32_t *ids = b->ids + s * b->n_ids;
    size_t length = gn_session_length(session);
    if (length > depth) {
        return gn_session_truncate(session, depth);
    }
    return length < depth ? gn_session_eval(session, ids + length, depth - length, NULL, 0) : GN_OK;
}

static gn_status decode(bench *b, const test *t, size_t n)
{
    int32_t ids[MAX_BATCH];
    for (size_t i = 0; i < n; i++) {
        for (size_t s = 0; s < t->batch; s++) {
            ids[s] = b->ids[s * b->n_ids + t->depth + i];
        }
        GN_TRY(gn_session_eval_many(b->sessions, ids, t->batch, b->logits));
    }
    return GN_OK;
}

/* One run of a test over n tokens a sequence; *rate in tokens a second over all sequences. */
static gn_status run_once(bench *b, const test *t, size_t n, double *rate)
{
    for (size_t s = 0; s < t->batch; s++) {
        GN_TRY(bring_to_depth(b, s, t->depth));
    }
    uint64_t start = gn_os_now_ns();
    if (t->decode) {
        GN_TRY(decode(b, t, n));
    } else {
        GN_TRY(gn_session_eval(b->sessions[0], b->ids + t->depth, n, b->logits, 1));
    }
    uint64_t ns = gn_os_now_ns() - start;
    *rate = (double)(n * t->batch) / ((double)(ns > 0 ? ns : 1) * 1e-9);
    return GN_OK;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x;
    double b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(const double *sorted, size_t n)
{
    return n % 2 != 0 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static void print_test(bench *b, const test *t)
{
    size_t n = (size_t)b->options->repeat;
    const char *name = t->decode ? "decode" : "prefill";
    if (!b->options->json) {
        (void)printf("%-8s %6zu %6zu %6zu %10.2f %10.2f %10.2f\n", name, t->n, t->batch, t->depth,
                     median(t->rates, n), t->rates[0], t->rates[n - 1]);
        (void)fflush(stdout);
        return;
    }
    gn_cli_json *json = &b->json;
    gn_cli_json_object(json, NULL);
    gn_cli_json_str(json, "test", name);
    gn_cli_json_uint(json, "n", t->n);
    gn_cli_json_uint(json, "batch", t->batch);
    gn_cli_json_uint(json, "depth", t->depth);
    gn_cli_json_str(json, "kv", gn_cli_kv_name(&b->options->model));
    gn_cli_json_object(json, "tok_s");
    gn_cli_json_real(json, "median", median(t->rates, n), 3);
    gn_cli_json_real(json, "min", t->rates[0], 3);
    gn_cli_json_real(json, "max", t->rates[n - 1], 3);
    gn_cli_json_end(json);
    gn_cli_json_end(json);
}

/* --- the tests of one depth --- */

static void add_test(bench *b, bool is_decode, int64_t n, int64_t batch, int64_t depth)
{
    if (n > 0) {
        b->tests[b->n_tests] = (test){is_decode, (size_t)n, (size_t)batch, (size_t)depth,
                                      b->rates + b->n_tests * (size_t)b->options->repeat};
        b->n_tests++;
    }
}

static gn_status warm_up(bench *b, const test *t)
{
    size_t most = t->decode ? WARM_UP_DECODE : WARM_UP_PREFILL;
    double ignored;
    return run_once(b, t, t->n < most ? t->n : most, &ignored);
}

static gn_status run_depth(bench *b, int64_t depth)
{
    const options *o = b->options;
    b->n_tests = 0;
    for (size_t i = 0; i < o->prompt.n; i++) {
        add_test(b, false, o->prompt.v[i], 1, depth);
    }
    for (size_t i = 0; i < o->generate.n * o->batch.n; i++) {
        add_test(b, true, o->generate.v[i / o->batch.n], o->batch.v[i % o->batch.n], depth);
    }
    size_t repeat = (size_t)o->repeat;
    gn_status status = GN_OK;
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "bench", "runs", (repeat + 1) * b->n_tests, 0);
    for (size_t i = 0; status == GN_OK && i < (repeat + 1) * b->n_tests; i++) {
        const test *t = &b->tests[i % b->n_tests];
        size_t round = i / b->n_tests;
        gn_cli_progress_at(&progress, i);
        status = not_interrupted();
        if (status == GN_OK) {
            status = round == 0 ? warm_up(b, t) : run_once(b, t, t->n, &t->rates[round - 1]);
        }
    }
    gn_cli_progress_end(&progress);
    for (size_t i = 0; status == GN_OK && i < b->n_tests; i++) {
        const test *t = &b->tests[i];
        qsort(t->rates, repeat, sizeof *t->rates, ascending);
        print_test(b, t);
        if (t->decode && t->batch == 1 && depth == 0 && b->decode_rate <= 0.0) {
            b->decode_rate = median(t->rates, repeat);
        }
    }
    uint64_t bytes = gn_os_memory_usage().private_bytes;
    b->private_bytes = bytes > b->private_bytes ? bytes : b->private_bytes;
    return status;
}

/* --- cold start, memory, bandwidth --- */

/* From the start of a process of this program to its first token of text, all files in the page cache.
 * Left out for a checkpoint without a tokenizer. */
static gn_status cold_start(bench *b)
{
    const gn_cli_model_args *m = &b->options->model;
    static const char *const caches[] = {"auto", "read", "off"}; /* GN_CLI_CACHE_CHOICES */
    char threads[16];
    (void)snprintf(threads, sizeof threads, "%d", b->info.threads);
    const char *const argv[] = {GN_OS_SELF,
                                "run",
                                "-m",
                                m->path,
                                "-t",
                                threads,
                                "--activations",
                                m->activations == GN_ACTIVATIONS_F32 ? "f32" : "int8",
                                "--cache",
                                caches[m->cache],
                                "--kv",
                                gn_cli_kv_choices[m->kv],
                                "--raw",
                                "-p",
                                "The quick brown fox",
                                "-n",
                                "1",
                                "--temp",
                                "0",
                                NULL};
    size_t repeat = (size_t)b->options->repeat;
    double *seconds = b->rates;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    if (gn_model_tokenize(b->model, "a", 1, 0, &ids, &n_ids) != GN_OK) {
        return GN_OK;
    }
    gn_release(ids);
    for (size_t i = 0; i <= repeat; i++) { /* the first is not counted */
        uint64_t ns = 0;
        GN_TRY(gn_os_first_output(argv, &ns));
        seconds[i > 0 ? i - 1 : 0] = (double)ns * 1e-9;
    }
    qsort(seconds, repeat, sizeof *seconds, ascending);
    if (!b->options->json) {
        (void)printf("cold start %.3f s from the start of the process to the first token\n",
                     median(seconds, repeat));
        return GN_OK;
    }
    gn_cli_json_object(&b->json, NULL);
    gn_cli_json_str(&b->json, "test", "cold_start");
    gn_cli_json_real(&b->json, "seconds", median(seconds, repeat), 6);
    gn_cli_json_real(&b->json, "min", seconds[0], 6);
    gn_cli_json_real(&b->json, "max", seconds[repeat - 1], 6);
    gn_cli_json_end(&b->json);
    return GN_OK;
}

/* Most memory of this process alone over the tests, and pages of mapped files, which processes share. */
static void memory(bench *b)
{
    gn_os_usage usage = gn_os_memory_usage();
    if (!b->options->json) {
        char one[GN_CLI_HUMAN];
        char two[GN_CLI_HUMAN];
        (void)printf("memory     %s private, %s shared (mapped files)\n",
                     gn_cli_human_bytes(b->private_bytes, one),
                     gn_cli_human_bytes(usage.shared_bytes, two));
        return;
    }
    gn_cli_json_object(&b->json, NULL);
    gn_cli_json_str(&b->json, "test", "memory");
    gn_cli_json_uint(&b->json, "private_bytes", b->private_bytes);
    gn_cli_json_uint(&b->json, "shared_bytes", usage.shared_bytes);
    gn_cli_json_uint(&b->json, "peak_bytes", usage.peak_bytes);
    gn_cli_json_end(&b->json);
}

/* What the machine reads a second, and how much of that decode of one sequence uses for weights. */
static gn_status bandwidth(bench *b)
{
    double read = 0.0;
    GN_TRY(gn_tensor_read_bandwidth(b->info.threads, &read));
    double share = (double)b->info.read_bytes_per_tok * b->decode_rate / read;
    if (!b->options->json) {
        char one[GN_CLI_HUMAN];
        char two[GN_CLI_HUMAN];
        (void)printf("bandwidth  %s/s measured, %d threads; decode reads %s of weights a token",
                     gn_cli_human_bytes((uint64_t)read, one), b->info.threads,
                     gn_cli_human_bytes(b->info.read_bytes_per_tok, two));
        (void)(b->decode_rate > 0.0 ? printf(": %.0f %%\n", 100.0 * share) : printf("\n"));
        return GN_OK;
    }
    gn_cli_json_object(&b->json, NULL);
    gn_cli_json_str(&b->json, "test", "bandwidth");
    gn_cli_json_real(&b->json, "read_bytes_s", read, 0);
    gn_cli_json_uint(&b->json, "weight_bytes_per_tok", b->info.read_bytes_per_tok);
    if (b->decode_rate > 0.0) {
        gn_cli_json_real(&b->json, "share", share, 4);
    } else {
        gn_cli_json_null(&b->json, "share");
    }
    gn_cli_json_end(&b->json);
    return GN_OK;
}

/* --- the whole --- */

static size_t most(const gn_cli_ints *list)
{
    int64_t best = 0;
    for (size_t i = 0; i < list->n; i++) {
        best = list->v[i] > best ? list->v[i] : best;
    }
    return (size_t)best;
}

static void print_head(bench *b)
{
    char cpu[GN_OS_CPU_NAME];
    (void)gn_os_cpu_name(cpu);
    if (!b->options->json) {
        (void)printf("%s, %s, %d threads, level %s, KV %s, commit %s\n%s\n\n",
                     b->options->model.path, b->info.architecture, b->info.threads,
                     b->info.cpu_level, gn_cli_kv_name(&b->options->model), gn_version_commit(),
                     cpu);
        (void)printf("%-8s %6s %6s %6s %10s %10s %10s  tok/s\n", "test", "n", "batch", "depth",
                     "median", "min", "max");
        return;
    }
    gn_cli_json *json = &b->json;
    gn_cli_json_init(json, stdout);
    gn_cli_json_object(json, NULL);
    gn_cli_json_str(json, "model", b->options->model.path);
    gn_cli_json_str(json, "architecture", b->info.architecture);
    gn_cli_json_str(json, "cpu", cpu);
    gn_cli_json_str(json, "level", b->info.cpu_level);
    gn_cli_json_uint(json, "cache_bytes", b->info.cache_bytes);
    gn_cli_json_str(json, "version", gn_version());
    gn_cli_json_str(json, "commit", gn_version_commit());
    gn_cli_json_array(json, "results");
}

static gn_status make_buffers(bench *b, size_t n_ids)
{
    const options *o = b->options;
    size_t most_tests = o->prompt.n + o->generate.n * o->batch.n;
    b->n_ids = n_ids;
    b->ids = gn_alloc_array(n_ids, most(&o->batch) * sizeof *b->ids);
    b->tests = gn_calloc(most_tests, sizeof *b->tests);
    b->rates = gn_alloc_array(most_tests * (size_t)o->repeat, sizeof *b->rates);
    b->logits = gn_alloc_array(most(&o->batch) * (size_t)b->info.n_vocab, sizeof *b->logits);
    if (b->ids == NULL || b->tests == NULL || b->rates == NULL || b->logits == NULL) {
        return gn_alloc_failed();
    }
    gn_rng rng = {1};
    for (size_t i = 0; i < n_ids * most(&o->batch); i++) {
        b->ids[i] = (int32_t)(gn_rng_next(&rng) % (uint64_t)b->info.n_vocab);
    }
    return GN_OK;
}

/* Open the model as its later starts find it: with its packed weights in their cache file. */
static gn_status open_model(bench *b)
{
    GN_TRY(gn_cli_model_open(&b->options->model, &b->model));
    if (!gn_model_cache_wait(b->model, 0, NULL, NULL)) {
        gn_cli_model_close(b->model);
        b->model = NULL;
        GN_TRY(not_interrupted());
        GN_TRY(gn_cli_model_open(&b->options->model, &b->model));
    }
    b->info = gn_model_get_info(b->model);
    return GN_OK;
}

static gn_status bench_run(bench *b)
{
    const options *o = b->options;
    size_t longest = most(&o->prompt) > most(&o->generate) ? most(&o->prompt) : most(&o->generate);
    size_t n_ctx = most(&o->depth) + (longest > 0 ? longest : 1);
    gn_session_options session_options = {.n_ctx = (int32_t)n_ctx};
    GN_TRY(open_model(b));
    if (!b->info.is_encoder && n_ctx > (size_t)b->info.n_ctx_train) {
        (void)fprintf(stderr,
                      "ganglion bench: %zu tokens are more than the context of %d that the model "
                      "was made for\n",
                      n_ctx, b->info.n_ctx_train);
    }
    GN_TRY(make_buffers(b, n_ctx));
    for (size_t i = 0; i < most(&o->batch); i++) {
        GN_TRY(gn_session_create(b->model, &session_options, &b->sessions[i]));
    }
    print_head(b);
    for (size_t i = 0; i < o->depth.n; i++) {
        GN_TRY(run_depth(b, o->depth.v[i]));
    }
    b->info = gn_model_get_info(b->model); /* decode may have settled on fewer threads */
    if (!o->no_extras) {
        GN_TRY(cold_start(b));
    }
    memory(b);
    if (!o->no_extras) {
        GN_TRY(bandwidth(b));
    }
    if (o->json) {
        gn_cli_json_end(&b->json);
        gn_cli_json_int(&b->json, "threads", b->info.threads);
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
    gn_free(b.tests);
    gn_free(b.rates);
    gn_free(b.logits);
    gn_cli_model_close(b.model);
    return status;
}

const gn_cli_command gn_cli_cmd_bench = {
    .name = "bench",
    .summary = "tokens a second, start-up time, memory, share of the memory's bandwidth",
    .usage = "-m MODEL [options]",
    .details =
        "Prefill and decode at each depth, decode for each batch size; tok/s of a batch is the "
        "sum\n"
        "over its sequences. cold start is the time from the start of a process to its first\n"
        "token, with the model's file in the page cache. The share of bandwidth is what decode\n"
        "of one sequence at depth 0 reads of weights, against plain reads by as many threads.",
    .example = "ganglion bench -m smollm2-135m -p 512 -n 128 -b 1,8 -t 2 --json",
    .options = rows,
    .n_options = GN_COUNTOF(rows),
    .options_bytes = sizeof(options),
    .defaults = &defaults,
    .run = run,
};
