/* NAME.part and NAME.part.json. The state is written beside the data, to a temporary file that is renamed,
 * and only after the data it speaks of is on disk: after a power cut it may claim too little, never too
 * much. */
#include "cli/pull_part.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAST_SEGMENT ((uint64_t)1 << 20)
#define BEST_SEGMENT  ((uint64_t)16 << 20)

static gn_status fail_errno(const char *path, const char *what)
{
    return gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot %s: %s", path, what, strerror(errno));
}

static char *join(const char *path, const char *suffix)
{
    gn_buf buf = {0};
    if (gn_buf_printf(&buf, "%s%s", path, suffix) != GN_OK) {
        gn_buf_fini(&buf);
        return NULL;
    }
    return gn_buf_take(&buf);
}

/* The lock may have come only because its holder has just given the file its final name: then the file
 * that is open here is no longer NAME.part and must not be touched. */
static bool is_still_part(const gn_cli_part *part)
{
    struct stat ours;
    struct stat named;
    return fstat(part->fd, &ours) == 0 && lstat(part->part_path, &named) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino && S_ISREG(ours.st_mode);
}

gn_status gn_cli_part_open(const char *path, gn_cli_part **out)
{
    gn_cli_part *part = gn_calloc(1, sizeof *part);
    if (part == NULL) {
        return gn_alloc_failed();
    }
    part->fd = -1;
    part->final_path = join(path, "");
    part->part_path = join(path, ".part");
    part->state_path = join(path, ".part.json");
    part->temp_path = join(path, ".part.json.new");
    gn_status status = GN_OK;
    if (part->final_path == NULL || part->part_path == NULL || part->state_path == NULL ||
        part->temp_path == NULL) {
        status = gn_alloc_failed();
    } else {
        part->fd = open(part->part_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (part->fd < 0) {
            status = fail_errno(part->part_path, "create");
        } else if (flock(part->fd, LOCK_EX | LOCK_NB) != 0 || !is_still_part(part)) {
            status = gn_base_fail(GN_E_UNAVAILABLE, "%s: another pull of this file is running",
                                  part->part_path);
        }
    }
    if (status != GN_OK) {
        gn_cli_part_close(part);
        return status;
    }
    *out = part;
    return GN_OK;
}

void gn_cli_part_close(gn_cli_part *part)
{
    if (part == NULL) {
        return;
    }
    if (part->fd >= 0) {
        (void)close(part->fd);
    }
    gn_free(part->final_path);
    gn_free(part->part_path);
    gn_free(part->state_path);
    gn_free(part->temp_path);
    gn_free(part);
}

/* The member `key` of the state as a size; false where it is none. */
static bool get_size(const json_t *state, const char *key, uint64_t *out)
{
    const json_t *item = json_object_get(state, key);
    if (!json_is_integer(item) || json_integer_value(item) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(item);
    return true;
}

static bool same_text(const json_t *state, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(state, key));
    return text != NULL && strcmp(text, value) == 0;
}

/* Does a state file speak of this very remote file? Equal digests settle it; else the validators do. */
static bool same_file(const gn_cli_part *part, const json_t *state)
{
    uint64_t size;
    if (!get_size(state, "size", &size) || size != part->size ||
        !same_text(state, "sha256", part->sha256)) {
        return false;
    }
    return part->sha256[0] != '\0' ||
           (part->validator[0] != '\0' && same_text(state, "validator", part->validator));
}

/* Segments of the state file; anything odd means "none". */
static bool load_segments(gn_cli_part *part, const json_t *state)
{
    struct stat st;
    const json_t *list = json_object_get(state, "segments");
    size_t n = json_array_size(list);
    if (!same_file(part, state) || n == 0 || n > GN_CLI_MAX_SEGMENTS || fstat(part->fd, &st) != 0) {
        return false;
    }
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        gn_cli_segment s;
        const json_t *item = json_array_get(list, i);
        if (!get_size(item, "begin", &s.begin) || !get_size(item, "end", &s.end) ||
            !get_size(item, "done", &s.done) || s.begin != at || s.end <= s.begin ||
            s.end > part->size || s.done > s.end - s.begin ||
            (s.done > 0 && s.begin + s.done > (uint64_t)st.st_size)) {
            return false;
        }
        part->segments[i] = s;
        at = s.end;
    }
    part->n_segments = n;
    return at == part->size;
}

