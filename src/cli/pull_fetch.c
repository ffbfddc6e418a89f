/* One file over parallel ranges.
 *
 * The file is cut into segments; up to `connections` of them are under way at once, each a transfer of
 * what its segment lacks. A failed transfer is tried again after a growing wait; a segment that fails
 * `retries` times in a row without progress, or a file that fails MAX_FAILURES times in all, ends it. A
 * server that turns out not to send ranges is asked for the whole file over one connection; a file that
 * changes under way is started again from nothing, at most MAX_RESTARTS times. */
#include "base/alloc.h"
#include "cli/out.h"
#include "cli/pull_http.h"
#include "file/digest.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CONNECTIONS 16
#define MAX_FAILURES    200
#define MAX_RESTARTS    3
#define PROGRESS_BYTES  ((uint64_t)65536)
#define SAVE_EVERY_NS   UINT64_C(2000000000)
#define POLL_MS         200

typedef struct transfer {
    CURL *handle; /* NULL: free */
    gn_cli_segment *segment;
    gn_cli_part *part;
    gn_cli_http_header header;
    char error[CURL_ERROR_SIZE];
    uint64_t start_done; /* what the segment had when this transfer began */
    bool checked;        /* the header fits the segment */
    bool changed;        /* it does not: other bytes than asked for */
    gn_status status;    /* of writing */
} transfer;

typedef struct fetch {
    const gn_cli_pull_file *file;
    const gn_cli_pull_options *options;
    gn_cli_part *part;
    CURLM *multi;
    transfer transfers[MAX_CONNECTIONS];
    /* For each segment: failures in a row, and when it may be tried again. */
    int64_t failures[GN_CLI_MAX_SEGMENTS];
    uint64_t not_before_ns[GN_CLI_MAX_SEGMENTS];
    int n_failures;
    uint64_t saved_ns;
    bool changed;
    gn_cli_progress progress;
} fetch;

/* Does the response speak of the same version of the file as the first one did? */
static bool validator_fits(const transfer *t)
{
    const char *found = t->header.etag[0] != '\0' ? t->header.etag : t->header.modified;
    return found[0] == '\0' || t->part->validator[0] == '\0' ||
           strcmp(found, t->part->validator) == 0;
}

/* Is the response what was asked for: this range of this file, or all of it where that was asked? */
static bool header_fits(const transfer *t)
{
    const gn_cli_http_header *h = &t->header;
    const gn_cli_segment *s = t->segment;
    if (t->part->ranges) {
        return h->code == 206 && h->has_range && h->range_first == s->begin + s->done &&
               h->range_total == t->part->size;
    }
    return h->code == 200 && (!t->part->size_known || !h->has_length || h->length == t->part->size);
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
    transfer *t = ctx;
    size_t len = size * n;
    if (t->header.code >= 300) {
        return len; /* the page of an error or a redirect */
    }
    if (!t->checked) {
        t->changed = !header_fits(t) || !validator_fits(t);
        t->checked = true;
    }
    if (t->changed) {
        return CURL_WRITEFUNC_ERROR;
    }
    uint64_t room = t->segment->end - t->segment->begin - t->segment->done;
    if (len > room) {
        t->changed = true;
        return CURL_WRITEFUNC_ERROR;
    }
    t->status = gn_cli_part_write(t->part, t->segment, data, len);
    return t->status == GN_OK ? len : CURL_WRITEFUNC_ERROR;
}

static bool is_whole(const gn_cli_segment *s)
{
    return s->done == s->end - s->begin;
}

