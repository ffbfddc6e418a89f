/* Every thread sums its share of one anonymous buffer, with the kernel that does nothing else. The buffer is written
 * first, since untouched pages are all one page of zeros. Passes are timed one by one and the best counts:
 * whatever else runs on the machine can only take away. */
#include "tensor/bandwidth.h"

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/pool.h"

#include <stdatomic.h>
#include <stdint.h>

#define MOST_BYTES ((size_t)1 << 30)
#define PIECE      ((size_t)1 << 20) /* bytes a thread takes at a time */
#define PASSES     7

#define PIECE_WORDS (PIECE / sizeof(uint32_t))

typedef struct probe {
    const gn_kernels *k;
    uint32_t *words;
    atomic_uint sum; /* keeps the reads from being left out */
} probe;

static void fill(void *ctx, size_t begin, size_t end, int worker)
{
    const probe *p = ctx;
    (void)worker;
    for (size_t i = begin * PIECE_WORDS; i < end * PIECE_WORDS; i++) {
        p->words[i] = (uint32_t)i;
    }
}

static void sum(void *ctx, size_t begin, size_t end, int worker)
{
    probe *p = ctx;
    uint32_t all = 0;
    (void)worker;
    p->k->sum_u32(p->words + begin * PIECE_WORDS, (end - begin) * PIECE_WORDS, &all);
    (void)atomic_fetch_add_explicit(&p->sum, all, memory_order_relaxed);
}

gn_status gn_tensor_read_bandwidth(int threads, double *bytes_s)
{
    uint64_t room = gn_os_free_memory() / 4;
    size_t n = (room < MOST_BYTES ? (size_t)room : MOST_BYTES) / PIECE;
    gn_os_pool *pool = NULL;
    GN_TRY(gn_os_pool_create(threads > 0 ? threads : gn_os_cpu_count(), &pool));
    probe p = {.k = gn_kernels_get(), .words = gn_alloc_aligned(n, PIECE)};
    gn_status status = p.words != NULL ? GN_OK : gn_alloc_failed();
    double best = 0.0;
    if (status == GN_OK) {
        gn_os_prefer_large_pages(p.words, n * PIECE);
        gn_os_pool_run(pool, n, 1, fill, &p);
    }
    for (int pass = 0; status == GN_OK && pass < PASSES; pass++) {
        uint64_t start = gn_os_now_ns();
        gn_os_pool_run(pool, n, 1, sum, &p);
        uint64_t ns = gn_os_now_ns() - start;
        double rate = (double)(n * PIECE) / ((double)(ns > 0 ? ns : 1) * 1e-9);
        best = rate > best ? rate : best;
    }
    gn_free_aligned(p.words);
    gn_os_pool_destroy(pool);
    if (status == GN_OK) {
        *bytes_s = best;
    }
    return status;
}
