/* The bytes of a cache file, shared by reader and writer. Fields are little-endian, as is every machine
 * the kernels know. */
#ifndef GN_FILE_PANEL_FORMAT_H
#define GN_FILE_PANEL_FORMAT_H

#include "file/panel_cache.h"

#define GN_PANEL_MAGIC  "GNPANELS"
#define GN_PANEL_FORMAT 1u
#define GN_PANEL_ALIGN  4096u
#define GN_PANEL_SAMPLE 256u       /* bytes at the start and the end of each weight's panels */
#define GN_PANEL_MAX    (1u << 20) /* weights */

typedef struct gn_panel_header {
    char magic[8];
    uint32_t format;
    uint32_t layout;
    unsigned char key[GN_DIGEST_BYTES];
    uint64_t n_weights;
    uint64_t file_bytes;
    unsigned char samples[GN_DIGEST_BYTES];
    char model[1024];
    unsigned char reserved[GN_PANEL_ALIGN - 8 - 8 - 16 - 1024 - 3 * GN_DIGEST_BYTES];
    unsigned char digest[GN_DIGEST_BYTES]; /* of the header before it and the table */
} gn_panel_header;

typedef struct gn_panel_row {
    uint64_t offset; /* of the first panel; 0: no packed form */
    uint64_t n_panels;
    uint64_t stride; /* bytes of a panel */
} gn_panel_row;

_Static_assert(sizeof(gn_panel_header) == GN_PANEL_ALIGN, "a header is one page");
_Static_assert(sizeof(gn_panel_row) == 24, "a row of the table has no padding");

/* Where each weight's panels lie: rows [n]; returns the bytes of the file, 0 where they overflow. */
uint64_t gn_panel_layout(const gn_view *const *weights, size_t n, gn_panel_row *rows);

/* Digest of header and table. */
GN_MUST_USE gn_status gn_panel_header_digest(const gn_panel_header *header,
                                             const gn_panel_row *rows,
                                             unsigned char out[GN_DIGEST_BYTES]);

/* Append FOLDER/KEY.SUFFIX. */
GN_MUST_USE gn_status gn_panel_path(const char *folder, const gn_panel_key *key, const char *suffix,
                                    gn_buf *out);

#endif
