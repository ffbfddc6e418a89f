/* kerncheck: every row of the op table against its reference, and its speed.
 *
 *   kerncheck [--cpu LEVEL] [--match GLOB] [--seed N] [--bench]
 *
 * Prints one line a row. Exit 0: all rows that can run here agree with their reference; 1: one does
 * not, or has no check; 2: usage. */
#include "kerncheck.h"

#include "os/clock.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if GN_ARCH_X86
#include <x86intrin.h>
#endif

static const kc_checker *const families[] = {
    kc_act_checkers,    kc_attention_checkers, kc_paged_checkers, kc_dot_checkers, kc_norm_checkers,
    kc_packed_checkers, kc_quant_checkers,     kc_rope_checkers,  kc_vec_checkers,
};

/* In the order of kernels.inc. A variant's class is that of its op, the row of "ref" before it. */
static const kc_row rows[] = {
#define GN_KERNEL_OP(op, CLASS)                                                                    \
    {#op, "ref", GN_CPU_REF, #CLASS, (kc_fn *)gn_k_##op##_ref, (kc_fn *)gn_k_##op##_ref},
#define GN_KERNEL(op, variant, level)                                                              \
    {#op, #variant, level, NULL, (kc_fn *)gn_k_##op##_ref, (kc_fn *)gn_k_##op##_##variant},
#include "kernels/kernels.inc"
#undef GN_KERNEL_OP
#undef GN_KERNEL
};

/* Random numbers: splitmix64. */
static uint64_t rng_state;

uint32_t kc_u32(void)
{
    rng_state += 0x9e3779b97f4a7c15u;
    uint64_t z = rng_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

uint32_t kc_below(uint32_t n)
{
    return (uint32_t)((uint64_t)kc_u32() * n >> 32);
}

float kc_uniform(void)
{
    return (float)((int32_t)kc_u32() >> 8) * 0x1p-23f;
}

void kc_fill_bytes(void *p, size_t n)
{
    uint8_t *bytes = p;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)kc_u32();
    }
}

void kc_fill_uniform(float *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = kc_uniform();
    }
}

void kc_fill_special(float *p, size_t n)
{
    static const float special[] = {0.0f,    -0.0f,    0x1p-149f, -0x1p-140f, 0x1p-126f,
                                    3.0e38f, -3.0e38f, INFINITY,  -INFINITY,  NAN,
                                    1.0f,    -1.0f,    0x1p-101f, 65504.0f,   88.8f};
    for (size_t i = 0; i < n; i++) {
        p[i] = kc_below(4) == 0 ? special[kc_below((uint32_t)GN_COUNTOF(special))] : kc_uniform();
    }
}

void kc_fill_sparse(float *p, size_t n, bool special)
{
    static const float sizes[] = {1.0f, 0.01f, 30.0f, 0x1p-70f, 0x1p-140f, 0.0f};
    static const float rare[] = {INFINITY, -INFINITY, NAN, 3.0e38f, -3.0e38f};
    for (size_t i = 0; i < n; i++) {
        float size = kc_below(4) == 0 ? sizes[kc_below((uint32_t)GN_COUNTOF(sizes))] : 1.0f;
        p[i] = kc_uniform() * size;
        if (special && kc_below(200) == 0) {
            p[i] = rare[kc_below((uint32_t)GN_COUNTOF(rare))];
        }
    }
}

/* Guarded memory. */
#define MARGIN 64
#define FILL   0xa5
static struct {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *user;
} blocks[64];
static size_t n_blocks;

void *kc_alloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + MARGIN + page - 1) / page * page;
    uint8_t *map =
        mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || n_blocks == GN_COUNTOF(blocks) ||
        mprotect(map + body, page, PROT_NONE) != 0) {
        fprintf(stderr, "kerncheck: guarded memory: %s\n", strerror(errno));
        exit(2);
    }
    memset(map, FILL, body);
    blocks[n_blocks].map = map;
    blocks[n_blocks].map_bytes = body + page;
    blocks[n_blocks].user = map + body - bytes;
    return blocks[n_blocks++].user;
}

bool kc_release(const kc_row *row)
{
    bool clean = true;
    for (size_t i = 0; i < n_blocks; i++) {
        for (size_t j = 1; j <= MARGIN; j++) {
            clean = clean && *(blocks[i].user - j) == FILL;
        }
        munmap(blocks[i].map, blocks[i].map_bytes);
    }
    n_blocks = 0;
    return clean || kc_differs(row, "memory in front of a buffer was written to");
}

size_t kc_strided(size_t n_rows, size_t stride, size_t used)
{
    return n_rows == 0 ? 0 : (n_rows - 1) * stride + used;
}

float *kc_bench_floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    if (p == NULL) {
        fprintf(stderr, "kerncheck: bench memory: %s\n", strerror(errno));
        exit(2);
    }
    kc_fill_uniform(p, n);
    return p;
}

/* Comparison. */
bool kc_differs(const kc_row *row, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s %s: ", row->op, row->variant);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

bool kc_same_f32(const kc_row *row, const char *what, const float *found, const float *expected,
                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(found + i, expected + i, sizeof *found) != 0 &&
            !(isnan(found[i]) && isnan(expected[i]))) {
            return kc_differs(row, "%s[%zu]: found %a, expected %a", what, i, (double)found[i],
                              (double)expected[i]);
        }
    }
    return true;
}

