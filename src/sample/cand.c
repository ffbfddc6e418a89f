/* Selection of k is a bounded heap: the first k elements form a heap with the worst on top, each later
 * element that is better takes the top's place, and popping the heap sorts it. For the k of practice (tens
 * of 262,144) nearly all elements cost one comparison. Selection of a mass, where tens of thousands may
 * stay, is a quickselect that falls back to the heap before its quadratic worst case. */
#include "sample/cand.h"

#include "sample/explog.h"

#include <assert.h>

#define FIRST_SORT 64 /* size of the first sorted part */
#define SMALL_RUN  64 /* a run this short is sorted */

static bool before(gn_logprob a, gn_logprob b)
{
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

static void swap(gn_logprob *a, gn_logprob *b)
{
    gn_logprob t = *a;
    *a = *b;
    *b = t;
}

/* heap[i]'s subtrees are heaps: let heap[i] sink to its place. */
static void sink(gn_logprob *heap, size_t n, size_t i)
{
    gn_logprob moving = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        if (child + 1 < n && before(heap[child], heap[child + 1])) {
            child++;
        }
        if (!before(moving, heap[child])) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moving;
}

static void make_heap(gn_logprob *c, size_t k)
{
    for (size_t i = k / 2; i > 0; i--) {
        sink(c, k, i - 1);
    }
}

static void sort_heap(gn_logprob *heap, size_t k)
{
    for (size_t end = k; end > 1; end--) {
        swap(&heap[0], &heap[end - 1]);
        sink(heap, end - 1, 0);
    }
}

void gn_cand_select(gn_logprob *c, size_t n, size_t k)
{
    assert(k <= n);
    if (k == 0) {
        return;
    }
    make_heap(c, k);
    for (size_t i = k; i < n; i++) {
        if (before(c[i], c[0])) {
            swap(&c[i], &c[0]);
            sink(c, k, 0);
        }
    }
    sort_heap(c, k);
}

void gn_cand_select_values(const float *values, size_t n, size_t k, gn_logprob *out)
{
    assert(k <= n);
    if (k == 0) {
        return;
    }
    for (size_t i = 0; i < k; i++) {
        out[i] = (gn_logprob){.id = (int32_t)i, .logprob = values[i]};
    }
    make_heap(out, k);
    for (size_t i = k; i < n; i++) {
        if (values[i] > out[0].logprob) { /* among equals the earlier, lower id stays */
            out[0] = (gn_logprob){.id = (int32_t)i, .logprob = values[i]};
            sink(out, k, 0);
        }
    }
    sort_heap(out, k);
}

void gn_cand_sort_to(gn_cand_set *set, size_t i)
{
    assert(i < set->n);
    if (i < set->n_sorted) {
        return;
    }
    size_t want = set->n_sorted == 0 ? FIRST_SORT : 4 * set->n_sorted;
    want = want > i ? want : i + 1;
    want = want < set->n ? want : set->n;
    gn_cand_select(set->c + set->n_sorted, set->n - set->n_sorted, want - set->n_sorted);
    set->n_sorted = want;
}

static gn_logprob median(gn_logprob a, gn_logprob b, gn_logprob c)
{
    if (before(b, a)) {
        swap(&a, &b);
    }
    if (before(c, b)) {
        return before(c, a) ? a : c;
    }
    return b;
}

size_t gn_cand_take_mass(gn_logprob *c, size_t n, const float *logits, double max, double mass)
{
    size_t low = 0; /* c[0 .. low) is taken, the last to take is in c[low .. high) */
    size_t high = n;
    int rounds = 0;
    for (size_t k = n; k > 0; k >>= 1) {
        rounds += 2;
    }
    for (; high - low > SMALL_RUN && rounds > 0; rounds--) {
        /* The order is total, so one of the three comes after their median: both sides shrink. */
        gn_logprob pivot = median(c[low], c[low + (high - low) / 2], c[high - 1]);
        size_t middle = low;
        double sum = 0.0;
        for (size_t i = low; i < high; i++) {
            if (!before(pivot, c[i])) {
                sum += gn_sample_exp((double)logits[c[i].id] - max);
                swap(&c[i], &c[middle++]);
            }
        }
        if (sum >= mass) {
            high = middle;
        } else {
            mass -= sum;
            low = middle;
        }
    }
    gn_cand_select(c + low, high - low, high - low);
    while (low < high && mass > 0.0) {
        mass -= gn_sample_exp((double)logits[c[low].id] - max);
        low++;
    }
    return low;
}

double gn_cand_max(const gn_cand_set *set)
{
    assert(set->n > 0);
    float max = set->c[0].logprob;
    if (set->n_sorted == 0) {
        for (size_t i = 1; i < set->n; i++) {
            max = set->c[i].logprob > max ? set->c[i].logprob : max;
        }
    }
    return (double)max;
}

void gn_cand_keep_from(gn_cand_set *set, double bound)
{
    size_t n = 0;
    size_t n_sorted = 0;
    for (size_t i = 0; i < set->n; i++) {
        if ((double)set->c[i].logprob >= bound) {
            n_sorted += i < set->n_sorted;
            set->c[n++] = set->c[i];
        }
    }
    set->n = n;
    set->n_sorted = n_sorted;
}

void gn_cand_weights(const gn_logprob *c, size_t n, double max, double temperature, double *weights)
{
    double scale = 1.0 / temperature;
    for (size_t i = 0; i < n; i++) {
        weights[i] = gn_sample_exp(((double)c[i].logprob - max) * scale);
    }
}

double gn_cand_sum(const gn_logprob *c, size_t n, double max, double temperature,
                   double *block_sums)
{
    double weights[GN_CAND_BLOCK];
    double total = 0.0;
    for (size_t start = 0; start < n; start += GN_CAND_BLOCK) {
        size_t len = n - start < GN_CAND_BLOCK ? n - start : GN_CAND_BLOCK;
        gn_cand_weights(c + start, len, max, temperature, weights);
        double sum = 0.0;
        for (size_t i = 0; i < len; i++) {
            sum += weights[i];
        }
        if (block_sums != NULL) {
            block_sums[start / GN_CAND_BLOCK] = sum;
        }
        total += sum;
    }
    return total;
}
