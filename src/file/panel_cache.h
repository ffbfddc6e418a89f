/* Cache files of packed weights (tensor/panels.h). A file belongs to one state of one model and one layout;
 * it is written once, never changed, and mapped by every process that uses the model.
 *
 * Key: BLAKE2b-256 over the format's and the layout's version, of each model file its size, inode, times of
 * last write and change, and first 64 KiB, and of each weight its place, type and shape. So a model file
 * that was written to, replaced or copied gets a new cache file (packing takes seconds); the key is found
 * without reading the weights. What it can't see is a write that leaves both times as they were, which
 * needs a set clock or a raw device.
 *
 * File, little-endian: a header page of 4096 bytes, the table of weights (24 bytes each), then the panels of
 * each weight, each run at a multiple of 4096. The header has a digest over itself and the table, and one
 * over samples of every weight's panels; both are checked at open, so that a file that was cut, half
 * written or damaged in many places is not used. Panels hold numbers only: no value in them can make the
 * kernels read elsewhere. docs/FORMATS.md has the fields.
 *
 * The folder: GANGLION_CACHE_DIR, else XDG_CACHE_HOME/ganglion/panels, else ~/.cache/ganglion/panels. */
#ifndef GN_FILE_PANEL_CACHE_H
#define GN_FILE_PANEL_CACHE_H

#include "base/buf.h"
#include "file/digest.h"
#include "file/source.h"

#include <stdbool.h>

typedef struct gn_panel_key {
    unsigned char digest[GN_DIGEST_BYTES];
} gn_panel_key;

/* weights [n]: borrowed; those whose gn_panels_stride() is 0 take part in the key and get no panels.
 * GN_E_NOMEM, GN_E_UNAVAILABLE; GN_E_STATE where a weight lies outside the source's files. */
GN_MUST_USE gn_status gn_panel_key_find(const gn_source *source, const gn_view *const *weights,
                                        size_t n, gn_panel_key *out);

/* Bytes of the cache file for these weights; 0: none of them has a packed form. */
uint64_t gn_panel_cache_bytes(const gn_view *const *weights, size_t n);

/* Append the folder's path. GN_E_NOT_FOUND without a home folder. */
GN_MUST_USE gn_status gn_panel_cache_folder(gn_buf *out);

/* An open cache file. Immutable; must outlive the views that point into it. */
typedef struct gn_panel_cache gn_panel_cache;

/* Map and check the file of `key` in `folder`, and note its use by its time of last write (for the
 * removal of the least used). GN_E_NOT_FOUND: none; GN_E_FORMAT: damaged, or not of these weights. */
GN_MUST_USE gn_status gn_panel_cache_open(const char *folder, const gn_panel_key *key,
                                          const gn_view *const *weights, size_t n,
                                          gn_panel_cache **out);
void gn_panel_cache_close(gn_panel_cache *cache);
/* Panels of weight i, or NULL where it has no packed form. */
const void *gn_panel_cache_at(const gn_panel_cache *cache, size_t i);

/* --- the folder as a whole --- */

#define GN_PANEL_CACHE_NAME (2 * 16 + 8) /* "<32 hex digits>.panels" with the NUL */

typedef struct gn_panel_cache_entry {
    char file[GN_PANEL_CACHE_NAME];
    char model[1024]; /* path of the model it was made from, "" where unreadable; any bytes */
    uint64_t bytes;
    int64_t used_ns; /* when it was last used, since 1970 */
    bool partial;    /* being written, or left by a writer that was killed */
} gn_panel_cache_entry;

/* All entries, least recently used first. *entries: gn_free(). A folder that is absent is empty. */
GN_MUST_USE gn_status gn_panel_cache_list(const char *folder, gn_panel_cache_entry **entries,
                                          size_t *n);
/* Remove one by its file name or the path or file name of its model (all that match), or all with NULL.
 * Processes that have a file mapped keep it until they end. *n, *bytes: removed.
 * GN_E_NOT_FOUND: no match; GN_E_UNAVAILABLE: not permitted. */
GN_MUST_USE gn_status gn_panel_cache_remove(const char *folder, const char *what, size_t *n,
                                            uint64_t *bytes);

/* --- writing --- */

typedef struct gn_panel_write {
    const char *folder; /* made where absent */
    const char *model;  /* path of the model, for the list */
    gn_panel_key key;
    const gn_view *const *weights; /* [n] */
    size_t n;
    uint64_t limit_bytes; /* of all cache files; 0: a quarter of the folder's file system */
    /* Called about every 2 MiB on the writer's thread; false stops. May be NULL. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} gn_panel_write;

/* Write the file: under the name KEY.part, locked against other writers, synchronised to the disk, then
 * renamed; so KEY.panels is whole or absent whatever happens, and a part left by a killed writer is
 * taken over by the next. Older files of the same model go, and the least recently used while all
 * together pass the limit. Where a good file is there already, nothing is written. Blocks for seconds.
 * GN_E_STATE: another process is writing it; GN_E_CANCELLED; GN_E_LIMIT: it would not fit the limit or the
 * disk; GN_E_UNAVAILABLE: the folder can't be written; GN_E_NOMEM. Nothing is left behind on failure. */
GN_MUST_USE gn_status gn_panel_cache_write(const gn_panel_write *job);

#endif
