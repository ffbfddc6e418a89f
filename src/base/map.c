/* Linear probing at a load of at most 1/2. The hash multiplies 8 bytes at a time by an odd constant
 * and folds the high half back (the mixing step of SplitMix64). */
#include "base/map.h"

#include "base/alloc.h"

#include <string.h>

/* The last 0 to 7 bytes as one little-endian number, without a loop or a call. */
static uint64_t tail_of(const char *key, size_t len)
{
    if (len >= 4) {
        uint32_t low;
        uint32_t high;
        memcpy(&low, key, 4);
        memcpy(&high, key + len - 4, 4);
        return low | (uint64_t)high << 8 * (len - 4);
    }
    if (len == 0) {
        return 0;
    }
    const uint8_t *b = (const uint8_t *)key;
    return b[0] | (uint64_t)b[len / 2] << 8 * (len / 2) | (uint64_t)b[len - 1] << 8 * (len - 1);
}

uint64_t gn_map_hash(const char *key, size_t len)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ (len * 0xff51afd7ed558ccdu);
    while (len >= 8) {
        uint64_t w;
        memcpy(&w, key, 8);
        h = (h ^ w) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
        key += 8;
        len -= 8;
    }
    h = (h ^ tail_of(key, len)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ (h >> 30);
}

void gn_map_fini(gn_map *map)
{
    if (map != NULL) {
        gn_free(map->slots);
        *map = (gn_map){0};
    }
}

static gn_map_slot *probe(gn_map_slot *slots, size_t cap, const char *key, size_t len,
                          uint64_t hash)
{
    size_t i = (size_t)hash & (cap - 1);
    while (slots[i].key != NULL) {
        if (slots[i].hash == hash && slots[i].len == len && memcmp(slots[i].key, key, len) == 0) {
            break;
        }
        i = (i + 1) & (cap - 1);
    }
    return &slots[i];
}

gn_status gn_map_reserve(gn_map *map, size_t n)
{
    if (n <= map->cap / 2) {
        return GN_OK;
    }
    size_t cap = map->cap != 0 ? map->cap : 16;
    while (cap / 2 < n) {
        GN_REQUIRE(cap <= SIZE_MAX / 4, GN_E_NOMEM, "out of memory");
        cap *= 2;
    }
    gn_map_slot *slots = gn_calloc(cap, sizeof *slots);
    if (slots == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < map->cap; i++) {
        const gn_map_slot *old = &map->slots[i];
        if (old->key != NULL) {
            *probe(slots, cap, old->key, old->len, old->hash) = *old;
        }
    }
    gn_free(map->slots);
    map->slots = slots;
    map->cap = cap;
    return GN_OK;
}

gn_status gn_map_add(gn_map *map, const char *key, size_t len, uint32_t value, bool *added,
                     uint32_t *existing)
{
    GN_REQUIRE(len <= UINT32_MAX, GN_E_ARG, "a map key of %zu bytes is too long", len);
    GN_TRY(gn_map_reserve(map, map->n + 1));
    uint64_t hash = gn_map_hash(key, len);
    gn_map_slot *slot = probe(map->slots, map->cap, key, len, hash);
    bool is_new = slot->key == NULL;
    if (is_new) {
        *slot = (gn_map_slot){.key = key, .len = (uint32_t)len, .value = value, .hash = hash};
        map->n++;
    } else if (existing != NULL) {
        *existing = slot->value;
    }
    if (added != NULL) {
        *added = is_new;
    }
    return GN_OK;
}

const uint32_t *gn_map_find(const gn_map *map, const char *key, size_t len)
{
    if (map->cap == 0 || len > UINT32_MAX) {
        return NULL;
    }
    const gn_map_slot *slot = probe(map->slots, map->cap, key, len, gn_map_hash(key, len));
    return slot->key != NULL ? &slot->value : NULL;
}
