/* Text ↔ token ids, by the model's own rules: normalizer, pre-tokenizer, BPE / unigram / WordPiece model,
 * special tokens. Built from a GGUF's tokenizer.ggml.* keys or from a Hugging Face tokenizer.json.
 * Immutable after creation: any thread may encode and decode. Encoding is linear in the input. */
#ifndef GN_TEXT_TOKENIZER_H
#define GN_TEXT_TOKENIZER_H

#include "base/buf.h"
#include "base/status.h"
#include "file/source.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct gn_tokenizer gn_tokenizer;

typedef struct gn_token_list { /* a zeroed one is valid and empty */
    int32_t *ids;
    size_t n;
    size_t cap;
} gn_token_list;

void gn_token_list_fini(gn_token_list *list);

/* Build from an open source, which may be closed afterwards. GN_E_FORMAT, GN_E_UNSUPPORTED (a
 * pre-tokenizer or model type that is not known: named with the list of those that are), GN_E_NOMEM. */
GN_MUST_USE gn_status gn_tokenizer_create(const gn_source *source, gn_tokenizer **out);
GN_MUST_USE gn_status gn_tokenizer_create_gguf(const gn_gguf *gguf, gn_tokenizer **out);
/* config (tokenizer_config.json) may be NULL. */
GN_MUST_USE gn_status gn_tokenizer_create_hf(const json_t *tokenizer, const json_t *config,
                                             gn_tokenizer **out);
void gn_tokenizer_destroy(gn_tokenizer *tokenizer);

#define GN_ENCODE_SPECIAL                                                                          \
    1u                   /* parse special tokens in the text (`<|im_start|>`), else they are text */
#define GN_ENCODE_BOS 2u /* add what the model adds around a text (BOS, [CLS] … [SEP]) */

/* Append the ids of text[0 .. len) to `out`. Invalid UTF-8 is kept byte by byte where the vocabulary can
 * (byte-level BPE, byte fallback), else becomes U+FFFD. On failure `out` keeps what it had. */
GN_MUST_USE gn_status gn_tokenizer_encode(const gn_tokenizer *tokenizer, const char *text,
                                          size_t len, unsigned flags, gn_token_list *out);

/* Models are padded: let ids up to n_rows, the rows of their logits, be tokens without a text. */
void gn_tokenizer_set_rows(gn_tokenizer *tokenizer, int32_t n_rows);

/* Append the bytes of one token, as they stand in the middle of a text (SentencePiece's ▁ is a space).
 * Special (control) tokens give their text only if `special`. An id out of range is GN_E_ARG.
 * The bytes of one token may end inside a UTF-8 sequence: text/detok.h joins them. */
GN_MUST_USE gn_status gn_tokenizer_piece(const gn_tokenizer *tokenizer, int32_t id, bool special,
                                         gn_buf *out);

/* Append the text of ids[0 .. n) as the reference decodes it (a leading space that the encoder added is
 * taken off). */
GN_MUST_USE gn_status gn_tokenizer_decode(const gn_tokenizer *tokenizer, const int32_t *ids,
                                          size_t n, bool special, gn_buf *out);

int32_t gn_tokenizer_n_vocab(const gn_tokenizer *tokenizer);
/* -1 where the model has none. */
int32_t gn_tokenizer_bos(const gn_tokenizer *tokenizer);
int32_t gn_tokenizer_eos(const gn_tokenizer *tokenizer);
int32_t gn_tokenizer_pad(const gn_tokenizer *tokenizer);
bool gn_tokenizer_adds_bos(const gn_tokenizer *tokenizer);
/* Does this id end a generation (eos, eot, eom, and the end-of-turn tokens known by their text)? */
bool gn_tokenizer_is_end(const gn_tokenizer *tokenizer, int32_t id);
bool gn_tokenizer_is_special(const gn_tokenizer *tokenizer, int32_t id);
/* The id whose exact text (vocabulary spelling) is s, or -1. */
int32_t gn_tokenizer_find(const gn_tokenizer *tokenizer, const char *s, size_t len);
/* The vocabulary's own spelling of an id (byte-level letters, ▁ …); NULL where out of range. Borrowed. */
const char *gn_tokenizer_spelling(const gn_tokenizer *tokenizer, int32_t id, size_t *len);
/* The chat template that came with the tokenizer, or NULL. Borrowed. */
const char *gn_tokenizer_chat_template(const gn_tokenizer *tokenizer);

#endif
