/* From a prompt to an answer: what one-shot `run` and the chat share. One thread. */
#ifndef GN_CLI_ANSWER_H
#define GN_CLI_ANSWER_H

#include "cli/settings.h"
#include "ganglion/model.h"
#include "ganglion/session.h"

#include <stdio.h>

typedef struct gn_cli_asker_options {
    int64_t n_ctx;                   /* 0: the model's own */
    const gn_cli_list *stop;         /* stop strings; borrowed */
    const gn_cli_list *logit_bias;   /* "ID:BIAS" */
    const gn_cli_list *dry_breakers; /* texts; none: newline, colon, double quote, asterisk */
    gn_grammar *grammar;             /* of every answer; borrowed; NULL: any text */
    FILE *echo;                      /* the answer goes here as it comes; NULL: nowhere */
} gn_cli_asker_options;

/* A model with one session, and what the sampler needs to know of its vocabulary. */
typedef struct gn_cli_asker {
    gn_cli_asker_options options;
    gn_model *model; /* borrowed */
    gn_model_info info;
    size_t n_ctx;
    gn_session *session;
    gn_logit_bias *bias; /* [options.logit_bias->n] */
    int32_t *end_ids;    /* [n_end_ids] */
    size_t n_end_ids;
    int32_t *breakers; /* [n_breakers] */
    size_t n_breakers;
    bool echo_is_terminal;
    uint64_t n_answers;
} gn_cli_asker;

/* GN_E_ARG: a bias that can't be read. A zeroed asker may be given to fini. */
GN_MUST_USE gn_status gn_cli_asker_init(gn_cli_asker *asker, gn_model *model,
                                        const gn_cli_asker_options *options);
void gn_cli_asker_fini(gn_cli_asker *asker);

typedef struct gn_cli_answer { /* a zeroed one is valid and empty */
    gn_buf text;
    int32_t *ids;    /* [n]: the tokens chosen, the end token included */
    float *logprobs; /* [n] */
    size_t n;
    size_t cap;
    gn_finish finish;
    int32_t stop_index;  /* which stop string ended it, or -1 */
    bool grammar_closed; /* at the limit, by the grammar's shortest end */
    uint64_t seed;
    size_t n_prompt; /* tokens of the prompt, and how many of them the session still had */
    size_t n_reused;
    uint64_t prompt_ns;
    uint64_t generate_ns;
} gn_cli_answer;

void gn_cli_answer_fini(gn_cli_answer *answer);

/* Answer the text `prompt`, in which special tokens are parsed; `flags` adds GN_TOKENIZE_BOS. Ctrl-C ends
 * the answer early (GN_FINISH_CANCELLED) where gn_cli_interrupt_catch() was called. GN_E_LIMIT: the prompt
 * fills the context. */
GN_MUST_USE gn_status gn_cli_ask(gn_cli_asker *asker, const gn_cli_settings *settings,
                                 const char *prompt, size_t len, unsigned flags,
                                 gn_cli_answer *answer);

/* Render {"messages": messages, "add_generation_prompt": true} by the model's template and answer it. */
GN_MUST_USE gn_status gn_cli_ask_chat(gn_cli_asker *asker, const gn_cli_settings *settings,
                                      const json_t *messages, gn_cli_answer *answer);

/* One line of figures on standard error. */
void gn_cli_answer_stats(const gn_cli_answer *answer);

/* "stop", "length" or "cancelled". */
const char *gn_cli_finish_name(gn_finish finish);

#endif
