/* Layout and digests of a cache file. */
#include "file/panel_format.h"

#include "base/checked.h"
#include "os/folder.h"
#include "tensor/panels.h"

#include <stddef.h>

#define KEY_HEAD_BYTES 65536u /* of each model file, taken into the key */

uint64_t gn_panel_layout(const gn_view *const *weights, size_t n, gn_panel_row *rows)
{
    size_t at = sizeof(gn_panel_header);
    size_t table;
    if (!gn_checked_mul(n, sizeof *rows, &table) || !gn_checked_add(at, table, &at)) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        gn_panel_row row = {.stride = gn_panels_stride(weights[i])};
        if (row.stride != 0) {
            row.n_panels = gn_panels_count(weights[i]);
            if (!gn_checked_align(at, GN_PANEL_ALIGN, &at) ||
                !gn_checked_mul(row.n_panels, row.stride, &bytes)) {
                return 0;
            }
            row.offset = at;
        }
        if (!gn_checked_add(at, bytes, &at)) {
            return 0;
        }
        if (rows != NULL) {
            rows[i] = row;
        }
    }
    return at;
}

uint64_t gn_panel_cache_bytes(const gn_view *const *weights, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n && !any; i++) {
        any = gn_panels_stride(weights[i]) != 0;
    }
    return any ? gn_panel_layout(weights, n, NULL) : 0;
}

gn_status gn_panel_header_digest(const gn_panel_header *header, const gn_panel_row *rows,
                                 unsigned char out[GN_DIGEST_BYTES])
{
    gn_digest *digest = NULL;
    GN_TRY(gn_digest_create(GN_DIGEST_BLAKE2B, &digest));
    gn_digest_update(digest, header, offsetof(gn_panel_header, digest));
    gn_digest_update(digest, rows, header->n_weights * sizeof *rows);
    gn_digest_final(digest, out);
    gn_digest_destroy(digest);
    return GN_OK;
}

static void add_u64(gn_digest *digest, uint64_t v)
{
    gn_digest_update(digest, &v, sizeof v);
}

static gn_status add_weight(gn_digest *digest, const gn_source *source, const gn_view *w)
{
    uintptr_t at = (uintptr_t)w->data;
    for (size_t i = 0; i < gn_source_n_maps(source); i++) {
        const gn_os_map *map = gn_source_map_at(source, i);
        uintptr_t base = (uintptr_t)map->data;
        if (map->data != NULL && at >= base && at - base < map->size) {
            add_u64(digest, i);
            add_u64(digest, at - base);
            add_u64(digest, (uint64_t)w->dtype);
            add_u64(digest, (uint64_t)w->n_dims);
            gn_digest_update(digest, w->shape, sizeof w->shape);
            return GN_OK;
        }
    }
    return gn_base_fail(GN_E_STATE, "a weight lies outside the model's files");
}

gn_status gn_panel_key_find(const gn_source *source, const gn_view *const *weights, size_t n,
                            gn_panel_key *out)
{
    gn_digest *digest = NULL;
    GN_TRY(gn_digest_create(GN_DIGEST_BLAKE2B, &digest));
    add_u64(digest, GN_PANEL_FORMAT);
    add_u64(digest, GN_PANELS_LAYOUT);
    for (size_t i = 0; i < gn_source_n_maps(source); i++) {
        const gn_os_map *map = gn_source_map_at(source, i);
        add_u64(digest, map->size);
        add_u64(digest, map->id.inode);
        add_u64(digest, (uint64_t)map->id.mtime_ns);
        add_u64(digest, (uint64_t)map->id.ctime_ns);
        gn_digest_update(digest, map->data,
                         map->size < KEY_HEAD_BYTES ? map->size : KEY_HEAD_BYTES);
    }
    gn_status status = GN_OK;
    for (size_t i = 0; i < n && status == GN_OK; i++) {
        status = add_weight(digest, source, weights[i]);
    }
    gn_digest_final(digest, out->digest);
    gn_digest_destroy(digest);
    return status;
}

gn_status gn_panel_path(const char *folder, const gn_panel_key *key, const char *suffix,
                        gn_buf *out)
{
    char hex[GN_DIGEST_HEX_BYTES];
    gn_digest_to_hex(key->digest, hex);
    return gn_buf_printf(out, "%s/%.32s%s", folder, hex, suffix);
}

gn_status gn_panel_cache_folder(gn_buf *out)
{
    return gn_os_cache_folder("GANGLION_CACHE_DIR", "panels", out);
}