static gn_status start_transfer(fetch *f, transfer *t, gn_cli_segment *segment)
{
    *t = (transfer){.segment = segment, .part = f->part};
    if (!f->part->ranges) {
        segment->done = 0; /* such a server begins at the start each time */
    }
    t->start_done = segment->done;
    t->handle = gn_cli_http_handle(f->file->url, f->options, t->error, &t->header);
    if (t->handle == NULL) {
        return gn_base_fail(GN_E_NOMEM, "out of memory");
    }
    if (f->part->ranges) {
        char range[64];
        (void)snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, segment->begin + segment->done,
                       segment->end - 1);
        (void)curl_easy_setopt(t->handle, CURLOPT_RANGE, range);
    }
    (void)curl_easy_setopt(t->handle, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(t->handle, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(t->handle, CURLOPT_PRIVATE, t);
    if (curl_multi_add_handle(f->multi, t->handle) != CURLM_OK) {
        curl_easy_cleanup(t->handle);
        t->handle = NULL;
        return gn_base_fail(GN_E_NOMEM, "out of memory");
    }
    return GN_OK;
}

static void stop_transfer(fetch *f, transfer *t)
{
    if (t->handle != NULL) {
        (void)curl_multi_remove_handle(f->multi, t->handle);
        curl_easy_cleanup(t->handle);
        t->handle = NULL;
    }
}

static bool is_under_way(const fetch *f, const gn_cli_segment *segment)
{
    for (int64_t i = 0; i < f->options->connections; i++) {
        if (f->transfers[i].handle != NULL && f->transfers[i].segment == segment) {
            return true;
        }
    }
    return false;
}

/* Give free connections to segments that lack bytes and may be tried now. *waiting: some may not yet. */
static gn_status start_transfers(fetch *f, bool *waiting)
{
    uint64_t now = gn_os_now_ns();
    *waiting = false;
    size_t next = 0;
    for (int64_t i = 0; i < f->options->connections; i++) {
        transfer *t = &f->transfers[i];
        for (; t->handle == NULL && next < f->part->n_segments; next++) {
            gn_cli_segment *s = &f->part->segments[next];
            if (is_whole(s) || is_under_way(f, s)) {
                continue;
            }
            if (f->not_before_ns[next] > now) {
                *waiting = true;
                continue;
            }
            GN_TRY(start_transfer(f, t, s));
        }
    }
    return GN_OK;
}

/* A transfer has ended: is its segment whole, worth another try, or the file lost? */
static gn_status end_transfer(fetch *f, transfer *t, CURLcode result)
{
    size_t index = (size_t)(t->segment - f->part->segments);
    if (t->status != GN_OK) {
        return t->status;
    }
    /* 412 and 416: the server no longer has such a range. */
    if (t->changed || t->header.code == 412 || t->header.code == 416) {
        f->changed = true;
        return GN_OK;
    }
    gn_cli_http_outcome outcome = gn_cli_http_judge(result, &t->header, f->file->url, t->error);
    if (outcome == GN_CLI_HTTP_OK && !f->part->size_known) {
        t->segment->end = t->segment->done;
        f->part->size = t->segment->done;
        return GN_OK;
    }
    if (outcome == GN_CLI_HTTP_OK && is_whole(t->segment)) {
        f->failures[index] = 0;
        return GN_OK;
    }
    if (outcome == GN_CLI_HTTP_OK) {
        (void)gn_base_fail(GN_E_UNAVAILABLE, "%s: the connection ended early", f->file->url);
    }
    if (outcome == GN_CLI_HTTP_FINAL) {
        return GN_E_UNAVAILABLE;
    }
    bool progress = f->part->ranges && t->segment->done >= t->start_done + PROGRESS_BYTES;
    f->failures[index] = progress ? 1 : f->failures[index] + 1;
    f->n_failures++;
    if (f->failures[index] > f->options->retries || f->n_failures > MAX_FAILURES) {
        return GN_E_UNAVAILABLE;
    }
    f->not_before_ns[index] =
        gn_os_now_ns() + gn_cli_http_backoff_ms(f->failures[index], t->handle) * 1000000;
    return GN_OK;
}

static gn_status take_results(fetch *f)
{
    gn_status status = GN_OK;
    int left;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(f->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        /* The message dies with its handle's removal. */
        CURLcode result = message->data.result;
        transfer *t = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &t);
        if (status == GN_OK) {
            status = end_transfer(f, t, result);
        }
        stop_transfer(f, t);
    }
    return status;
}

