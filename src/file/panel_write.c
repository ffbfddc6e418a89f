/* Writing a cache file. The part file is locked with flock(), which the kernel drops with the process, so a
 * part without a lock is a leftover. */
#include "base/alloc.h"
#include "file/panel_format.h"
#include "os/folder.h"
#include "tensor/panels.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BUFFER_BYTES (2u << 20) /* written at once, so that the page cache can use large folios */
#define SPARE_BYTES  (256ull << 20) /* left free on the disk */

typedef struct writer {
    const gn_panel_write *job;
    const char *path; /* of the part */
    int fd;
    gn_panel_row *rows;
    uint64_t bytes;
    unsigned char *buffer; /* [GN_PANELS_SCRATCH + buffer_bytes]: the packer's own, then panels */
    size_t buffer_bytes;
    gn_digest *samples;
    uint64_t done;
} writer;

static gn_status io_failed(const char *path, const char *what)
{
    gn_status code =
        errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? GN_E_LIMIT : GN_E_UNAVAILABLE;
    return gn_base_fail(code, "%s: cannot %s: %s", path, what, strerror(errno));
}

static gn_status put(const writer *w, const void *data, size_t len, uint64_t offset)
{
    const unsigned char *from = data;
    while (len > 0) {
        ssize_t n = pwrite(w->fd, from, len, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return io_failed(w->path, "write");
        }
        from += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return GN_OK;
}

static gn_status step(writer *w, uint64_t bytes)
{
    w->done += bytes;
    bool go = w->job->progress == NULL || w->job->progress(w->job->ctx, w->done, w->bytes);
    return go ? GN_OK : gn_base_fail(GN_E_CANCELLED, "%s: cancelled", w->path);
}

/* The panels of one weight. Samples are taken from the buffer: the first GN_PANEL_SAMPLE bytes of the
 * first one, the last of the last one; a panel is never smaller than a sample where there are several. */
static gn_status put_weight(writer *w, const gn_view *weight, const gn_panel_row *row)
{
    size_t stride = (size_t)row->stride;
    size_t a_time = w->buffer_bytes / stride;
    unsigned char *panels = w->buffer + GN_PANELS_SCRATCH;
    unsigned char head[GN_PANEL_SAMPLE];
    size_t total = (size_t)row->n_panels * stride;
    size_t sample = total < GN_PANEL_SAMPLE ? total : GN_PANEL_SAMPLE;
    for (size_t at = 0; at < row->n_panels; at += a_time) {
        size_t n = row->n_panels - at < a_time ? (size_t)row->n_panels - at : a_time;
        gn_panels_pack(weight, at, n, w->buffer, panels);
        GN_TRY(put(w, panels, n * stride, row->offset + at * stride));
        if (at == 0) {
            memcpy(head, panels, sample);
        }
        if (at + n == row->n_panels) {
            gn_digest_update(w->samples, head, sample);
            gn_digest_update(w->samples, panels + n * stride - sample, sample);
        }
        GN_TRY(step(w, n * stride));
    }
    return GN_OK;
}

static gn_status put_header(writer *w)
{
    gn_panel_header *header = gn_calloc(1, sizeof *header);
    if (header == NULL) {
        return gn_alloc_failed();
    }
    memcpy(header->magic, GN_PANEL_MAGIC, sizeof header->magic);
    header->format = GN_PANEL_FORMAT;
    header->layout = GN_PANELS_LAYOUT;
    memcpy(header->key, w->job->key.digest, sizeof header->key);
    header->n_weights = w->job->n;
    header->file_bytes = w->bytes;
    gn_digest_final(w->samples, header->samples);
    size_t len = strlen(w->job->model);
    memcpy(header->model, w->job->model,
           len < sizeof header->model ? len : sizeof header->model - 1);
    gn_status status = gn_panel_header_digest(header, w->rows, header->digest);
    if (status == GN_OK) {
        status = put(w, w->rows, w->job->n * sizeof *w->rows, sizeof *header);
    }
    if (status == GN_OK) {
        status = put(w, header, sizeof *header, 0);
    }
    gn_free(header);
    return status;
}

static gn_status put_all(writer *w)
{
    size_t stride = 0;
    for (size_t i = 0; i < w->job->n; i++) {
        stride = w->rows[i].stride > stride ? (size_t)w->rows[i].stride : stride;
    }
    w->buffer_bytes = stride > BUFFER_BYTES ? stride : BUFFER_BYTES;
    w->buffer = gn_alloc_aligned(1, GN_PANELS_SCRATCH + w->buffer_bytes);
    if (w->buffer == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(gn_digest_create(GN_DIGEST_BLAKE2B, &w->samples));
    if (ftruncate(w->fd, (off_t)w->bytes) != 0) {
        return io_failed(w->path, "set the size");
    }
    for (size_t i = 0; i < w->job->n; i++) {
        if (w->rows[i].stride != 0) {
            GN_TRY(put_weight(w, w->job->weights[i], &w->rows[i]));
        }
    }
    GN_TRY(put_header(w));
    return fsync(w->fd) == 0 ? GN_OK : io_failed(w->path, "synchronise");
}

/* Remove what is in the way: other states of the same model, parts nobody writes, and the least recently
 * used while all together pass the limit. */
static gn_status make_room(const writer *w, int folder)
{
    struct statvfs fs;
    if (fstatvfs(folder, &fs) != 0) {
        return io_failed(w->job->folder, "ask for the free space");
    }
    uint64_t limit =
        w->job->limit_bytes != 0 ? w->job->limit_bytes : (uint64_t)fs.f_blocks * fs.f_frsize / 4;
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    GN_REQUIRE(w->bytes <= limit, GN_E_LIMIT,
               "%s: the packed weights take %llu bytes, the limit of all cache files is %llu",
               w->job->folder, (unsigned long long)w->bytes, (unsigned long long)limit);
    gn_panel_cache_entry *entries = NULL;
    size_t n = 0;
    GN_TRY(gn_panel_cache_list(w->job->folder, &entries, &n));
    uint64_t sum = w->bytes;
    for (size_t i = 0; i < n; i++) {
        sum += entries[i].bytes;
    }
    const char *own = strrchr(w->path, '/') + 1;
    for (size_t i = 0; i < n; i++) {
        bool stale = entries[i].partial || strcmp(entries[i].model, w->job->model) == 0;
        bool too_much = sum > limit || free_bytes < w->bytes + SPARE_BYTES;
        size_t removed = 0;
        uint64_t bytes = 0;
        if (strcmp(entries[i].file, own) != 0 && (stale || too_much) &&
            gn_panel_cache_remove(w->job->folder, entries[i].file, &removed, &bytes) == GN_OK) {
            sum -= entries[i].bytes;
            free_bytes += bytes;
        }
    }
    gn_free(entries);
    GN_REQUIRE(free_bytes >= w->bytes + SPARE_BYTES, GN_E_LIMIT,
               "%s: the packed weights take %llu bytes, the disk has %llu free", w->job->folder,
               (unsigned long long)w->bytes, (unsigned long long)free_bytes);
    return GN_OK;
}

/* Open and lock the part. It must still have its name once it is locked: the writer before may have
 * renamed or removed it in between. */
static gn_status open_part(writer *w)
{
    w->fd = open(w->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (w->fd < 0) {
        return io_failed(w->path, "create");
    }
    struct stat mine;
    struct stat named;
    bool locked = flock(w->fd, LOCK_EX | LOCK_NB) == 0 && fstat(w->fd, &mine) == 0 &&
                  stat(w->path, &named) == 0 && mine.st_ino == named.st_ino &&
                  mine.st_dev == named.st_dev;
    return locked ? GN_OK : gn_base_fail(GN_E_STATE, "%s: another process is writing it", w->path);
}

/* Between this process's look for the file and its lock another one may have written it. */
static bool is_there(const gn_panel_write *job)
{
    gn_panel_cache *cache = NULL;
    bool found = gn_panel_cache_open(job->folder, &job->key, job->weights, job->n, &cache) == GN_OK;
    gn_panel_cache_close(cache);
    return found;
}

static gn_status write_part(writer *w, int folder, const char *final)
{
    w->rows = gn_calloc(w->job->n, sizeof *w->rows);
    if (w->rows == NULL) {
        return gn_alloc_failed();
    }
    w->bytes = gn_panel_layout(w->job->weights, w->job->n, w->rows);
    GN_REQUIRE(w->bytes != 0, GN_E_LIMIT, "the packed weights' size overflows");
    GN_TRY(open_part(w));
    if (is_there(w->job)) {
        (void)unlink(w->path);
        return GN_OK;
    }
    gn_status status = make_room(w, folder);
    if (status == GN_OK) {
        status = put_all(w);
    }
    if (status == GN_OK && rename(w->path, final) != 0) {
        status = io_failed(final, "rename the part to");
    }
    if (status == GN_OK) {
        (void)fsync(folder); /* without it the name may be lost with the power, not the content */
    } else {
        (void)unlink(w->path);
    }
    return status;
}

gn_status gn_panel_cache_write(const gn_panel_write *job)
{
    GN_REQUIRE(job->n >= 1 && job->n <= GN_PANEL_MAX, GN_E_ARG,
               "packed weights: found %zu, expected 1 to %u", job->n, GN_PANEL_MAX);
    GN_TRY(gn_os_make_folder(job->folder));
    int folder = open(job->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return io_failed(job->folder, "open");
    }
    gn_buf part = {0};
    gn_buf final = {0};
    writer w = {.job = job, .fd = -1};
    gn_status status = gn_panel_path(job->folder, &job->key, ".part", &part);
    if (status == GN_OK) {
        status = gn_panel_path(job->folder, &job->key, ".panels", &final);
    }
    if (status == GN_OK) {
        w.path = part.data;
        status = write_part(&w, folder, final.data);
    }
    if (w.fd >= 0) {
        (void)close(w.fd);
    }
    gn_digest_destroy(w.samples);
    gn_free_aligned(w.buffer);
    gn_free(w.rows);
    gn_buf_fini(&part);
    gn_buf_fini(&final);
    (void)close(folder);
    return status;
}
