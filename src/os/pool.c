/* How a loop runs. Its chunks are dealt to one lane per thread in use, in order; a thread takes the
 * chunks of its own lane from the front, so that it reads one run of memory, then steals from the backs of
 * the others' lanes. A lane is one 64-bit word {loop number, first chunk, last chunk}: taking a chunk is
 * one compare-and-swap, and a thread that slept through a loop can't take a chunk of a later one by an old
 * word. A loop is done when all its chunks are, not when all threads have looked at it: a thread that the
 * system does not run holds up a loop only if it was stopped in the middle of a chunk.
 *
 * Waiting. A worker without work spins for SPIN_NS, so that loops close to each other start in well under a
 * microsecond, then sleeps on a futex of its own. At the end of a loop the caller spins for LATE_NS; chunks
 * are much shorter, so what is then missing sits on a processor that another program has. The caller lends
 * its own: it moves the late worker there, sleeps until the loop is done, and sends the worker back, bound
 * to where it was, since the scheduler would else leave two threads of the pool on one processor and the
 * other program alone on the next. The bond ends after RELEASE_LOOPS loops without a late worker
 * (docs/adr/0014-waiting.md has what was measured). Workers are never bound otherwise, the caller never.
 *
 * Invariants: (1) fn, ctx, n_items and grain change only while no chunk is held: a thread reads them only
 * between taking a chunk and reporting it done; (2) `loop` is advanced by the caller alone, after the lanes
 * are filled; (3) `left` counts the chunks of the current loop not reported done; it falls to 0 once. */
#include "os/pool.h"

#include "base/alloc.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/quota.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define spin_pause() _mm_pause()
#elif defined(__aarch64__)
#define spin_pause() __asm__ volatile("yield")
#else
#define spin_pause() ((void)0)
#endif

#define SPIN_NS       100000u /* a worker waits awake for the next loop */
#define LATE_NS       50000u  /* the caller waits awake for the last chunks */
#define SPIN_LOOKS    16u     /* looks between two looks at the clock */
#define MAX_CHUNKS    65535u
#define RELEASE_LOOPS 1024u
#define LINE          64u /* of the cache, and what gn_alloc_aligned() gives */

