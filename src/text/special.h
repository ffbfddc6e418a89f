/* Tokens that are found in the text itself before anything else happens to it: special tokens and
 * added ones. Leftmost first, of several at one place the longest, as the `tokenizers` library
 * does. */
#ifndef GN_TEXT_SPECIAL_H
#define GN_TEXT_SPECIAL_H

#include "text/trie.h"

#include <stdbool.h>

/* Longer ones are refused: the search costs text × longest token at worst. */
#define GN_SPECIAL_MAX_LEN 1024

typedef enum gn_special_flags {
    GN_SPECIAL_LSTRIP = 1,      /* takes the white space before it */
    GN_SPECIAL_RSTRIP = 2,      /* takes the white space behind it */
    GN_SPECIAL_SINGLE_WORD = 4, /* not inside a word */
    GN_SPECIAL_CONTROL = 8,     /* found only where special tokens are parsed */
} gn_special_flags;

typedef struct gn_special_item {
    gn_trie_item text; /* borrowed during the build */
    unsigned flags;
} gn_special_item;

typedef struct gn_special {
    gn_trie trie;   /* value: index into ids and flags */
    int32_t *ids;   /* [n] */
    uint8_t *flags; /* [n] */
    size_t n;
} gn_special;

/* GN_E_FORMAT: a token that is empty or too long. A zeroed gn_special is valid and finds
 * nothing. */
GN_MUST_USE gn_status gn_special_build(gn_special *special, const gn_special_item *items, size_t n);
void gn_special_fini(gn_special *special);

typedef struct gn_special_match {
    int32_t id; /* -1: none in the rest of the text */
    size_t start;
    size_t end; /* stripped space included */
} gn_special_match;

/* The first token in text[from .. len), which is valid UTF-8; `control`: those too. What lstrip
 * takes reaches back to `from` at most. */
gn_special_match gn_special_find(const gn_special *special, const char *text, size_t len,
                                 size_t from, bool control);

#endif
