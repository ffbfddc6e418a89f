/* Heapsort: in place, and no input makes it slow. Writers lay tensors out in order, so that case is
 * taken first. */
#include "file/extent.h"

#include <stdbool.h>

static bool before(const gn_extent *a, const gn_extent *b)
{
    if (a->begin != b->begin) {
        return a->begin < b->begin;
    }
    if (a->end != b->end) {
        return a->end < b->end;
    }
    return a->index < b->index;
}

static void swap(gn_extent *a, gn_extent *b)
{
    gn_extent t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(gn_extent *heap, size_t root, size_t n)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) {
            return;
        }
        if (child + 1 < n && before(&heap[child], &heap[child + 1])) {
            child++;
        }
        if (!before(&heap[root], &heap[child])) {
            return;
        }
        swap(&heap[root], &heap[child]);
        root = child;
    }
}

void gn_extent_sort(gn_extent *extents, size_t n)
{
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++) {
        sorted = !before(&extents[i], &extents[i - 1]);
    }
    if (sorted) {
        return;
    }
    for (size_t i = n / 2; i-- > 0;) {
        sift_down(extents, i, n);
    }
    for (size_t end = n - 1; end > 0; end--) {
        swap(&extents[0], &extents[end]);
        sift_down(extents, 0, end);
    }
}
