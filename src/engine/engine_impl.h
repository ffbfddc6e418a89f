/* The step loop's parts: queue and running requests (sched.c), the rows of a step (batch.c), the step (step.c), the
 * thread and the public calls (engine.c).
 *
 * Locks, in the order they are taken: the model's (computing, pages), the engine's, a request's, the wake's. */
#ifndef GN_ENGINE_ENGINE_IMPL_H
#define GN_ENGINE_ENGINE_IMPL_H

#include "engine/model_impl.h"
#include "engine/pace.h"
#include "engine/request_impl.h"
#include "engine/wake.h"

typedef struct gn_engine_queue { /* requests that wait, oldest first */
    gn_request *first;
    uint32_t n;
} gn_engine_queue;

/* A row whose logits are wanted. */
typedef struct gn_engine_item {
    gn_request *request;
    size_t pos;
    bool chooses; /* the next token; else: log-probabilities of the prompt's next token */
    /* what came of it */
    gn_status status;
    gn_event_node *event; /* of the token */
    int32_t id;
    bool ended;
    gn_finish finish;
    int32_t stop_index;
} gn_engine_item;

struct gn_engine {
    gn_model *model;
    gn_engine_options options; /* with the defaults filled in */
    pthread_t thread;
    gn_engine_wake wake;

    pthread_mutex_t lock; /* of all below, up to the step loop's own */
    gn_engine_queue queues[GN_N_PRIORITIES];
    gn_request *
        *running; /* [max_running], by class, then by age: oldest first; changed by the step loop */
    uint32_t n_running;
    uint64_t next_id;
    bool stopping;
    gn_engine_stats stats;

    gn_kv_prefix *prefix; /* under the model's lock; NULL: no prefix cache */

    /* The step loop's own. */
    uint64_t counted_ns; /* when pages in the prefix tree were counted last */
    gn_engine_pace pace;
    gn_engine_item *items; /* [n_items] */
    uint32_t n_items;
    uint32_t max_items; /* rows of logits */
    uint32_t n_rows;
    uint32_t n_decode_rows; /* of them */
    uint32_t n_prompt_rows;
    uint32_t n_chosen; /* tokens, in the step */
    float *logits;     /* [max_items, n_vocab] */
    char *nonfinite;   /* what is wrong with the weights, once known */
};

/* --- sched.c: under the model's lock, but for push --- */

/* GN_E_UNAVAILABLE: the queue is full, or the engine ends. Any thread, without a lock. */
GN_MUST_USE gn_status gn_engine_queue_push(gn_engine *e, gn_request *r);
/* End what was cancelled, what is too late, and at the engine's end everything. */
void gn_engine_sched_reap(gn_engine *e);
/* Let requests run: the highest class first, the oldest of it first, as long as there are pages. */
void gn_engine_sched_admit(gn_engine *e);
/* Pages for what each running request knows, taken from the lowest and youngest where there are none. */
void gn_engine_sched_make_room(gn_engine *e);
/* End one that runs. */
void gn_engine_sched_end(gn_engine *e, gn_request *r, gn_status status, gn_finish finish,
                         int32_t stop_index);
uint32_t gn_engine_sched_n_waiting(gn_engine *e);

/* --- reuse.c: under the model's lock --- */

/* Begin the table of one that is let in with what the prefix tree has of its tokens. */
void gn_engine_reuse_attach(gn_engine *e, gn_request *r);
/* Put full pages into the tree; `leaves`: of one that gives its pages back now. */
void gn_engine_reuse_keep(gn_engine *e, gn_request *r, bool leaves);
/* It has no pages any more, or could not be let in. */
void gn_engine_reuse_drop(gn_request *r);
/* Can the pages that r needs be there at all, the tree's idle ones included? false: don't ask for them. */
bool gn_engine_reuse_has_room(const gn_engine *e, const gn_request *r);

/* --- batch.c --- */

/* Choose the rows of a step: model->rows [n_rows] and the items. Nothing to compute: n_rows is 0. */
void gn_engine_batch_fill(gn_engine *e);

/* --- step.c --- */

/* Compute the batch and tell what came of it. Under the model's lock. */
void gn_engine_step(gn_engine *e);

#endif
