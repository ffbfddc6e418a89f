/* The automaton of a grammar, made while texts are matched.
 *
 * A configuration is a state of a regular expression and the frame to go on with when it ends; frames are interned,
 * each names its parent, so that many stacks share their lower parts. A state is the set of configurations that
 * the text may be in. All of it belongs to the grammar and is used under its lock. */
#ifndef GN_GRAMMAR_AUTOMATON_H
#define GN_GRAMMAR_AUTOMATON_H

#include "grammar/compile.h"
#include "grammar/ir_impl.h"
#include "grammar/vocab_impl.h"

#include <pthread.h>

typedef struct au_frame {
    uint32_t node; /* IR node; 0 is the bottom of all stacks */
    uint32_t a,
        b; /* IR_SEQ: next child. IR_REP: times done. IR_OBJ, IR_ARR: see ir_place; a may be a set */
    uint32_t parent;
    uint64_t cost; /* least bytes from the moment this frame goes on to the end of the text */
    uint32_t next; /* IR_OBJ, IR_ARR: what may come after a value, 0: not made yet */
    uint32_t hash;
} au_frame;

typedef struct au_config {
    gn_re re;
    uint32_t frame;
} au_config;

typedef struct au_state {
    uint32_t at, n; /* configurations, in order */
    uint32_t hash;
    bool may_end;
    uint32_t *mask; /* NULL: not computed, or evicted */
} au_state;

typedef struct au_terminal { /* the walk of the whole trie from one state of a regular expression */
    gn_re re;
    const gn_vocab_walk *walk;
    bool mine; /* not shared */
} au_terminal;

typedef struct au_item { /* what is left to do of a closure */
    uint32_t id;         /* node to enter, or 0: let the frame go on */
    uint32_t frame;
} au_item;

#define AU_MASKS 256u

struct gn_grammar {
    int refs; /* atomic */
    pthread_mutex_t lock;
    gn_ir_builder *b;
    gn_ir root;
    gn_status status; /* what ended the automaton, or GN_OK */
    au_frame *frames;
    uint32_t n_frames, cap_frames;
    uint32_t *frame_table, frame_table_cap;
    uint64_t *set_words; /* interned sets: length, then words */
    uint32_t n_set_words, cap_set_words;
    uint64_t *work; /* words of the largest set */
    uint32_t n_work;
    au_config *configs;
    uint32_t n_configs, cap_configs;
    au_state *states;
    uint32_t n_states, cap_states;
    uint32_t *state_table, state_table_cap;
    au_item *items;
    uint32_t n_items, cap_items, done_items;
    au_config *build;
    uint32_t n_build, cap_build;
    bool build_end;
    au_terminal *terminals;
    uint32_t n_terminals, cap_terminals;
    gn_vocab_index *index;     /* that the masks and walks are of: the first matcher's */
    uint32_t masked[AU_MASKS]; /* states with a mask, a ring */
    uint32_t n_masked;
    struct au_job *jobs; /* what is left of the walks that make a mask */
    uint32_t n_jobs, cap_jobs;
    const gn_re **rows; /* [max_depth + 1], of the walk */
    gn_re *loop_at;     /* the same */
    uint64_t steps;     /* nodes of the trie visited for this mask */
    uint32_t start;
};

#define AU_DEAD UINT32_MAX

/* Under the lock, all of these. AU_DEAD is the empty state; a failure leaves it in g->status. */
uint32_t gn_grammar_au_start(gn_grammar *g);
uint32_t gn_grammar_au_step(gn_grammar *g, uint32_t state, uint8_t byte);
/* Configurations that follow when `re` with `frame` may end, added to g->build. */
void gn_grammar_au_begin(gn_grammar *g);
void gn_grammar_au_end_of(gn_grammar *g, gn_re re, uint32_t frame);
void gn_grammar_au_close(gn_grammar *g);
bool gn_grammar_au_fail(gn_grammar *g, gn_status status, const char *why);
/* Room in an array that doubles; false: recorded in g->status. */
bool gn_grammar_au_grow(gn_grammar *g, void **array, uint32_t *cap, size_t need, size_t bytes);
/* Least bytes from this configuration to the end of the text. */
uint64_t gn_grammar_au_cost(gn_grammar *g, au_config c);
gn_status gn_grammar_au_status(const gn_grammar *g);
/* The mask of a state, kept with it until evicted; NULL: g->status. The grammar has an index. */
const uint32_t *gn_grammar_au_mask(gn_grammar *g, uint32_t state);

#endif
