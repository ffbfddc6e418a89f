/* Exit codes, reading of files and standard input, and the progress line. The JSON writer is in json.c. */
#include "cli/out.h"

#include "base/alloc.h"
#include "os/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define READ_LIMIT ((size_t)1 << 30)
#define READ_CHUNK ((size_t)1 << 16)

int gn_cli_exit_code(gn_status status)
{
    switch (status) {
    case GN_OK: return 0;
    case GN_E_REFUSED: return 1;
    case GN_E_ARG: return 2;
    case GN_E_IO:
    case GN_E_FORMAT:
    case GN_E_UNSUPPORTED:
    case GN_E_NOT_FOUND:
    case GN_E_LIMIT:
    case GN_E_DIGEST: return 3;
    case GN_E_NOMEM:
    case GN_E_NO_PAGES: return 4;
    case GN_E_UNAVAILABLE:
    case GN_E_CANCELLED:
    case GN_E_STATE: return 5;
    }
    return 5;
}

int gn_cli_report(const char *command, gn_status status)
{
    if (status != GN_OK && gn_error_message()[0] != '\0') {
        (void)fprintf(stderr, "ganglion %s: %s\n", command, gn_error_message());
    }
    return gn_cli_exit_code(status);
}

gn_status gn_cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return gn_base_fail(GN_E_UNAVAILABLE, "standard output: cannot write: %s",
                            errno != 0 ? strerror(errno) : "an earlier write failed");
    }
    return GN_OK;
}

const char *gn_cli_input_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

gn_status gn_cli_read(const char *path, size_t limit, gn_buf *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = gn_cli_input_name(path);
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return gn_base_fail(errno == ENOENT ? GN_E_NOT_FOUND : GN_E_IO, "%s: cannot open: %s", path,
                            strerror(errno));
    }
    limit = limit != 0 ? limit : READ_LIMIT;
    gn_status status = GN_OK;
    size_t got = 1;
    while (status == GN_OK && got > 0) {
        status = gn_buf_reserve(out, READ_CHUNK);
        if (status != GN_OK) {
            break;
        }
        got = fread(out->data + out->len, 1, READ_CHUNK, file);
        out->len += got;
        out->data[out->len] = '\0';
        if (out->len > limit) {
            status = gn_base_fail(
                GN_E_LIMIT, "%s: found more than %zu bytes, expected at most that", name, limit);
        }
    }
    if (status == GN_OK && ferror(file)) {
        status = gn_base_fail(GN_E_IO, "%s: cannot read: %s", name, strerror(errno));
    }
    if (!is_stdin) {
        (void)fclose(file);
    }
    return status;
}

gn_status gn_cli_read_json(const char *path, json_t **out)
{
    gn_buf text = {0};
    gn_status status = gn_cli_read(path, 0, &text);
    if (status == GN_OK) {
        json_error_t error;
        json_t *root = json_loadb(text.data != NULL ? text.data : "", text.len,
                                  JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (root == NULL) {
            status = gn_base_fail(json_error_code(&error) == json_error_out_of_memory ? GN_E_NOMEM
                                                                                      : GN_E_FORMAT,
                                  "%s: line %d, column %d: %s", gn_cli_input_name(path), error.line,
                                  error.column, error.text);
        } else {
            *out = root;
        }
    }
    gn_buf_fini(&text);
    return status;
}

static gn_status copy_ids(const char *path, const json_t *root, int32_t **ids, size_t *n)
{
    GN_REQUIRE(json_is_array(root), GN_E_FORMAT,
               "%s: found another JSON value, expected an array of token ids", path);
    size_t count = json_array_size(root);
    int32_t *list = gn_alloc_array(count + 1, sizeof *list);
    if (list == NULL) {
        return gn_alloc_failed();
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(root, i);
        json_int_t v = json_integer_value(item);
        if (!json_is_integer(item) || v < 0 || v > INT32_MAX) {
            gn_free(list);
            return gn_base_fail(GN_E_FORMAT, "%s: element %zu: expected a token id, 0 or more",
                                path, i);
        }
        list[i] = (int32_t)v;
    }
    *ids = list;
    *n = count;
    return GN_OK;
}

gn_status gn_cli_read_ids(const char *path, int32_t **ids, size_t *n)
{
    json_t *root = NULL;
    GN_TRY(gn_cli_read_json(path, &root));
    gn_status status = copy_ids(path, root, ids, n);
    json_decref(root);
    return status;
}

const char *gn_cli_human_bytes(uint64_t bytes, char out[GN_CLI_HUMAN])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    size_t unit = 0;
    while (v >= 999.5 && unit + 1 < GN_COUNTOF(units)) {
        v /= 1000;
        unit++;
    }
    (void)snprintf(out, GN_CLI_HUMAN, unit > 0 && v < 99.95 ? "%.1f %s" : "%.0f %s", v,
                   units[unit]);
    return out;
}

void gn_cli_progress_start(gn_cli_progress *progress, const char *label, const char *unit,
                           uint64_t total, uint64_t base)
{
    *progress = (gn_cli_progress){.label = label,
                                  .unit = unit,
                                  .total = total,
                                  .base = base,
                                  .start_ns = gn_os_now_ns(),
                                  .on = isatty(STDERR_FILENO) == 1};
}

void gn_cli_progress_at(gn_cli_progress *progress, uint64_t done)
{
    const uint64_t every_ns = 200000000;
    uint64_t now = gn_os_now_ns();
    if (!progress->on || (progress->shown && now - progress->shown_ns < every_ns)) {
        return;
    }
    progress->shown = true;
    progress->shown_ns = now;
    double seconds = (double)(now - progress->start_ns) * 1e-9;
    double rate = seconds > 0.05 ? (double)(done - progress->base) / seconds : 0;
    char have[GN_CLI_HUMAN];
    char all[GN_CLI_HUMAN];
    char speed[GN_CLI_HUMAN];
    if (strcmp(progress->unit, "B") == 0) {
        (void)gn_cli_human_bytes(done, have);
        (void)gn_cli_human_bytes(progress->total, all);
        (void)gn_cli_human_bytes((uint64_t)rate, speed);
    } else {
        (void)snprintf(have, sizeof have, "%" PRIu64, done);
        (void)snprintf(all, sizeof all, "%" PRIu64 " %.8s", progress->total, progress->unit);
        (void)snprintf(speed, sizeof speed, "%.4g %.8s", rate, progress->unit);
    }
    (void)fprintf(stderr, "\r\033[K%s: ", progress->label);
    if (progress->total > 0) {
        (void)fprintf(stderr, "%3.0f %%  %s of %s", 100.0 * (double)done / (double)progress->total,
                      have, all);
    } else {
        (void)fprintf(stderr, "%s", have);
    }
    if (rate > 0) {
        (void)fprintf(stderr, "  %s/s", speed);
        if (progress->total > done) {
            double left = (double)(progress->total - done) / rate;
            (void)fprintf(stderr, "  %d:%02d left", (int)(left / 60), (int)left % 60);
        }
    }
    (void)fflush(stderr);
}

void gn_cli_progress_end(gn_cli_progress *progress)
{
    if (progress->shown) {
        (void)fprintf(stderr, "\r\033[K");
        (void)fflush(stderr);
        progress->shown = false;
    }
}
