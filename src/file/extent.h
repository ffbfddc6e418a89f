/* Byte ranges of a file's data section, put in order so that overlaps and holes show. */
#ifndef GN_FILE_EXTENT_H
#define GN_FILE_EXTENT_H

#include <stddef.h>
#include <stdint.h>

typedef struct gn_extent {
    uint64_t begin; /* bytes, from the start of the data section */
    uint64_t end;   /* one past the last byte; ≥ begin */
    uint32_t index; /* the caller's: which tensor */
} gn_extent;

/* Ascending by begin, then end, then index. In place, O(n log n) at worst, O(n) where already in order;
 * no allocation and no recursion, since n comes from a file. */
void gn_extent_sort(gn_extent *extents, size_t n);

#endif