static bool all_whole(const fetch *f)
{
    for (size_t i = 0; i < f->part->n_segments; i++) {
        if (!is_whole(&f->part->segments[i])) {
            return false;
        }
    }
    return true;
}

static gn_status transfer_loop(fetch *f)
{
    while (!all_whole(f) && !f->changed) {
        bool waiting;
        GN_TRY(start_transfers(f, &waiting));
        int running = 0;
        if (curl_multi_perform(f->multi, &running) != CURLM_OK) {
            return gn_base_fail(GN_E_NOMEM, "out of memory");
        }
        GN_TRY(take_results(f));
        gn_cli_progress_at(&f->progress, gn_cli_part_done(f->part));
        uint64_t now = gn_os_now_ns();
        if (now - f->saved_ns > SAVE_EVERY_NS) {
            GN_TRY(gn_cli_part_save(f->part));
            f->saved_ns = now;
        }
        if (gn_cli_http_interrupted()) {
            return gn_base_fail(GN_E_CANCELLED, "%s: interrupted, run it again to resume",
                                f->part->part_path);
        }
        if (!all_whole(f) && !f->changed && (running > 0 || waiting)) {
            (void)curl_multi_poll(f->multi, NULL, 0, waiting ? POLL_MS / 4 : POLL_MS, NULL);
        }
    }
    return GN_OK;
}

/* Fetch all that is missing. f->changed afterwards: the remote file is another one. */
static gn_status transfer_all(fetch *f)
{
    f->changed = false;
    memset(f->failures, 0, sizeof f->failures);
    memset(f->not_before_ns, 0, sizeof f->not_before_ns);
    memset(f->transfers, 0, sizeof f->transfers);
    f->saved_ns = gn_os_now_ns();
    f->multi = curl_multi_init();
    if (f->multi == NULL) {
        return gn_base_fail(GN_E_NOMEM, "out of memory");
    }
    const char *slash = strrchr(f->part->final_path, '/');
    gn_cli_progress_start(&f->progress, slash != NULL ? slash + 1 : f->part->final_path, "B",
                          f->part->size, gn_cli_part_done(f->part));
    gn_status status = transfer_loop(f);
    gn_cli_progress_end(&f->progress);
    for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
        stop_transfer(f, &f->transfers[i]);
    }
    (void)curl_multi_cleanup(f->multi);
    if (status != GN_OK) {
        /* The first failure is the one to report; losing the state only costs bytes. */
        char message[1024];
        (void)snprintf(message, sizeof message, "%s", gn_error_message());
        gn_status saved = gn_cli_part_save(f->part);
        (void)saved;
        (void)gn_base_fail(status, "%s", message);
    }
    return status;
}

static bool on_digest(void *ctx, uint64_t done, uint64_t total)
{
    gn_cli_progress *progress = ctx;
    progress->total = total;
    gn_cli_progress_at(progress, done);
    return !gn_cli_http_interrupted();
}

static gn_status hash_file(const char *path, char out[GN_CLI_SHA256_HEX])
{
    unsigned char digest[GN_DIGEST_BYTES];
    gn_cli_progress progress;
    gn_cli_progress_start(&progress, "checking", "B", 0, 0);
    gn_status status = gn_digest_file(path, GN_DIGEST_SHA256, on_digest, &progress, digest);
    gn_cli_progress_end(&progress);
    if (status == GN_OK) {
        gn_digest_to_hex(digest, out);
    }
    return status;
}

static gn_status check_size(const gn_cli_pull_file *file, const gn_cli_http_facts *facts)
{
    GN_REQUIRE(file->bytes == 0 || !facts->size_known || facts->size == file->bytes, GN_E_DIGEST,
               "%s: found %" PRIu64 " bytes, expected %" PRIu64, file->url, facts->size,
               file->bytes);
    return GN_OK;
}

