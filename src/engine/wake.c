#include "engine/wake.h"

#include "os/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#define NS_A_SECOND 1000000000u
#define NS_A_MS     1000000u

void gn_engine_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

bool gn_engine_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    struct timespec until = {(time_t)(until_ns / NS_A_SECOND), (long)(until_ns % NS_A_SECOND)};
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

void gn_engine_wake_init(gn_engine_wake *wake)
{
    (void)pthread_mutex_init(&wake->lock, NULL);
    gn_engine_cond_init(&wake->cond);
    wake->count = 0;
}

void gn_engine_wake_fini(gn_engine_wake *wake)
{
    (void)pthread_cond_destroy(&wake->cond);
    (void)pthread_mutex_destroy(&wake->lock);
}

void gn_engine_wake_up(gn_engine_wake *wake)
{
    (void)pthread_mutex_lock(&wake->lock);
    wake->count++;
    (void)pthread_cond_signal(&wake->cond);
    (void)pthread_mutex_unlock(&wake->lock);
}

unsigned gn_engine_wake_count(gn_engine_wake *wake)
{
    (void)pthread_mutex_lock(&wake->lock);
    unsigned count = wake->count;
    (void)pthread_mutex_unlock(&wake->lock);
    return count;
}

void gn_engine_wake_wait(gn_engine_wake *wake, unsigned seen, int32_t ms)
{
    uint64_t until = ms >= 0 ? gn_os_now_ns() + (uint64_t)ms * NS_A_MS : 0;
    (void)pthread_mutex_lock(&wake->lock);
    bool more = true;
    while (more && wake->count == seen) {
        if (ms < 0) {
            (void)pthread_cond_wait(&wake->cond, &wake->lock);
        } else {
            more = gn_engine_cond_wait(&wake->cond, &wake->lock, until);
        }
    }
    (void)pthread_mutex_unlock(&wake->lock);
}
