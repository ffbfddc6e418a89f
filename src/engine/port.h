/* What upper layers may call of the engine: requests that are served together from one model.
 *
 * A gn_engine owns one thread, the step loop. A step is one forward pass over rows of many requests: the decode
 * rows of those that generate first, then chunks of prompts, up to a budget of tokens. What a request gets
 * depends on its own options alone, to the bit: never on what runs beside it, on the prefix cache, on
 * pre-emption or on chunks (promise 1).
 *
 * A request belongs to whoever submitted it; its events are taken by one thread at a time. Everything else may be
 * called from any thread. Nothing here waits longer than the time it is given. */
#ifndef GN_ENGINE_PORT_H
#define GN_ENGINE_PORT_H

#include "ganglion/grammar.h"
#include "ganglion/model.h"
#include "ganglion/sample.h"
#include "ganglion/session.h"

typedef struct gn_engine gn_engine;
typedef struct gn_request gn_request;

typedef enum gn_priority {
    GN_PRIORITY_REALTIME,    /* admitted first; takes pages and rows from those below */
    GN_PRIORITY_INTERACTIVE, /* the default */
    GN_PRIORITY_BATCH        /* what is left; pre-empted first */
} gn_priority;
#define GN_N_PRIORITIES 3

typedef struct gn_engine_options { /* zeroed: the defaults */
    uint32_t max_waiting;          /* requests in the queue, all classes together; 0: 256 */
    uint32_t max_running;          /* requests in steps at a time; 0: 64 */
    uint32_t step_tokens;          /* budget of a step, in rows, 1 .. 256; 0: chosen */
    bool no_prefix_cache;          /* forget pages when their request ends */
} gn_engine_options;

/* Start serving `model`, which is borrowed and must be a decoder. options may be NULL. GN_E_ARG,
 * GN_E_UNSUPPORTED (an encoder), GN_E_NOMEM, GN_E_UNAVAILABLE (no thread). */
GN_MUST_USE gn_status gn_engine_create(gn_model *model, const gn_engine_options *options,
                                       gn_engine **out);
/* Ends every request with GN_E_CANCELLED and joins the step loop. Requests that are not released keep what they
 * have. NULL is fine. */
void gn_engine_destroy(gn_engine *engine);
gn_model *gn_engine_model(const gn_engine *engine);

typedef struct gn_request_options { /* all that is pointed to is copied */
    const int32_t *prompt;          /* [n_prompt], at least one */
    size_t n_prompt;
    gn_sample_params sample;
    int32_t max_tokens; /* < 0: until the end or n_ctx; 0: only the prompt is evaluated */
    int32_t n_ctx;      /* most tokens, prompt and answer; 0: the model's context length */
    gn_priority priority;
    uint64_t salt;        /* prefixes are shared among requests with the same salt alone */
    uint64_t deadline_ns; /* on gn_os_now_ns(): ended with GN_FINISH_DEADLINE; 0: none */
    const char *const *stop;
    size_t n_stop; /* at most 64 */
    const int32_t *stop_ids;
    size_t n_stop_ids;
    int32_t
        n_top; /* log-probabilities: -1 none, 0 of the token chosen, k also of the k best; ≤ 20 */
    int32_t n_prompt_top; /* the same for every token of the prompt but the first; -1 none */
    bool special;         /* show special tokens in the text */
    bool no_cache;        /* take no page from the prefix cache and leave none there */
    gn_grammar *grammar;  /* the answer is one of its texts; NULL: any. A reference is taken */
    void (*notify)(
        void *
            ctx); /* called where an event is there, on the step loop: must return at once, and call nothing of the request. May be NULL */
    void *notify_ctx;
} gn_request_options;

/* The neutral set: no prompt, gn_sample_defaults(), max_tokens -1, n_top -1, interactive. */
gn_request_options gn_request_defaults(void);

/* Put a request into the queue. GN_E_ARG (what, found, expected), GN_E_LIMIT (the prompt does not fit n_ctx, or
 * the KV pool as a whole; or the grammar's shortest text does not fit max_tokens), GN_E_UNAVAILABLE (the queue is full, or the engine ends), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_request_submit(gn_engine *engine, const gn_request_options *options,
                                        gn_request **out);

typedef struct gn_token_logprob {
    int32_t id;
    float logprob;         /* natural, over the full vocabulary, before penalties and filters */
    const gn_logprob *top; /* [n_top], best first */
    int32_t n_top;
} gn_token_logprob;