/* Ask the server about the file and prepare the part for it. */
static gn_status prepare(fetch *f)
{
    gn_cli_http_facts facts;
    GN_TRY(gn_cli_http_probe(f->file->url, f->options, &facts));
    GN_TRY(check_size(f->file, &facts));
    gn_cli_part *part = f->part;
    part->size = facts.size;
    part->size_known = facts.size_known;
    part->ranges = facts.ranges && facts.size_known;
    memcpy(part->validator, facts.validator, sizeof part->validator);
    memcpy(part->sha256, f->file->sha256, sizeof part->sha256);
    return gn_cli_part_plan(part, (size_t)f->options->connections);
}

static gn_status finish(fetch *f, gn_cli_pull_result *result)
{
    GN_TRY(hash_file(f->part->part_path, result->sha256));
    if (f->file->sha256[0] != '\0' && strcmp(result->sha256, f->file->sha256) != 0) {
        gn_cli_part_remove(f->part);
        return gn_base_fail(GN_E_DIGEST, "%s: found SHA-256 %s, expected %s", f->file->url,
                            result->sha256, f->file->sha256);
    }
    result->bytes = f->part->size;
    return gn_cli_part_finish(f->part);
}

static gn_status fetch_part(fetch *f, gn_cli_pull_result *result)
{
    for (int restarts = 0;; restarts++) {
        GN_TRY(prepare(f));
        result->resumed_bytes = gn_cli_part_done(f->part);
        GN_TRY(transfer_all(f));
        if (!f->changed) {
            break;
        }
        GN_TRY(gn_cli_part_restart(f->part));
        GN_REQUIRE(
            restarts < MAX_RESTARTS, GN_E_UNAVAILABLE,
            "%s: the server sends other bytes than asked for, or the file changes all the time",
            f->file->url);
    }
    /* No segment may lack bytes here, whatever the server said; hash and size are of the whole. */
    if (f->part->size_known) {
        f->part->size = gn_cli_part_done(f->part);
    }
    if (ftruncate(f->part->fd, (off_t)f->part->size) != 0) {
        return gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot write: %s", f->part->part_path,
                            strerror(errno));
    }
    return finish(f, result);
}

/* A file that has its name already: is it the one wanted? */
static gn_status check_present(const gn_cli_pull_file *file, const char *path,
                               gn_cli_pull_result *result)
{
    struct stat st;
    GN_REQUIRE(stat(path, &st) == 0 && S_ISREG(st.st_mode), GN_E_UNAVAILABLE,
               "%s: expected a regular file", path);
    result->bytes = (uint64_t)st.st_size;
    GN_TRY(hash_file(path, result->sha256));
    result->already_there = true;
    GN_REQUIRE(
        file->sha256[0] == '\0' || strcmp(file->sha256, result->sha256) == 0, GN_E_DIGEST,
        "%s: found SHA-256 %s, expected %s; remove it with `pull rm`, or choose another name "
        "with --as",
        path, result->sha256, file->sha256);
    return GN_OK;
}

gn_status gn_cli_pull_fetch(const gn_cli_pull_file *file, const char *path,
                            const gn_cli_pull_options *options, gn_cli_pull_result *result)
{
    *result = (gn_cli_pull_result){0};
    if (access(path, F_OK) == 0) {
        return check_present(file, path, result);
    }
    fetch *f = gn_calloc(1, sizeof *f);
    if (f == NULL) {
        return gn_alloc_failed();
    }
    f->file = file;
    f->options = options;
    gn_status status = gn_cli_part_open(path, &f->part);
    if (status == GN_OK) {
        status = fetch_part(f, result);
        if (status != GN_OK) {
            gn_cli_part_discard_empty(f->part);
        }
    }
    gn_cli_part_close(f->part);
    gn_free(f);
    return status;
}