typedef struct worker {
    _Alignas(LINE) _Atomic(uint64_t) lane; /* loop << 32 | first << 16 | last */
    atomic_uint asleep;                    /* 1: waits on this word; 0 wakes it */
    atomic_bool busy;                      /* looks for chunks, or has some */
    atomic_int tid; /* of the thread as the system numbers it; 0: not yet known */
    atomic_int cpu; /* where it ran when it joined the loop */
    int bound;      /* the caller's: 0, or 1 + the processor it is sent back to */
    gn_os_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct gn_os_pool {
    int n_threads;
    atomic_int n_used;
    worker *workers; /* [n_threads]; the first is the caller */
    int n_started;   /* the caller included */

    cpu_set_t allowed;   /* the affinity of the thread that made the pool */
    bool may_bind;       /* it is known */
    unsigned since_late; /* loops since a worker was bound; the caller's */
    int n_bound;         /* the caller's */

    gn_os_pool_fn *fn;
    void *ctx;
    size_t n_items;
    size_t grain;
    _Alignas(LINE) atomic_uint loop;
    atomic_bool stop;
    _Alignas(LINE) atomic_uint left;
    atomic_uint caller_asleep;
};

/* The pool whose loop this thread works in, and as whom. */
static _Thread_local const gn_os_pool *inside;
static _Thread_local int inside_as;

static void futex_wait(atomic_uint *word, unsigned value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* --- lanes --- */

static uint64_t lane_word(unsigned loop, size_t first, size_t last)
{
    return (uint64_t)loop << 32 | (uint64_t)first << 16 | (uint64_t)last;
}

/* Take a chunk: the first one, or for a thief the last one. */
static bool take(worker *w, bool steal, size_t *chunk)
{
    uint64_t word = atomic_load_explicit(&w->lane, memory_order_relaxed);
    for (;;) {
        size_t first = word >> 16 & 0xffff;
        size_t last = word & 0xffff;
        if (first == last) {
            return false;
        }
        uint64_t rest = steal ? word - 1 : word + (1u << 16);
        if (atomic_compare_exchange_weak_explicit(&w->lane, &word, rest, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *chunk = steal ? last - 1 : first;
            return true;
        }
    }
}

static unsigned run_lane(gn_os_pool *pool, worker *w, int index)
{
    unsigned n = 0;
    size_t chunk;
    while (take(w, w->index != index, &chunk)) {
        size_t begin = chunk * pool->grain;
        size_t left = pool->n_items - begin;
        pool->fn(pool->ctx, begin, begin + (left < pool->grain ? left : pool->grain), index);
        n++;
    }
    return n;
}

static void work(gn_os_pool *pool, int index)
{
    inside = pool;
    inside_as = index;
    unsigned n_done = 0;
    for (int i = 0; i < pool->n_threads; i++) {
        int victim = index + i;
        n_done += run_lane(pool, &pool->workers[victim % pool->n_threads], index);
    }
    inside = NULL;
    if (n_done != 0 && atomic_fetch_sub(&pool->left, n_done) == n_done &&
        atomic_exchange(&pool->caller_asleep, 0) != 0) {
        futex_wake(&pool->caller_asleep);
    }
}

/* --- waiting --- */

/* Sleep until woken; spurious returns are fine. `still` says whether there is a reason to. */
static void doze(worker *w, bool (*still)(const worker *w, unsigned seen), unsigned seen)
{
    atomic_store(&w->asleep, 1);
    if (still(w, seen) && !atomic_load(&w->pool->stop)) {
        futex_wait(&w->asleep, 1);
    }
    atomic_store(&w->asleep, 0);
}

static bool is_spare(const worker *w, unsigned seen)
{
    (void)seen;
    return w->index >= atomic_load(&w->pool->n_used);
}

static bool nothing_new(const worker *w, unsigned seen)
{
    return atomic_load(&w->pool->loop) == seen;
}

/* Wait until the loop is another one than `seen` and this worker is in use, or the pool stops. */
static unsigned wait_for_loop(gn_os_pool *pool, worker *w, unsigned seen)
{
    uint64_t start = 0;
    for (unsigned i = 1; !atomic_load(&pool->stop); i++) {
        if (is_spare(w, seen)) {
            doze(w, is_spare, seen);
            continue;
        }
        unsigned loop = atomic_load(&pool->loop);
        if (loop != seen) {
            return loop;
        }
        if (i % SPIN_LOOKS != 0) {
            spin_pause();
            continue;
        }
        uint64_t now = gn_os_now_ns();
        start = start != 0 ? start : now;
        if (now - start >= SPIN_NS) {
            doze(w, nothing_new, seen);
            start = 0;
        }
    }
    return seen;
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    gn_os_pool *pool = self->pool;
    atomic_store(&self->tid, (int)syscall(SYS_gettid));
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_loop(pool, self, seen);
        if (atomic_load(&pool->stop)) {
            return NULL;
        }
        atomic_store_explicit(&self->cpu, sched_getcpu(), memory_order_relaxed);
        atomic_store_explicit(&self->busy, true, memory_order_relaxed);
        work(pool, self->index);
        atomic_store_explicit(&self->busy, false, memory_order_relaxed);
    }
}

/* --- late workers --- */

/* A processor the pool may use where none of its workers in use, nor the caller, was last seen; -1: none. */
static int find_other_cpu(const gn_os_pool *pool, int caller_cpu)
{
    cpu_set_t taken;
    CPU_ZERO(&taken);
    CPU_SET((size_t)caller_cpu, &taken);
    for (int i = 1; i < atomic_load(&pool->n_used); i++) {
        const worker *w = &pool->workers[i];
        int cpu = w->bound != 0 ? w->bound - 1 : atomic_load(&w->cpu);
        if (cpu >= 0 && cpu < CPU_SETSIZE) {
            CPU_SET((size_t)cpu, &taken);
        }
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET((size_t)cpu, &pool->allowed) && !CPU_ISSET((size_t)cpu, &taken)) {
            return cpu;
        }
    }
    return -1;
}

/* Bind a worker to one processor. A thread that waits for its turn elsewhere moves at once. */
static bool bind(worker *w, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(atomic_load(&w->tid), sizeof set, &set) == 0;
}

/* Move one late worker to the caller's processor, which the caller is about to leave. */
static worker *lend_processor(gn_os_pool *pool)
{
    int here = pool->may_bind ? sched_getcpu() : -1;
    if (here < 0 || here >= CPU_SETSIZE) {
        return NULL;
    }
    for (int i = 1; i < pool->n_threads; i++) {
        worker *w = &pool->workers[i];
        if (!atomic_load(&w->busy) || atomic_load(&w->tid) == 0) {
            continue;
        }
        int back = atomic_load(&w->cpu);
        if (back == here || back < 0 || back >= CPU_SETSIZE) {
            back = find_other_cpu(pool, here);
        }
        if (back < 0 || !bind(w, here)) {
            return NULL;
        }
        pool->n_bound += w->bound == 0;
        w->bound = back + 1;
        pool->since_late = 0;
        return w;
    }
    return NULL;
}

static void release(gn_os_pool *pool)
{
    for (int i = 1; i < pool->n_threads; i++) {
        worker *w = &pool->workers[i];
        if (w->bound != 0) {
            (void)sched_setaffinity(atomic_load(&w->tid), sizeof pool->allowed, &pool->allowed);
            w->bound = 0;
        }
    }
    pool->n_bound = 0;
}

static void sleep_to_end(gn_os_pool *pool)
{
    worker *late = lend_processor(pool);
    atomic_store(&pool->caller_asleep, 1);
    if (atomic_load(&pool->left) != 0) {
        futex_wait(&pool->caller_asleep, 1);
    }
    atomic_store(&pool->caller_asleep, 0);
    if (late != NULL) {
        (void)bind(late, late->bound - 1);
    }
}

static void wait_for_end(gn_os_pool *pool)
{
    uint64_t start = 0;
    for (unsigned i = 1; atomic_load(&pool->left) != 0; i++) {
        if (i % SPIN_LOOKS != 0) {
            spin_pause();
            continue;
        }
        uint64_t now = gn_os_now_ns();
        start = start != 0 ? start : now;
        if (now - start >= LATE_NS) {
            sleep_to_end(pool);
        }
    }
}

static void wake(worker *w)
{
    if (atomic_load(&w->asleep) != 0 && atomic_exchange(&w->asleep, 0) != 0) {
        futex_wake(&w->asleep);
    }
}

/* --- life --- */

gn_status gn_os_pool_create(int n_threads, gn_os_pool **out)
{
    GN_REQUIRE(n_threads >= 1 && n_threads <= 1024, GN_E_ARG,
               "threads: found %d, expected 1 to 1024", n_threads);
    gn_os_pool *pool = gn_alloc_aligned(1, sizeof *pool);
    worker *workers = gn_alloc_aligned((size_t)n_threads, sizeof *workers);
    if (pool == NULL || workers == NULL) {
        gn_free_aligned(pool);
        gn_free_aligned(workers);
        return gn_alloc_failed();
    }
    *pool = (gn_os_pool){
        .n_threads = n_threads, .n_used = n_threads, .workers = workers, .n_started = 1};
    pool->may_bind = sched_getaffinity(0, sizeof pool->allowed, &pool->allowed) == 0;
    for (int i = 0; i < n_threads; i++) {
        workers[i] = (worker){.pool = pool, .index = i};
    }
    for (int i = 1; i < n_threads; i++) {
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
            gn_os_pool_destroy(pool);
            return gn_base_fail(GN_E_UNAVAILABLE, "cannot start thread %d of %d", i + 1, n_threads);
        }
        pool->n_started++;
    }
    *out = pool;
    return GN_OK;
}