bool kc_same_bytes(const kc_row *row, const char *what, const void *found, const void *expected,
                   size_t n)
{
    const uint8_t *f = found;
    const uint8_t *e = expected;
    for (size_t i = 0; i < n; i++) {
        if (f[i] != e[i]) {
            return kc_differs(row, "%s, byte %zu: found %d, expected %d", what, i, f[i], e[i]);
        }
    }
    return true;
}

/* Timing: the best of many short runs, so that some escape other load on the machine; in nanoseconds
 * and in cycles of the time stamp counter, which may tick slower than the core. */
static uint64_t read_cycles(void)
{
#if GN_ARCH_X86
    return __rdtsc();
#else
    return 0;
#endif
}

typedef struct timing {
    double ns;
    double cycles;
} timing;

static timing best_of_runs(void (*call)(void *ctx), void *ctx)
{
    timing best = {INFINITY, INFINITY};
    for (int run = 0; run < 150; run++) {
        uint64_t start_ns = gn_os_now_ns();
        uint64_t start = read_cycles();
        int n = 0;
        do {
            call(ctx);
            n++;
        } while (gn_os_now_ns() - start_ns < 400000);
        best.cycles = fmin(best.cycles, (double)(read_cycles() - start) / n);
        best.ns = fmin(best.ns, (double)(gn_os_now_ns() - start_ns) / n);
    }
    return best;
}

static void print_timing(const kc_row *row, const char *label, const timing *best)
{
    printf("  %-20s %-12s %-22s %12.1f ns", row->op, row->variant, label, best->ns);
}

void kc_time(const kc_row *row, const char *label, void (*call)(void *ctx), void *ctx, double bytes,
             double macs)
{
    timing best = best_of_runs(call, ctx);
    print_timing(row, label, &best);
    if (bytes > 0) {
        printf(" %8.2f GB/s", bytes / best.ns);
    }
    if (macs > 0 && best.cycles > 0) {
        printf(" %7.1f MAC/cycle", macs / best.cycles);
    }
    putchar('\n');
}

void kc_time_elements(const kc_row *row, const char *label, void (*call)(void *ctx), void *ctx,
                      double elements)
{
    timing best = best_of_runs(call, ctx);
    print_timing(row, label, &best);
    printf(" %8.3f ns/element %8.3f cycles/element\n", best.ns / elements, best.cycles / elements);
}

static const kc_checker *find_checker(const char *op)
{
    for (size_t f = 0; f < GN_COUNTOF(families); f++) {
        for (const kc_checker *c = families[f]; c->op != NULL; c++) {
            if (fnmatch(c->op, op, 0) == 0) {
                return c;
            }
        }
    }
    return NULL;
}

static bool run_row(const kc_row *row, bool bench)
{
    const kc_checker *checker = find_checker(row->op);
    if (checker == NULL) {
        return kc_differs(row, "has no check");
    }
    bool good = checker->check(row);
    printf("%-4s %-20s %-12s %s\n", good ? "ok" : "FAIL", row->op, row->variant, row->exactness);
    if (good && bench && checker->bench != NULL) {
        checker->bench(row);
    }
    (void)fflush(stdout);
    return good;
}

static int usage(void)
{
    fputs("usage: kerncheck [--cpu LEVEL] [--match GLOB] [--seed N] [--bench]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    gn_cpu_level limit = gn_cpu_detect();
    const char *match = "*";
    bool bench = false;
    uint64_t seed = gn_os_now_ns();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bench") == 0) {
            bench = true;
        } else if (i + 1 == argc) {
            return usage();
        } else if (strcmp(argv[i], "--match") == 0) {
            match = argv[++i];
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--cpu") == 0) {
            limit = GN_CPU_REF;
            while (limit < GN_CPU_N_LEVELS && strcmp(gn_cpu_level_name(limit), argv[i + 1]) != 0) {
                limit++;
            }
            i++;
            if (!gn_cpu_has(limit)) {
                fprintf(stderr, "kerncheck: level %s can't run here\n", argv[i]);
                return 2;
            }
        } else {
            return usage();
        }
    }
    printf("kerncheck --cpu %s --seed %llu\n", gn_cpu_level_name(limit), (unsigned long long)seed);
    int failed = 0;
    kc_row row = {0};
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        const char *exactness = rows[i].exactness != NULL ? rows[i].exactness : row.exactness;
        row = rows[i];
        row.exactness = exactness;
        if (fnmatch(match, row.op, 0) != 0) {
            continue;
        }
        if (row.level > limit) {
            printf("skip %-20s %-12s needs %s\n", row.op, row.variant,
                   gn_cpu_level_name(row.level));
            continue;
        }
        rng_state = seed;
        failed += run_row(&row, bench) ? 0 : 1;
    }
    if (failed != 0) {
        fprintf(stderr, "kerncheck: %d rows failed; repeat with --seed %llu\n", failed,
                (unsigned long long)seed);
    }
    return failed != 0 ? 1 : 0;
}
