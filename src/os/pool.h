/* A persistent pool of worker threads for data-parallel loops. The calling thread works too, so a
 * pool of 1 has no thread of its own. */
#ifndef GN_OS_POOL_H
#define GN_OS_POOL_H

#include "base/status.h"

#include <stddef.h>

typedef struct gn_os_pool gn_os_pool;

/* Work on items [begin, end); `worker` is 0 .. n_threads-1 and unique among concurrent calls. */
typedef void gn_os_pool_fn(void *ctx, size_t begin, size_t end, int worker);

/* n_threads 1 .. 1024, the caller included. */
GN_MUST_USE gn_status gn_os_pool_create(int n_threads, gn_os_pool **out);
void gn_os_pool_destroy(gn_os_pool *pool);
int gn_os_pool_threads(const gn_os_pool *pool);

/* How many of the threads later loops use: 1 or more, cut to what there are. By the one that calls
 * gn_os_pool_run(), between loops. */
void gn_os_pool_use(gn_os_pool *pool, int n_threads);

/* Loops run by more than the caller so far, modulo 2^32: each is one wait for all that take part. */
unsigned gn_os_pool_loops(const gn_os_pool *pool);

/* Run fn over [0, n_items) in chunks of `grain` items (≥ 1; more where there are over 65,535 chunks);
 * returns when all are done. Each thread starts with its share of the chunks, neighbours in order, and
 * whoever is done takes from the others: which worker gets which chunk varies, results must not depend on it.
 * One caller at a time. From inside fn a loop of the same pool is no parallel one: all of it runs at once on
 * the thread that asks, under its number. A NULL pool runs everything on the caller.
 * A worker that another program keeps from running may be bound to one processor for a while; the caller's
 * affinity is never touched. */
void gn_os_pool_run(gn_os_pool *pool, size_t n_items, size_t grain, gn_os_pool_fn *fn, void *ctx);

/* Processors this process may use: the affinity mask and the cgroup's CPU quota, at least 1. */
int gn_os_cpu_count(void);

#endif
