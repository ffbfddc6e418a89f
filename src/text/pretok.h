/* Pre-tokenizers: the steps that cut a text into words before the model sees it. Steps mean what
 * the `tokenizers` library's of the same name do. Immutable once built; each call brings its work
 * area. */
#ifndef GN_TEXT_PRETOK_H
#define GN_TEXT_PRETOK_H

#include "base/buf.h"
#include "text/pattern.h"

#define GN_PRETOK_MAX_STEPS 24

typedef enum gn_pretok_kind {
    GN_PRETOK_SPLIT,       /* by a pattern */
    GN_PRETOK_DIGITS,      /* by numeric characters: each alone (GN_SPLIT_ISOLATED) or in runs */
    GN_PRETOK_DIGITS3,     /* runs of decimal digits in threes, counted from the right */
    GN_PRETOK_SPACE,       /* at white space */
    GN_PRETOK_PUNCT,       /* at punctuation */
    GN_PRETOK_SPACE_FIRST, /* put a space in front where there is none */
    GN_PRETOK_METASPACE,   /* spaces to a mark, and cut before it */
    GN_PRETOK_LETTERS,     /* bytes to GPT-2's letters; only where steps follow that look at them */
} gn_pretok_kind;

typedef enum gn_pretok_split {                    /* what becomes of a match */
                               GN_SPLIT_ISOLATED, /* a word of its own */
                               GN_SPLIT_REMOVED,
                               GN_SPLIT_CONTIGUOUS, /* neighbouring matches are one word */
                               GN_SPLIT_WITH_PREVIOUS,
                               GN_SPLIT_WITH_NEXT,
} gn_pretok_split;

typedef enum gn_pretok_prepend {
    GN_PREPEND_NEVER,
    GN_PREPEND_FIRST, /* at the start of the whole text */
    GN_PREPEND_ALWAYS,
} gn_pretok_prepend;

typedef struct gn_pretok_step {
    gn_pretok_kind kind;
    gn_pretok_split split;
    bool invert;               /* SPLIT: what does not match is the match */
    bool boundary;             /* DIGITS3: only runs that no word character follows */
    bool cut;                  /* METASPACE: cut before the mark */
    gn_pretok_prepend prepend; /* METASPACE */
    gn_pattern *pattern;       /* SPLIT; owned */
    char mark[8];              /* METASPACE; NUL-terminated */
} gn_pretok_step;

typedef struct gn_pretok {
    gn_pretok_step steps[GN_PRETOK_MAX_STEPS];
    size_t n;
} gn_pretok;

/* Append a step; what it owns passes over, on failure too. GN_E_LIMIT beyond
 * GN_PRETOK_MAX_STEPS. */
GN_MUST_USE gn_status gn_pretok_add(gn_pretok *pretok, gn_pretok_step step);
/* Append a split by an expression. */
GN_MUST_USE gn_status gn_pretok_add_split(gn_pretok *pretok, const char *regex, size_t len,
                                          bool literal, gn_pretok_split split, bool invert);
void gn_pretok_fini(gn_pretok *pretok);

typedef struct gn_pretok_work { /* a zeroed one is valid */
    gn_pattern_work pattern;
    gn_buf text[GN_PRETOK_MAX_STEPS]; /* of the steps that rewrite */
} gn_pretok_work;

void gn_pretok_work_fini(gn_pretok_work *work);

typedef gn_status gn_pretok_word(void *ctx, const char *word, size_t len);

/* Cut text[0 .. len), valid UTF-8, and call `word` for each piece in order (never an empty one);
 * its failure ends the walk. `first`: the text is the start of the whole input. */
GN_MUST_USE gn_status gn_pretok_run(const gn_pretok *pretok, gn_pretok_work *work, const char *text,
                                    size_t len, bool first, gn_pretok_word *word, void *ctx);

/* GPT-2's expression. */
extern const char gn_pretok_gpt2[];

#endif
