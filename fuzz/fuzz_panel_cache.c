/* A cache file of any bytes under the right name: used or refused, and what is used is read to the last
 * panel. A valid file is written first; the input says which of its bytes are replaced, or, where its first
 * byte is odd, is the whole file. */
#include "fuzz.h"

#include "base/alloc.h"
#include "file/panel_cache.h"
#include "tensor/panels.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 20, COLUMNS = 32, BLOCK = 18 };

static const uint8_t blocks[ROWS * BLOCK];
static const gn_view weight = {.dtype = GN_DTYPE_Q4_0,
                               .n_dims = 2,
                               .shape = {ROWS, COLUMNS, 1, 1},
                               .data = blocks,
                               .bytes = sizeof blocks,
                               .row_bytes = BLOCK};
static const gn_view *const weights[] = {&weight};
static const gn_panel_key key = {{0}};
static char folder[] = "/tmp/ganglion-fuzz-XXXXXX";
static char path[128];
static uint8_t *valid;
static size_t valid_bytes;
static volatile uint8_t sink;

static void remove_folder(void)
{
    (void)unlink(path);
    (void)rmdir(folder);
}

static void start(void)
{
    const gn_panel_write job = {
        .folder = folder, .model = "m", .key = key, .weights = weights, .n = 1};
    valid_bytes = (size_t)gn_panel_cache_bytes(weights, 1);
    valid = malloc(valid_bytes);
    if (valid == NULL || mkdtemp(folder) == NULL || atexit(remove_folder) != 0 ||
        gn_panel_cache_write(&job) != GN_OK) {
        abort();
    }
    (void)snprintf(path, sizeof path, "%s/%032d.panels", folder, 0);
    int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, valid, valid_bytes) != (ssize_t)valid_bytes) {
        abort();
    }
    (void)close(fd);
}

static void put_file(const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (valid == NULL) {
        start();
    }
    if (size > 0 && (data[0] & 1) != 0) {
        put_file(data + 1, size - 1);
    } else {
        uint8_t *copy = malloc(valid_bytes);
        if (copy == NULL) {
            return 0;
        }
        memcpy(copy, valid, valid_bytes);
        for (size_t i = 1; i + 2 < size; i += 3) {
            size_t at = (size_t)data[i] << 8 | data[i + 1];
            copy[at % valid_bytes] = data[i + 2];
        }
        put_file(copy, valid_bytes);
        free(copy);
    }
    gn_panel_cache *cache = NULL;
    gn_status status = gn_panel_cache_open(folder, &key, weights, 1, &cache);
    if (status == GN_OK) {
        const uint8_t *panels = gn_panel_cache_at(cache, 0);
        for (size_t i = 0; i < gn_panels_count(&weight) * gn_panels_stride(&weight); i++) {
            sink ^= panels[i];
        }
        gn_panel_cache_close(cache);
    } else if (gn_error_message()[0] == '\0') {
        abort();
    }
    gn_panel_cache_entry *entries = NULL;
    size_t n = 0;
    if (gn_panel_cache_list(folder, &entries, &n) == GN_OK) {
        gn_free(entries);
    }
    return 0;
}
