/* The larger steps of normalize.c, each in a file of its own. */
#ifndef GN_TEXT_NORMALIZE_STEPS_H
#define GN_TEXT_NORMALIZE_STEPS_H

#include "text/normalize.h"

/* Append one code point. */
GN_MUST_USE gn_status gn_norm_put(gn_buf *out, uint32_t cp);

/* NFC, NFD, NFKC or NFKD of s[0 .. len). */
GN_MUST_USE gn_status gn_norm_form(gn_norm_kind form, gn_norm_work *work, const char *s, size_t len,
                                   gn_buf *out);

/* SentencePiece's precompiled_charsmap: u32 size of the trie in bytes, the trie, the strings. */
GN_MUST_USE gn_status gn_norm_map_parse(const void *data, size_t size, gn_norm_map *map);
/* At each place the longest entry of the map is replaced. */
GN_MUST_USE gn_status gn_norm_map_apply(const gn_norm_map *map, const char *s, size_t len,
                                        gn_buf *out);
/* The same as the `tokenizers` library does it: a grapheme of under 6 bytes as a whole, else each
 * character, by the shortest entry that it starts with. */
GN_MUST_USE gn_status gn_norm_map_apply_hf(const gn_norm_map *map, const char *s, size_t len,
                                           gn_buf *out);

#endif
