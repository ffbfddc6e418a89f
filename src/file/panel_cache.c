/* Reading a cache file. What the file says about places and sizes is not used: the table is computed anew
 * from the weights and must equal the file's byte for byte, so nothing in it can lead outside. */
#include "file/panel_cache.h"

#include "base/alloc.h"
#include "file/panel_format.h"
#include "tensor/panels.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct gn_panel_cache {
    gn_os_map map;
    size_t n;
    gn_panel_row *rows; /* [n] */
};

static gn_status check_samples(const gn_panel_cache *c, const gn_panel_header *header,
                               const char *path)
{
    gn_digest *digest = NULL;
    GN_TRY(gn_digest_create(GN_DIGEST_BLAKE2B, &digest));
    for (size_t i = 0; i < c->n; i++) {
        size_t bytes = (size_t)(c->rows[i].n_panels * c->rows[i].stride);
        size_t sample = bytes < GN_PANEL_SAMPLE ? bytes : GN_PANEL_SAMPLE;
        const unsigned char *at = c->map.data + c->rows[i].offset;
        gn_digest_update(digest, at, sample);
        gn_digest_update(digest, at + bytes - sample, sample);
    }
    unsigned char found[GN_DIGEST_BYTES];
    gn_digest_final(digest, found);
    gn_digest_destroy(digest);
    GN_REQUIRE(memcmp(found, header->samples, sizeof found) == 0, GN_E_FORMAT,
               "%s: the packed weights do not have the digest in the header", path);
    return GN_OK;
}

static gn_status check(const gn_panel_cache *c, const gn_panel_key *key, uint64_t bytes,
                       const char *path)
{
    GN_REQUIRE(c->map.size == bytes, GN_E_FORMAT,
               "%s: found %zu bytes, expected %llu for this model", path, c->map.size,
               (unsigned long long)bytes);
    const gn_panel_header *header = (const gn_panel_header *)c->map.data;
    GN_REQUIRE(memcmp(header->magic, GN_PANEL_MAGIC, sizeof header->magic) == 0 &&
                   header->format == GN_PANEL_FORMAT && header->layout == GN_PANELS_LAYOUT,
               GN_E_FORMAT, "%s: not a cache file of format %u and layout %u", path,
               GN_PANEL_FORMAT, GN_PANELS_LAYOUT);
    GN_REQUIRE(memcmp(header->key, key->digest, sizeof key->digest) == 0 &&
                   header->n_weights == c->n && header->file_bytes == bytes,
               GN_E_FORMAT, "%s: the header describes another model", path);
    unsigned char found[GN_DIGEST_BYTES];
    GN_TRY(gn_panel_header_digest(header, c->rows, found));
    GN_REQUIRE(memcmp(found, header->digest, sizeof found) == 0 &&
                   memcmp(header + 1, c->rows, c->n * sizeof *c->rows) == 0,
               GN_E_FORMAT, "%s: the header does not have its own digest", path);
    return check_samples(c, header, path);
}

static gn_status open_at(gn_panel_cache *c, const char *path, const gn_panel_key *key,
                         const gn_view *const *weights)
{
    c->rows = gn_calloc(c->n, sizeof *c->rows);
    if (c->rows == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_os_map_file(path, &c->map));
    return check(c, key, gn_panel_layout(weights, c->n, c->rows), path);
}

gn_status gn_panel_cache_open(const char *folder, const gn_panel_key *key,
                              const gn_view *const *weights, size_t n, gn_panel_cache **out)
{
    gn_buf path = {0};
    gn_panel_cache *c = gn_calloc(1, sizeof *c);
    if (c == NULL) {
        return gn_alloc_failed();
    }
    c->n = n;
    gn_status status = gn_panel_path(folder, key, ".panels", &path);
    if (status == GN_OK) {
        status = open_at(c, path.data, key, weights);
    }
    if (status == GN_OK) {
        /* Its times are only a note for gn_panel_cache_list(); a folder that can't be written goes without. */
        (void)utimensat(AT_FDCWD, path.data, NULL, 0);
        *out = c;
    } else {
        gn_panel_cache_close(c);
    }
    gn_buf_fini(&path);
    return status;
}

void gn_panel_cache_close(gn_panel_cache *c)
{
    if (c != NULL) {
        gn_os_unmap(&c->map);
        gn_free(c->rows);
        gn_free(c);
    }
}

const void *gn_panel_cache_at(const gn_panel_cache *c, size_t i)
{
    return c->rows[i].offset != 0 ? c->map.data + c->rows[i].offset : NULL;
}
