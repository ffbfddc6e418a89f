/* All heap memory of the library. Sizes of zero give a valid pointer. NULL means out of memory and
 * is recorded as GN_E_NOMEM's message by the GN_ALLOC_* callers. Thread-safe. */
#ifndef GN_BASE_ALLOC_H
#define GN_BASE_ALLOC_H

#include "base/attr.h"
#include "base/status.h"

#include <stddef.h>

void *gn_alloc(size_t bytes);                 /* uninitialised */
void *gn_calloc(size_t n, size_t bytes);      /* zeroed; NULL where n * bytes overflows */
void *gn_alloc_array(size_t n, size_t bytes); /* uninitialised; NULL where n * bytes overflows */
void *gn_realloc_array(void *p, size_t n, size_t bytes); /* on NULL the old block stays valid */
/* Room for n elements in a growing array of *cap: `p` as it is where it has it, else a larger block with
 * *cap at least doubled. NULL: out of memory, block and *cap as before. */
void *gn_grow_array(void *p, size_t *cap, size_t n, size_t bytes);
void gn_free(void *p); /* NULL is fine */

/* 64-byte aligned, for buffers that kernels read; give back with gn_free_aligned(). */
void *gn_alloc_aligned(size_t n, size_t bytes);
void gn_free_aligned(void *p);

char *gn_strdup(const char *s);
char *gn_strndup(const char *s, size_t n); /* n bytes of s and a terminating NUL */

/* Bytes of all live blocks, as the heap rounds them. For telling what something took: the difference of two
 * calls, while no other thread allocates. */
size_t gn_alloc_bytes(void);

/* Record "out of memory" and return GN_E_NOMEM. */
gn_status gn_alloc_failed(void) GN_COLD;

/* Tests only: called before each allocation; returning non-zero makes that allocation fail.
 * Set while no other thread allocates. NULL removes it. */
void gn_alloc_set_fault(int (*fault)(void *ctx), void *ctx);

/* Tests only: number of live allocations. */
long gn_alloc_live(void);

#endif
