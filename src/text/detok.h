/* Streaming detokenizer: token ids in, whole UTF-8 sequences out. One thread at a time. */
#ifndef GN_TEXT_DETOK_H
#define GN_TEXT_DETOK_H

#include "text/tokenizer.h"

typedef struct gn_detok {
    const gn_tokenizer *tokenizer; /* borrowed */
    bool special;                  /* show special tokens */
    bool at_start;                 /* nothing was emitted yet: strip the encoder's leading space */
    gn_buf held; /* bytes held back because more could complete them, ≤ 3 and a piece */
} gn_detok;

void gn_detok_init(gn_detok *detok, const gn_tokenizer *tokenizer, bool special, bool at_start);
void gn_detok_fini(gn_detok *detok);

/* Append to `out` the text that this id completes: always whole UTF-8 sequences; a byte that can never be
 * valid becomes U+FFFD. */
GN_MUST_USE gn_status gn_detok_push(gn_detok *detok, int32_t id, gn_buf *out);
/* Append what is still held (an incomplete sequence becomes one U+FFFD). */
GN_MUST_USE gn_status gn_detok_flush(gn_detok *detok, gn_buf *out);

#endif
