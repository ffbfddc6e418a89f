/* The tokenizer as a whole: its parts in the order a text passes them. Only the tokenizer_*.c files
 * include this. */
#ifndef GN_TEXT_TOKENIZER_IMPL_H
#define GN_TEXT_TOKENIZER_IMPL_H

#include "text/bpe.h"
#include "text/normalize.h"
#include "text/pretok.h"
#include "text/special.h"
#include "text/tokenizer.h"
#include "text/unigram.h"
#include "text/vocab.h"
#include "text/wordpiece.h"

typedef enum gn_model_kind {
    GN_MODEL_BPE,
    GN_MODEL_UNIGRAM,
    GN_MODEL_WORDPIECE,
} gn_model_kind;

typedef enum gn_spell_kind {                   /* how a spelling becomes bytes again */
                             GN_SPELL_LETTERS, /* GPT-2's byte letters */
                             GN_SPELL_MARK,    /* ▁ is a space, <0xNN> a byte */
                             GN_SPELL_WORDPIECE, /* a space before each piece that does not continue a word */
                             GN_SPELL_SUFFIX, /* a suffix that ends a word is a space */
                             GN_SPELL_PLAIN,
} gn_spell_kind;

struct gn_tokenizer {
    gn_vocab vocab;
    bool *ends;            /* [n_vocab] ends a generation */
    bool *added;           /* [n_vocab] spelled as it stands, whatever the model's letters */
    gn_special raw;        /* looked for in the text as given */
    gn_special normalized; /* looked for in the normalized text */
    gn_norm norm;
    gn_pretok pretok;
    gn_model_kind model;
    gn_bpe bpe;
    gn_unigram unigram;
    gn_wordpiece wordpiece;
    bool keeps_bytes; /* bytes that are no UTF-8 have tokens */
    gn_spell_kind spell;
    bool strips_start; /* decoding takes off one leading space */
    bool cleans_up;    /* WordPiece: no space before punctuation */
    char mark[8];      /* GN_SPELL_MARK: what stands for a space */
    char *affix; /* GN_SPELL_WORDPIECE: what marks a continuation; GN_SPELL_SUFFIX: a word's end */
    int32_t n_rows; /* ids beyond vocab.n and below this have no text */
    int32_t bos;
    int32_t eos;
    int32_t pad;
    bool adds_bos_by_family; /* where the file does not say */
    bool adds_eos_by_family;
    gn_token_list before; /* what GN_ENCODE_BOS adds */
    gn_token_list after;
    char *chat_template;
};

/* Take a buffer back to a length it had; its NUL follows. */
GN_INLINE void gn_text_cut(gn_buf *buf, size_t len)
{
    buf->len = len;
    if (buf->data != NULL) {
        buf->data[len] = '\0';
    }
}

/* A tokenizer with nothing in it and no special ids. NULL: out of memory. */
gn_tokenizer *gn_tokenizer_new(void);
/* Allocate what depends on the size of the vocabulary, which is built. */
GN_MUST_USE gn_status gn_tokenizer_size(gn_tokenizer *t);
/* Once all parts are there: find the tokens that end a generation by their text, and what else
 * follows from the parts. */
GN_MUST_USE gn_status gn_tokenizer_finish(gn_tokenizer *t);
/* ids is an integer from a file: mark that it ends a generation. GN_E_FORMAT beyond the
 * vocabulary. */
GN_MUST_USE gn_status gn_tokenizer_add_end(gn_tokenizer *t, int64_t id);

/* Set the pre-tokenizer, normalizer and flags of a family by its name in tokenizer.ggml.pre.
 * GN_E_UNSUPPORTED: message with the names that are known. */
GN_MUST_USE gn_status gn_tokenizer_set_family(gn_tokenizer *t, const char *name, size_t len);

#endif
