/* A hash map from byte strings to uint32 values: open addressing, insertion only. Keys are borrowed
 * and must outlive the map. Readers may share a map that nobody changes. */
#ifndef GN_BASE_MAP_H
#define GN_BASE_MAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gn_map_slot {
    const char *key; /* NULL: free */
    uint32_t len;
    uint32_t value;
    uint64_t hash;
} gn_map_slot;

typedef struct gn_map {
    gn_map_slot *slots;
    size_t cap; /* 0 or a power of two */
    size_t n;
} gn_map;

/* A zeroed gn_map is a valid, empty map. Reserve makes room for n keys without growth. */
GN_MUST_USE gn_status gn_map_reserve(gn_map *map, size_t n);
void gn_map_fini(gn_map *map);

/* Insert, or set *existing (may be NULL) to the value already there and leave it as it is.
 * *added (may be NULL) says which. Keys up to UINT32_MAX bytes. */
GN_MUST_USE gn_status gn_map_add(gn_map *map, const char *key, size_t len, uint32_t value,
                                 bool *added, uint32_t *existing);

/* Pointer to the value, or NULL. */
const uint32_t *gn_map_find(const gn_map *map, const char *key, size_t len);

/* The hash used. It is fixed, not seeded, so that runs repeat. */
uint64_t gn_map_hash(const char *key, size_t len);

#endif
