/* Bump allocation with one release. One thread at a time. Pointers stay valid until fini or reset. */
#ifndef GN_BASE_ARENA_H
#define GN_BASE_ARENA_H

#include <stddef.h>

typedef struct gn_arena_block gn_arena_block;
typedef struct gn_arena {
    gn_arena_block *head; /* newest block first */
    size_t used_bytes;    /* sum of what was asked for */
    size_t limit_bytes;   /* 0: none; else an allocation past it gives NULL */
} gn_arena;

/* A zeroed gn_arena is a valid, empty arena without a limit. */
void gn_arena_init(gn_arena *arena, size_t limit_bytes);
void gn_arena_fini(gn_arena *arena);

/* 16-byte aligned, uninitialised; NULL on out of memory or past the limit. */
void *gn_arena_alloc(gn_arena *arena, size_t bytes);
void *gn_arena_calloc(gn_arena *arena, size_t n, size_t bytes);
/* n bytes of s and a terminating NUL. */
char *gn_arena_strndup(gn_arena *arena, const char *s, size_t n);

#endif