void gn_os_pool_destroy(gn_os_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    atomic_store(&pool->stop, true);
    (void)atomic_fetch_add(&pool->loop, 1);
    for (int i = 1; i < pool->n_started; i++) {
        wake(&pool->workers[i]);
        (void)pthread_join(pool->workers[i].thread, NULL);
    }
    gn_free_aligned(pool->workers);
    gn_free_aligned(pool);
}

int gn_os_pool_threads(const gn_os_pool *pool)
{
    return pool != NULL ? pool->n_threads : 1;
}

void gn_os_pool_use(gn_os_pool *pool, int n_threads)
{
    if (pool != NULL) {
        assert(n_threads >= 1);
        atomic_store(&pool->n_used, n_threads < pool->n_threads ? n_threads : pool->n_threads);
    }
}

unsigned gn_os_pool_loops(const gn_os_pool *pool)
{
    return pool != NULL ? atomic_load_explicit(&pool->loop, memory_order_relaxed) : 0;
}

/* --- loops --- */

void gn_os_pool_run(gn_os_pool *pool, size_t n_items, size_t grain, gn_os_pool_fn *fn, void *ctx)
{
    if (n_items == 0) {
        return;
    }
    size_t n_used = pool != NULL ? (size_t)atomic_load(&pool->n_used) : 1;
    if (n_used == 1 || inside == pool || n_items <= grain) {
        fn(ctx, 0, n_items, pool != NULL && inside == pool ? inside_as : 0);
        return;
    }
    if (pool->n_bound != 0 && ++pool->since_late > RELEASE_LOOPS) {
        release(pool);
    }
    size_t n_chunks = (n_items + grain - 1) / grain;
    if (n_chunks > MAX_CHUNKS) {
        grain = (n_items + MAX_CHUNKS - 1) / MAX_CHUNKS;
        n_chunks = (n_items + grain - 1) / grain;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n_items = n_items;
    pool->grain = grain;
    atomic_store_explicit(&pool->left, (unsigned)n_chunks, memory_order_relaxed);
    unsigned loop = atomic_load_explicit(&pool->loop, memory_order_relaxed) + 1;
    for (size_t i = 0; i < n_used; i++) {
        atomic_store_explicit(&pool->workers[i].lane,
                              lane_word(loop, i * n_chunks / n_used, (i + 1) * n_chunks / n_used),
                              memory_order_release);
    }
    atomic_store(&pool->loop, loop);
    for (size_t i = 1; i < n_used; i++) {
        wake(&pool->workers[i]);
    }
    work(pool, 0);
    wait_for_end(pool);
}

int gn_os_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = gn_os_cpu_quota(GN_OS_CGROUP_FILE, GN_OS_CGROUP_ROOT);
    if (quota > 0 && quota < n) {
        n = quota;
    }
    return n > 0 ? n : 1;
}
