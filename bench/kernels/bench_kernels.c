/* How fast weights go through the product kernels, alone on one core: every quantized type, 1 .. 64 activation
 * rows; straight from packed panels, unpacking them first, and from the file's blocks; weights in the
 * second-level cache and in memory.
 *
 *   bench_kernels [--cpu LEVEL] [--type GLOB] [--rows LIST] [--ms MILLISECONDS] [--mib SIZE]
 *
 * A line a case: cycles a weight row of 1536 elements takes, its bytes a cycle, GB/s, multiply-adds a cycle.
 * Cycles are those of the core: the time of a case times the clock, which a chain of dependent multiplications
 * measures right before it, as the time stamp counter ticks at a rate of its own. */
#include "cpu/features.h"
#include "kernels/kernels.h"
#include "os/clock.h"
#include "tensor/dtype.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { K = 1536, PIECE = 512, PANEL_ROWS = 16, MAX_M = 64, MAX_LIST = 16 };

typedef struct type_row {
    const char *name;
    gn_packed_type type;
    size_t len;   /* of the file's blocks */
    size_t bytes; /* of the file's blocks */
    size_t group;
    int zero;
    bool has_min;
} type_row;

static const type_row types[] = {
#define TYPE_ROW(type, len, bytes, group, zero, has_min)                                           \
    {#type, GN_PACKED_##type, len, bytes, group, zero, (has_min) != 0},
    GN_PANEL_LIST(TYPE_ROW)
#undef TYPE_ROW
};

typedef struct options {
    gn_cpu_level level;
    const char *match;
    size_t rows[MAX_LIST];
    size_t n_rows;
    double ns;
    size_t memory_bytes;
} options;

/* What the products of one case read and write. */
typedef struct buffers {
    uint8_t *weights;
    size_t bytes;
    int8_t a[MAX_M * K];
    float a_scale[MAX_M * K / 32];
    int32_t a_sum[MAX_M * K / 16];
    uint8_t q[PIECE * PANEL_ROWS];
    float scale[PIECE / 16 * PANEL_ROWS];
    float min[PIECE / 16 * PANEL_ROWS];
    float y[MAX_M * PANEL_ROWS];
} buffers;

typedef enum form { PACKED, UNPACKED, BLOCKS, N_FORMS } form;

typedef struct bench_case {
    const gn_kernels *kernels;
    const type_row *type;
    gn_k_panel_fn *panel;
    buffers *b;
    size_t m;
    size_t n_panels;
    form form;
} bench_case;

static gn_k_panel_fn *panel_of(const gn_kernels *k, gn_packed_type type)
{
    switch (type) {
#define PANEL_CASE(type, len, bytes, group, zero, has_min)                                         \
    case GN_PACKED_##type: return k->panel_##type;
        GN_PANEL_LIST(PANEL_CASE)
#undef PANEL_CASE
    default: return NULL;
    }
}

static size_t panel_bytes(const bench_case *c)
{
    return c->form != BLOCKS ? gn_packed_bytes(c->type->type, K)
                             : K / c->type->len * c->type->bytes * PANEL_ROWS;
}

/* One panel by way of the panel form, in pieces that stay in the first-level cache, as products of many rows
 * take it: from the file's blocks, or from a packed panel. */
static void multiply_pieces(const bench_case *c, const uint8_t *p, const uint8_t *ahead)
{
    buffers *b = c->b;
    const type_row *type = c->type;
    size_t row_bytes = K / type->len * type->bytes;
    size_t piece_bytes = PIECE / type->len * type->bytes;
    gn_k_dot_panel_fn *dot =
        type->group == 16 ? c->kernels->dot_panel_g16 : c->kernels->dot_panel_g32;
    for (size_t first = 0; first < K; first += PIECE) {
        if (c->form == BLOCKS) {
            c->panel(p, row_bytes, PANEL_ROWS, PIECE, ahead, b->q, b->scale, b->min);
            p += piece_bytes;
            ahead += PANEL_ROWS * piece_bytes;
        } else {
            c->kernels->unpack_packed(type->type, PIECE, p + gn_packed_bytes(type->type, first),
                                      b->q, b->scale, b->min);
        }
        dot(PIECE, b->q, b->scale, type->has_min ? b->min : NULL, type->zero, c->m, b->a + first, K,
            b->a_scale + first / 32, b->a_sum + first / 16, b->y, PANEL_ROWS, first != 0);
    }
}

static void walk(const bench_case *c)
{
    size_t stride = panel_bytes(c);
    const uint8_t *p = c->b->weights;
    for (size_t i = 0; i < c->n_panels; i++, p += stride) {
        if (c->form == PACKED) {
            c->kernels->dot_packed(c->type->type, K, p, c->m, c->b->a, K, c->b->a_scale,
                                   c->b->a_sum, c->b->y, PANEL_ROWS);
        } else {
            multiply_pieces(c, p, i + 1 < c->n_panels ? p + stride : p);
        }
    }
}

/* Cycles a nanosecond: multiplications that wait for one another, 3 cycles each. */
static double measure_clock(void)
{
    enum { ROUNDS = 1 << 16 };
    double best = 0;
    for (int run = 0; run < 3; run++) {
        uint64_t start = gn_os_now_ns();
        uint64_t x = start;
        for (int i = 0; i < ROUNDS; i++) {
#if GN_ARCH_X86
            __asm__ volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0" : "+r"(x));
#else
            __asm__ volatile("mul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0\n\tmul %0, %0, %0"
                             : "+r"(x));
#endif
        }
        double clock = 12.0 * ROUNDS / (double)(gn_os_now_ns() - start);
        best = clock > best ? clock : best;
    }
    return best;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of a walk: the first quartile of walks, as other load only ever adds, that take at least so long together, after a first one. */
static double time_walks(const bench_case *c, double ns)
{
    enum { MAX_WALKS = 1001 };
    static double times[MAX_WALKS];
    walk(c);
    size_t n = 0;
    double total = 0;
    while (n < MAX_WALKS && (n < 3 || total < ns)) {
        uint64_t start = gn_os_now_ns();
        walk(c);
        times[n] = (double)(gn_os_now_ns() - start);
        total += times[n++];
    }
    qsort(times, n, sizeof *times, compare_doubles);
    return times[n / 4];
}

static void run_case(bench_case *c, const char *where, size_t bytes, double ns)
{
    c->n_panels = bytes / panel_bytes(c);
    double clock = measure_clock();
    double panel_ns = time_walks(c, ns) / (double)c->n_panels;
    double row_cycles = panel_ns * clock / PANEL_ROWS;
    double row_bytes = (double)panel_bytes(c) / PANEL_ROWS;
    static const char *const forms[N_FORMS] = {"packed", "unpack", "blocks"};
    printf("%-7s %-7s %-6s %3zu %10.1f %8.2f %8.2f %8.1f\n", c->type->name, forms[c->form], where,
           c->m, row_cycles, row_bytes / row_cycles, row_bytes / row_cycles * clock,
           (double)(K * c->m) / row_cycles);
    (void)fflush(stdout);
}

static void run_type(const options *o, const gn_kernels *kernels, buffers *b, const type_row *type)
{
    bench_case c = {.kernels = kernels, .type = type, .b = b};
    c.panel = panel_of(kernels, type->type);
    for (int f = 0; f < N_FORMS; f++) {
        for (size_t i = 0; i < o->n_rows; i++) {
            c.m = o->rows[i];
            c.form = (form)f;
            run_case(&c, "L2", (size_t)768 << 10, o->ns);
            run_case(&c, "memory", o->memory_bytes, o->ns);
        }
    }
}

static int usage(void)
{
    fputs("usage: bench_kernels [--cpu LEVEL] [--type GLOB] [--rows LIST] [--ms N] [--mib N]\n",
          stderr);
    return 2;
}

static bool read_rows(const char *text, options *o)
{
    o->n_rows = 0;
    for (char *end; o->n_rows < MAX_LIST; text = end + 1) {
        o->rows[o->n_rows] = strtoul(text, &end, 10);
        if (end == text || o->rows[o->n_rows] < 1 || o->rows[o->n_rows] > MAX_M) {
            return false;
        }
        o->n_rows++;
        if (*end != ',') {
            return *end == '\0';
        }
    }
    return false;
}

static bool read_level(const char *name, gn_cpu_level *out)
{
    for (gn_cpu_level level = GN_CPU_REF; level < GN_CPU_N_LEVELS; level++) {
        if (strcmp(gn_cpu_level_name(level), name) == 0 && gn_cpu_has(level)) {
            *out = level;
            return true;
        }
    }
    return false;
}

static bool read_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        bool good = false;
        if (value == NULL) {
            return false;
        }
        if (strcmp(argv[i], "--cpu") == 0) {
            good = read_level(value, &o->level);
        } else if (strcmp(argv[i], "--type") == 0) {
            o->match = value;
            good = true;
        } else if (strcmp(argv[i], "--rows") == 0) {
            good = read_rows(value, o);
        } else if (strcmp(argv[i], "--ms") == 0) {
            o->ns = strtod(value, NULL) * 1e6;
            good = o->ns > 0;
        } else if (strcmp(argv[i], "--mib") == 0) {
            o->memory_bytes = (size_t)strtoul(value, NULL, 10) << 20;
            good = o->memory_bytes > 0;
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    options o = {.level = gn_cpu_detect(),
                 .match = "*",
                 .rows = {1, 2, 3, 4, 6, 8, 12, 16},
                 .n_rows = 8,
                 .ns = 30e6,
                 .memory_bytes = (size_t)256 << 20};
    if (!read_options(argc, argv, &o)) {
        return usage();
    }
    static buffers b;
    b.bytes = o.memory_bytes;
    b.weights = mmap(NULL, b.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.weights == MAP_FAILED) {
        fputs("bench_kernels: no memory for the weights\n", stderr);
        return 1;
    }
    (void)madvise(b.weights, b.bytes, MADV_HUGEPAGE);
    memset(b.weights, 0x35, b.bytes); /* as half-precision factors: 0.3 */
    for (size_t i = 0; i < sizeof b.a; i++) {
        b.a[i] = (int8_t)((int)(i * 37 % 255) - 127);
    }
    gn_kernels kernels;
    gn_kernels_for_level(o.level, &kernels);
    printf("level %s, rows of %d elements, clock %.2f GHz\n", gn_cpu_level_name(o.level), K,
           measure_clock());
    printf("%-7s %-7s %-6s %3s %10s %8s %8s %8s\n", "type", "form", "where", "m", "cycles/row",
           "B/cycle", "GB/s", "MAC/cyc");
    for (size_t t = 0; t < GN_COUNTOF(types); t++) {
        if (fnmatch(o.match, types[t].name, 0) == 0) {
            run_type(&o, &kernels, &b, &types[t]);
        }
    }
    (void)munmap(b.weights, b.bytes);
    return 0;
}
