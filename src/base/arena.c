/* Arena blocks grow from 4 KiB to 1 MiB; a larger request gets a block of its own. */
#include "base/arena.h"

#include "base/alloc.h"
#include "base/checked.h"

#include <stdint.h>
#include <string.h>

#define FIRST_BLOCK_BYTES 4096u
#define MAX_BLOCK_BYTES   (1u << 20)

struct gn_arena_block {
    gn_arena_block *next;
    size_t used;
    size_t cap;
    size_t pad; /* keeps data[] 16-byte aligned */
    unsigned char data[];
};

void gn_arena_init(gn_arena *arena, size_t limit_bytes)
{
    *arena = (gn_arena){.limit_bytes = limit_bytes};
}

void gn_arena_fini(gn_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    while (arena->head != NULL) {
        gn_arena_block *next = arena->head->next;
        gn_free(arena->head);
        arena->head = next;
    }
    arena->used_bytes = 0;
}

void *gn_arena_alloc(gn_arena *arena, size_t bytes)
{
    size_t size;
    if (!gn_checked_align(bytes != 0 ? bytes : 1, 16, &size)) {
        return NULL;
    }
    if (arena->limit_bytes != 0 &&
        (size > arena->limit_bytes || arena->used_bytes > arena->limit_bytes - size)) {
        return NULL;
    }
    gn_arena_block *block = arena->head;
    if (block == NULL || size > block->cap - block->used) {
        size_t cap = block != NULL ? block->cap * 2 : FIRST_BLOCK_BYTES;
        cap = cap > MAX_BLOCK_BYTES ? MAX_BLOCK_BYTES : cap;
        cap = cap < size ? size : cap;
        size_t total;
        if (!gn_checked_add(cap, sizeof *block, &total)) {
            return NULL;
        }
        block = gn_alloc(total);
        if (block == NULL) {
            return NULL;
        }
        *block = (gn_arena_block){.next = arena->head, .cap = cap};
        arena->head = block;
    }
    void *p = block->data + block->used;
    block->used += size;
    arena->used_bytes += size;
    return p;
}

void *gn_arena_calloc(gn_arena *arena, size_t n, size_t bytes)
{
    size_t total;
    if (!gn_checked_mul(n, bytes, &total)) {
        return NULL;
    }
    void *p = gn_arena_alloc(arena, total);
    if (p != NULL) {
        memset(p, 0, total);
    }
    return p;
}

char *gn_arena_strndup(gn_arena *arena, const char *s, size_t n)
{
    if (n == SIZE_MAX) {
        return NULL;
    }
    char *copy = gn_arena_alloc(arena, n + 1);
    if (copy != NULL) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}