typedef enum gn_event_type {
    GN_EVENT_PROMPT, /* once, when the prompt is evaluated */
    GN_EVENT_TOKEN,  /* a token was chosen, the end token included */
    GN_EVENT_END     /* once, the last */
} gn_event_type;

typedef struct gn_event {
    gn_event_type type;
    uint64_t time_ns; /* gn_os_now_ns() when it happened */
    /* TOKEN: what it is and the text that it made final, whole UTF-8 sequences, may be "". END: the text that was
     * held back for a stop string that did not come. NUL-terminated. */
    gn_token_logprob token;
    const char *text;
    size_t text_len;
    /* PROMPT: one for each token of the prompt where n_prompt_top ≥ 0 ([0].logprob is NaN), else NULL */
    const gn_token_logprob *prompt;
    size_t n_prompt;
    /* END */
    gn_status status;    /* GN_OK, or why it failed: then message says it in one line */
    const char *message; /* "" with GN_OK */
    gn_finish finish;
    int32_t stop_index; /* which stop string ended it, or -1 */
    bool
        grammar_closed; /* the token limit came near and the text was closed by the grammar's shortest end */
} gn_event;

/* The next event, waiting up to `ms` ≥ 0 milliseconds. What *event points to lives until the next call.
 * false: none in time. After END there is none. */
bool gn_request_wait(gn_request *request, int32_t ms, gn_event *event);
/* End it with GN_E_CANCELLED within one step; the END event still comes. */
void gn_request_cancel(gn_request *request);
/* Cancels where it has not ended, and gives the handle back. NULL is fine. Allowed after gn_engine_destroy(). */
void gn_request_release(gn_request *request);

typedef struct gn_request_usage {
    uint64_t id; /* unique in this engine, from 1 */
    int32_t n_prompt;
    int32_t n_cached; /* of the prompt, taken from the prefix cache */
    int32_t n_generated;
    int32_t n_forced;    /* of those, tokens that the grammar left no choice about */
    int32_t n_preempted; /* how often its pages were taken away */
    uint64_t submit_ns, start_ns, first_ns, end_ns; /* gn_os_now_ns(); 0: not yet */
} gn_request_usage;
gn_request_usage gn_request_get_usage(gn_request *request);

typedef enum gn_request_state {
    GN_REQUEST_WAITING,
    GN_REQUEST_PREFILL,
    GN_REQUEST_DECODE,
    GN_REQUEST_ENDED
} gn_request_state;

typedef struct gn_request_info {
    gn_request_usage usage;
    gn_request_state state;
    gn_priority priority;
    int32_t n_evaluated; /* tokens with keys and values now */
    int32_t max_tokens;
    int32_t n_ctx;
} gn_request_info;
/* Requests that wait or run, at most `cap`; returns how many there are. */
size_t gn_engine_list(gn_engine *engine, gn_request_info *out, size_t cap);
/* Cancel by id; false: no such request. */
bool gn_engine_cancel(gn_engine *engine, uint64_t id);

typedef struct gn_engine_stats { /* counts since creation, and what is now */
    uint64_t n_requests, n_ended, n_failed, n_cancelled;
    uint64_t n_steps, n_rows;
    uint64_t n_prompt_tok; /* evaluated, those computed again after pre-emption included */
    uint64_t n_generated_tok;
    uint64_t n_forced_tok;
    uint64_t n_cache_query_tok, n_cache_hit_tok; /* of prompts */
    uint64_t n_preemptions;
    uint32_t n_running;
    uint32_t n_waiting[GN_N_PRIORITIES];
    uint32_t n_pages, n_pages_used,
        n_pages_cached; /* used: by requests; cached: held by the prefix cache alone */
    uint64_t page_bytes;
    uint64_t busy_ns; /* time spent in steps */
} gn_engine_stats;
void gn_engine_get_stats(gn_engine *engine, gn_engine_stats *out);

#endif
