/* What the step loop sleeps on: a count of things that happened. A leaf among locks. */
#ifndef GN_ENGINE_WAKE_H
#define GN_ENGINE_WAKE_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gn_engine_wake {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    unsigned count; /* under lock */
} gn_engine_wake;

/* A condition that waits on the monotonic clock. */
void gn_engine_cond_init(pthread_cond_t *cond);
/* Wait up to `ms` on it; lock is held. false: the time is over. */
bool gn_engine_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

void gn_engine_wake_init(gn_engine_wake *wake);
void gn_engine_wake_fini(gn_engine_wake *wake);
/* Something happened. */
void gn_engine_wake_up(gn_engine_wake *wake);
unsigned gn_engine_wake_count(gn_engine_wake *wake);
/* Wait until something has happened since the count was `seen`, or `ms` are over; ms < 0: for as long as it takes. */
void gn_engine_wake_wait(gn_engine_wake *wake, unsigned seen, int32_t ms);

#endif
