/* A request as the step loop sees it.
 *
 *             submit                 admit                last row of the prompt
 *    (new) ───────────▶ WAITING ───────────▶ PREFILL ───────────────────────────▶ DECODE
 *                        ▲  │                  │  │                                │  │
 *                        │  │      pre-empt    │  │            pre-empt            │  │
 *                        └──┼──────────────────┴──┼────────────────────────────────┘  │
 *                           │ cancel, deadline    │ cancel, deadline, failure         │ the same, or an end
 *                           └─────────────────▶ ENDED ◀───────────────────────────────┘
 *
 *    from              to       made by
 *    (new)             WAITING  gn_engine_queue_push()      any thread
 *    WAITING           PREFILL  gn_engine_sched_admit()     step loop, as all below
 *    PREFILL           DECODE   gn_engine_step()
 *    PREFILL, DECODE   WAITING  gn_engine_sched_preempt()
 *    any               ENDED    gn_engine_request_end()
 *
 * Invariants: (1) ids [0, table.n_tok) have keys and values; a request that waits has no page, and its place is the root; (2) in PREFILL and
 * DECODE the table has room for all of ids; (3) the token after ids was never chosen: so a request that lost its
 * pages computes ids again and goes on as if nothing had been; (4) the END event is posted once, and `engine` is
 * not used after it; (5) what is not said to be under `lock` belongs to the step loop from submission on. */
#ifndef GN_ENGINE_REQUEST_IMPL_H
#define GN_ENGINE_REQUEST_IMPL_H

#include "base/arena.h"
#include "engine/output.h"
#include "engine/port.h"
#include "kv/prefix.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct gn_event_node {
    struct gn_event_node *next;
    gn_event event; /* what it points to lies behind the node, or in the request */
} gn_event_node;

struct gn_request {
    gn_engine *engine;
    atomic_int refs; /* the owner's and the engine's */
    atomic_bool cancelled;

    /* Fixed from submission on. */
    gn_priority priority;
    uint64_t id;
    uint64_t salt;
    uint64_t deadline_ns; /* 0: none */
    size_t n_prompt;
    size_t n_ctx;
    int32_t max_tokens; /* < 0: none */
    int32_t n_top;
    int32_t n_prompt_top;
    bool long_context;
    bool no_cache;
    gn_sample_params sample; /* its pointers go to `copies` */
    gn_arena copies;

    /* The step loop's. */
    gn_request *next; /* in the queue; under the engine's lock */
    int32_t *ids;     /* [cap]: prompt and answer */
    size_t n_ids;
    size_t cap;
    gn_kv_table table;
    gn_kv_place place;   /* of its pages in the prefix tree */
    gn_sampler *sampler; /* from the first admission on: it is large */
    gn_output *output;
    gn_token_logprob *prompt_logprobs; /* [n_prompt] where n_prompt_top ≥ 0 */
    gn_logprob *prompt_top;            /* [n_prompt][n_prompt_top] */
    size_t n_prompt_logprobs;          /* of them known: of tokens [0, this) */
    bool prompt_told;                  /* the PROMPT event was posted */
    char *message;                     /* of a failure, until the END event takes it */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t cond;
    gn_event_node *first; /* events not yet taken */
    gn_event_node *last;
    gn_event_node *taken; /* what the owner looks at */
    gn_event_node end;    /* has room whatever happens */
    char *end_text;
    bool ended;
    bool owned; /* not yet released */
    void (*notify)(void *ctx);
    void *notify_ctx;
    gn_request_info info;
};

/* Check and copy options. Any thread. Codes as gn_request_submit(), but for the queue's. */
GN_MUST_USE gn_status gn_engine_request_create(gn_engine *engine, const gn_request_options *options,
                                               gn_request **out);
/* Give back one of the two references. */
void gn_engine_request_unref(gn_request *r);

/* What is needed to compute: the sampler, which is told the prompt, and room for log-probabilities. Does nothing the
 * second time. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_engine_request_start(gn_request *r);

/* Room for one more id, so that gn_engine_request_append() can't fail. GN_E_NOMEM. */
GN_MUST_USE gn_status gn_engine_request_reserve(gn_request *r);
void gn_engine_request_append(gn_request *r, int32_t id);

/* Keep this thread's error message for the END event. */
void gn_engine_request_keep_message(gn_request *r);

/* A TOKEN event, with copies of what the token points to; NULL: out of memory. Any thread. */
gn_event_node *gn_engine_event_token(const gn_output_token *token);

/* Post events; both take the node. */
void gn_engine_request_post_prompt(gn_request *r, gn_event_node *node);
void gn_engine_request_post_token(gn_request *r, gn_event_node *node);

/* The END event; the memory of computing goes, pages too (under the model's lock), and so does the engine's
 * reference. status: GN_OK, or why it failed, with the message kept or else a general one. finish: where the
 * text ended by itself, or GN_FINISH_CANCELLED, GN_FINISH_DEADLINE. */
void gn_engine_request_end(gn_request *r, gn_status status, gn_finish finish, int32_t stop_index);

/* Note where it stands, for gn_engine_list() and gn_request_get_usage(). */
void gn_engine_request_note(gn_request *r, gn_request_state state);

#endif
