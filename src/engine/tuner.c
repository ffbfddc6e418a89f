/* A descent in steps of a quarter. Of each count the first pass is not counted, since threads wake and caches
 * fill, and of the others the least time counts, since other programs can only add to it. */
#include "engine/tuner.h"

#include <assert.h>

#define FEWEST  3 /* threads that leave something to choose */
#define SKIPPED 1
#define COUNTED 4
#define SLACK   3 /* percent of time that fewer threads may cost */

void gn_engine_tuner_init(gn_engine_tuner *t, int most, bool fixed)
{
    assert(most >= 1);
    *t = (gn_engine_tuner){
        .n_threads = most, .done = fixed || most < FEWEST, .chosen = most, .least_ns = UINT64_MAX};
}

static void finish(gn_engine_tuner *t)
{
    t->n_threads = t->chosen;
    t->done = true;
}

void gn_engine_tuner_add(gn_engine_tuner *t, uint64_t ns)
{
    assert(!t->done);
    if (++t->n_passes > SKIPPED && ns < t->least_ns) {
        t->least_ns = ns;
    }
    if (t->n_passes < SKIPPED + COUNTED) {
        return;
    }
    if (t->best_ns != 0 && t->least_ns > t->best_ns + t->best_ns * SLACK / 100) {
        finish(t);
        return;
    }
    t->chosen = t->n_threads;
    if (t->best_ns == 0 || t->least_ns < t->best_ns) {
        t->best_ns = t->least_ns;
    }
    if (t->n_threads == 1) {
        finish(t);
        return;
    }
    t->n_threads -= t->n_threads >= 4 ? t->n_threads / 4 : 1;
    t->n_passes = 0;
    t->least_ns = UINT64_MAX;
}