static void make_segments(gn_cli_part *part, size_t connections)
{
    uint64_t n = 1;
    if (part->ranges && part->size > LEAST_SEGMENT) {
        uint64_t most = (part->size + LEAST_SEGMENT - 1) / LEAST_SEGMENT;
        n = (part->size + BEST_SEGMENT - 1) / BEST_SEGMENT;
        n = n < connections ? connections : n;
        n = n > most ? most : n;
        n = n > GN_CLI_MAX_SEGMENTS ? GN_CLI_MAX_SEGMENTS : n;
    }
    part->n_segments = (size_t)n;
    if (!part->size_known) {
        part->segments[0] = (gn_cli_segment){.end = UINT64_MAX};
        return;
    }
    uint64_t each = part->size / n;
    for (uint64_t i = 0; i < n; i++) {
        part->segments[i] =
            (gn_cli_segment){.begin = i * each, .end = i + 1 < n ? (i + 1) * each : part->size};
    }
}

gn_status gn_cli_part_plan(gn_cli_part *part, size_t connections)
{
    json_error_t error;
    json_t *state = json_load_file(part->state_path, 0, &error);
    bool resumed = part->ranges && part->size_known && state != NULL && load_segments(part, state);
    json_decref(state);
    if (!resumed) {
        make_segments(part, connections);
        GN_TRY(gn_cli_part_restart(part));
    }
    /* A full disk shows here, before anything is fetched. File systems without the call do without. */
    if (part->size > 0 && part->size_known && fallocate(part->fd, 0, 0, (off_t)part->size) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        return fail_errno(part->part_path, "reserve the space");
    }
    return GN_OK;
}

gn_status gn_cli_part_write(gn_cli_part *part, gn_cli_segment *segment, const void *data,
                            size_t len)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = pwrite(part->fd, p, len, (off_t)(segment->begin + segment->done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n == 0 ? ENOSPC : errno;
            return fail_errno(part->part_path, "write");
        }
        segment->done += (uint64_t)n;
        p += n;
        len -= (size_t)n;
    }
    return GN_OK;
}

uint64_t gn_cli_part_done(const gn_cli_part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < part->n_segments; i++) {
        sum += part->segments[i].done;
    }
    return sum;
}

static json_t *state_json(const gn_cli_part *part)
{
    json_t *list = json_array();
    for (size_t i = 0; i < part->n_segments; i++) {
        const gn_cli_segment *s = &part->segments[i];
        if (json_array_append_new(list, json_pack("{s:I,s:I,s:I}", "begin", (json_int_t)s->begin,
                                                  "end", (json_int_t)s->end, "done",
                                                  (json_int_t)s->done)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:I,s:s,s:s,s:o}", "size", (json_int_t)part->size, "validator",
                     part->validator, "sha256", part->sha256, "segments", list);
}

gn_status gn_cli_part_save(gn_cli_part *part)
{
    if (!part->ranges || !part->size_known) {
        return GN_OK;
    }
    if (fdatasync(part->fd) != 0) {
        return fail_errno(part->part_path, "write");
    }
    json_t *state = state_json(part);
    if (state == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = GN_OK;
    if (json_dump_file(state, part->temp_path, JSON_COMPACT) != 0 ||
        rename(part->temp_path, part->state_path) != 0) {
        status = fail_errno(part->state_path, "write");
        (void)unlink(part->temp_path);
    }
    json_decref(state);
    return status;
}

gn_status gn_cli_part_restart(gn_cli_part *part)
{
    (void)unlink(part->state_path);
    for (size_t i = 0; i < part->n_segments; i++) {
        part->segments[i].done = 0;
    }
    return ftruncate(part->fd, 0) == 0 ? GN_OK : fail_errno(part->part_path, "empty");
}

/* Make the rename itself last. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? gn_strndup(path, (size_t)(slash - path)) : NULL;
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    gn_free(folder);
}

gn_status gn_cli_part_finish(gn_cli_part *part)
{
    if (ftruncate(part->fd, (off_t)part->size) != 0 || fsync(part->fd) != 0) {
        return fail_errno(part->part_path, "write");
    }
    if (rename(part->part_path, part->final_path) != 0) {
        return fail_errno(part->final_path, "rename to");
    }
    sync_folder(part->final_path);
    (void)unlink(part->state_path);
    return GN_OK;
}

void gn_cli_part_remove(gn_cli_part *part)
{
    (void)unlink(part->state_path);
    (void)unlink(part->part_path);
}

void gn_cli_part_discard_empty(gn_cli_part *part)
{
    if (gn_cli_part_done(part) == 0 && access(part->state_path, F_OK) != 0) {
        gn_cli_part_remove(part);
    }
}
