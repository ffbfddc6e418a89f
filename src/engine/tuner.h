/* How many threads a pass of one row is worth. Decode reads all weights for each token, so its time is the
 * memory's bandwidth turned round, and some of the cores often reach what all of them do. The first passes
 * of a model try: all threads, then a quarter fewer each time, until that is slower. */
#ifndef GN_ENGINE_TUNER_H
#define GN_ENGINE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gn_engine_tuner {
    int n_threads; /* for the next pass; the choice, once done */
    bool done;
    int chosen;        /* the fewest so far that keep up with the best */
    int n_passes;      /* seen of n_threads */
    uint64_t least_ns; /* of those */
    uint64_t best_ns;  /* least of all counts; 0: none yet */
} gn_engine_tuner;

/* most  threads there are, 1 or more; with 1 or 2 there is nothing to try
 * fixed the caller has chosen: all passes use `most` */
void gn_engine_tuner_init(gn_engine_tuner *t, int most, bool fixed);

/* A pass with t->n_threads took ns. Not once done. */
void gn_engine_tuner_add(gn_engine_tuner *t, uint64_t ns);

#endif
