/* Normalizers: what a tokenizer does to the text before it cuts it. Steps mean what the
 * `tokenizers` library's of the same name do. Immutable once built. Linear in the text. */
#ifndef GN_TEXT_NORMALIZE_H
#define GN_TEXT_NORMALIZE_H

#include "base/buf.h"
#include "text/pattern.h"

#include <stdint.h>

#define GN_NORM_MAX_STEPS 24

typedef enum gn_norm_kind {
    GN_NORM_NFC,
    GN_NORM_NFD,
    GN_NORM_NFKC,
    GN_NORM_NFKD,
    GN_NORM_LOWERCASE,
    GN_NORM_STRIP,         /* white space at the ends */
    GN_NORM_STRIP_ACCENTS, /* all marks out */
    GN_NORM_STRIP_MN,      /* nonspacing marks out (BERT) */
    GN_NORM_REPLACE,       /* what the pattern finds by `text` */
    GN_NORM_PREPEND,       /* `text`, unless the text is empty */
    GN_NORM_BERT_CLEAN,    /* control characters out, white space to spaces */
    GN_NORM_BERT_CJK,      /* spaces around ideographs */
    GN_NORM_NMT,           /* control characters out, odd spaces to spaces */
    GN_NORM_CHARSMAP,      /* SentencePiece's precompiled map, in its own way: longest match */
    GN_NORM_CHARSMAP_HF,   /* the same map as the `tokenizers` library reads it: by grapheme */
    GN_NORM_SQUEEZE,       /* SentencePiece's remove_extra_whitespaces */
    GN_NORM_LETTERS,       /* bytes to GPT-2's letters */
} gn_norm_kind;

typedef struct gn_norm_map { /* SentencePiece's map: a Darts double array, then strings */
    uint32_t *units;
    size_t n_units;
    char *strings; /* NUL-terminated ones; the last byte is NUL */
    size_t n_strings;
} gn_norm_map;

typedef struct gn_norm_step {
    gn_norm_kind kind;
    bool left; /* STRIP */
    bool right;
    gn_pattern *pattern; /* REPLACE; owned, as all below */
    char *text;
    size_t text_len;
    gn_norm_map map;
} gn_norm_step;

typedef struct gn_norm {
    gn_norm_step steps[GN_NORM_MAX_STEPS];
    size_t n;
} gn_norm;

/* Append a step; what it owns passes over, on failure too. */
GN_MUST_USE gn_status gn_norm_add(gn_norm *norm, gn_norm_step step);
GN_MUST_USE gn_status gn_norm_add_kind(gn_norm *norm, gn_norm_kind kind);
GN_MUST_USE gn_status gn_norm_add_replace(gn_norm *norm, const char *find, size_t find_len,
                                          bool literal, const char *text, size_t text_len);
GN_MUST_USE gn_status gn_norm_add_prepend(gn_norm *norm, const char *text, size_t text_len);
/* Copy and check a precompiled_charsmap. */
GN_MUST_USE gn_status gn_norm_add_charsmap(gn_norm *norm, const void *data, size_t size, bool hf);
void gn_norm_fini(gn_norm *norm);

typedef struct gn_norm_work { /* a zeroed one is valid */
    gn_pattern_work pattern;
    gn_buf text[2];
    int32_t *cps; /* a run of code points being composed */
    size_t cap;
} gn_norm_work;

void gn_norm_work_fini(gn_norm_work *work);

/* Normalize text[0 .. len), valid UTF-8. *out borrows from `text` or `work` until the next call.
 * `joined`: the piece continues a text (it follows bytes that are no UTF-8): nothing is
 * prepended. */
GN_MUST_USE gn_status gn_norm_run(const gn_norm *norm, gn_norm_work *work, const char *text,
                                  size_t len, bool joined, const char **out, size_t *out_len);

#endif
