/* Candidates: the tokens still in the running, and how the best of them are found without sorting all.
 *
 * A candidate is a gn_logprob whose `logprob` holds the logit, or a filter's score for the time of one
 * selection. The order is: larger value first, lower id first among equals; it is total, so a selection
 * has one result. One thread at a time. */
#ifndef GN_SAMPLE_CAND_H
#define GN_SAMPLE_CAND_H

#include "ganglion/sample.h"

/* c[0 .. n), of which c[0 .. n_sorted) are the best n_sorted, in order; the rest is in no order. */
typedef struct gn_cand_set {
    gn_logprob *c;
    size_t n;
    size_t n_sorted;
} gn_cand_set;

/* Permute c[0 .. n) so that its best k ≤ n stand in front, in order. O(n log k) at worst, close to O(n)
 * where k is small. */
void gn_cand_select(gn_logprob *c, size_t n, size_t k);

/* The best k ≤ n of values [n], in order, with their indices as ids. */
void gn_cand_select_values(const float *values, size_t n, size_t k, gn_logprob *out);

/* Make sure that candidate i < n is in the sorted part. Asked for 0, 1, 2 …, the sorted part grows
 * geometrically, so a walk that ends early sorts little. */
void gn_cand_sort_to(gn_cand_set *set, size_t i);

/* Largest logit of a set that is not empty. */
double gn_cand_max(const gn_cand_set *set);

/* Keep those with a value ≥ bound, in the order they have. */
void gn_cand_keep_from(gn_cand_set *set, double bound);

/* Permute c[0 .. n) so that the shortest run of best candidates whose weights e^(logits[id] - max) reach
 * `mass` stands in front, in no order; returns its length. Expected O(n), O(n log n) at worst. */
size_t gn_cand_take_mass(gn_logprob *c, size_t n, const float *logits, double max, double mass);

#define GN_CAND_BLOCK 256

/* Weights e^((logit - max) / temperature) of up to GN_CAND_BLOCK candidates. */
void gn_cand_weights(const gn_logprob *c, size_t n, double max, double temperature,
                     double *weights);

/* Sum of the weights of c[0 .. n), in a fixed order. block_sums (may be NULL) receives the sum of each run
 * of GN_CAND_BLOCK candidates. */
double gn_cand_sum(const gn_logprob *c, size_t n, double max, double temperature,
                   double *block_sums);

#endif
