/* The heap, with a fault hook for out-of-memory tests, a live counter for leak tests, and a count of bytes, which
 * is the heap's own (malloc_usable_size), so that blocks need no header. */
#include "base/alloc.h"

#include "base/checked.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int (*fault_fn)(void *ctx);
static void *fault_ctx;
static atomic_long live;
static atomic_size_t live_bytes;

void gn_alloc_set_fault(int (*fault)(void *ctx), void *ctx)
{
    fault_fn = fault;
    fault_ctx = ctx;
}

long gn_alloc_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

size_t gn_alloc_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}

gn_status gn_alloc_failed(void)
{
    return gn_base_fail(GN_E_NOMEM, "out of memory");
}

static int must_fail(void)
{
    return fault_fn != NULL && fault_fn(fault_ctx) != 0;
}

static void *counted(void *p)
{
    if (p != NULL) {
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&live_bytes, malloc_usable_size(p), memory_order_relaxed);
    }
    return p;
}

void *gn_alloc(size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    return counted(malloc(bytes != 0 ? bytes : 1));
}

void *gn_calloc(size_t n, size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    return counted(n != 0 && bytes != 0 ? calloc(n, bytes) : calloc(1, 1));
}

void *gn_alloc_array(size_t n, size_t bytes)
{
    size_t total;
    return gn_checked_mul(n, bytes, &total) ? gn_alloc(total) : NULL;
}

void *gn_realloc_array(void *p, size_t n, size_t bytes)
{
    size_t total;
    if (!gn_checked_mul(n, bytes, &total) || must_fail()) {
        return NULL;
    }
    size_t before = p != NULL ? malloc_usable_size(p) : 0;
    void *q = realloc(p, total != 0 ? total : 1);
    if (p == NULL || q == NULL) {
        return counted(q);
    }
    atomic_fetch_add_explicit(&live_bytes, malloc_usable_size(q) - before, memory_order_relaxed);
    return q;
}

void *gn_grow_array(void *p, size_t *cap, size_t n, size_t bytes)
{
    if (n <= *cap && p != NULL) {
        return p;
    }
    size_t more = *cap <= SIZE_MAX / 2 && 2 * *cap > n ? 2 * *cap : n;
    more = more > 16 ? more : 16;
    void *grown = gn_realloc_array(p, more, bytes);
    if (grown != NULL) {
        *cap = more;
    }
    return grown;
}

void gn_free(void *p)
{
    if (p != NULL) {
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&live_bytes, malloc_usable_size(p), memory_order_relaxed);
        free(p);
    }
}

void *gn_alloc_aligned(size_t n, size_t bytes)
{
    size_t total;
    if (!gn_checked_mul(n, bytes, &total) ||
        !gn_checked_align(total != 0 ? total : 1, 64, &total) || must_fail()) {
        return NULL;
    }
    return counted(aligned_alloc(64, total));
}

void gn_free_aligned(void *p)
{
    gn_free(p);
}

char *gn_strndup(const char *s, size_t n)
{
    if (n == SIZE_MAX) {
        return NULL;
    }
    char *copy = gn_alloc(n + 1);
    if (copy != NULL) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}

char *gn_strdup(const char *s)
{
    return gn_strndup(s, strlen(s));
}
