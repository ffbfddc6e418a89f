/* Listing and removing of the cache files of packed weights. */
#include "cli/pull_cache.h"

#include "base/alloc.h"
#include "cli/out.h"
#include "file/panel_cache.h"

#include <string.h>
#include <time.h>

static const char *day(int64_t ns, char out[32])
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    if (localtime_r(&seconds, &tm) == NULL || strftime(out, 32, "%Y-%m-%d %H:%M", &tm) == 0) {
        out[0] = '\0';
    }
    return out;
}

static void print_entry(const gn_panel_cache_entry *entry, gn_cli_json *json)
{
    if (json != NULL) {
        gn_cli_json_object(json, NULL);
        gn_cli_json_str(json, "file", entry->file);
        gn_cli_json_str(json, "model", entry->model);
        gn_cli_json_uint(json, "bytes", entry->bytes);
        gn_cli_json_int(json, "used", entry->used_ns / 1000000000);
        gn_cli_json_bool(json, "partial", entry->partial);
        gn_cli_json_end(json);
        return;
    }
    char size[GN_CLI_HUMAN];
    char when[32];
    (void)printf("%s  %10s  %s  ", entry->file, gn_cli_human_bytes(entry->bytes, size),
                 day(entry->used_ns, when));
    for (const char *s = entry->model; *s != '\0'; s++) {
        (void)putchar((unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
    }
    (void)printf("%s\n", entry->partial ? "  (being written)" : "");
}

static gn_status list(const char *folder, bool as_json)
{
    gn_panel_cache_entry *entries = NULL;
    size_t n = 0;
    GN_TRY(gn_panel_cache_list(folder, &entries, &n));
    gn_cli_json json;
    gn_cli_json_init(&json, stdout);
    if (as_json) {
        gn_cli_json_object(&json, NULL);
        gn_cli_json_str(&json, "folder", folder);
        gn_cli_json_array(&json, "files");
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        print_entry(&entries[i], as_json ? &json : NULL);
        sum += entries[i].bytes;
    }
    gn_free(entries);
    if (as_json) {
        gn_cli_json_end(&json);
        gn_cli_json_uint(&json, "bytes", sum);
        gn_cli_json_end(&json);
    } else {
        char size[GN_CLI_HUMAN];
        (void)printf("%zu files, %s in %s\n", n, gn_cli_human_bytes(sum, size), folder);
    }
    return GN_OK;
}

static gn_status remove_files(const char *folder, const gn_cli_list *args, bool as_json)
{
    GN_REQUIRE(args->n > 1, GN_E_ARG, "--cache rm: found no name, expected MODEL... or all");
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = 1; i < args->n; i++) {
        size_t n_one = 0;
        uint64_t bytes_one = 0;
        const char *what = strcmp(args->v[i], "all") == 0 ? NULL : args->v[i];
        GN_TRY(gn_panel_cache_remove(folder, what, &n_one, &bytes_one));
        n += n_one;
        bytes += bytes_one;
    }
    if (as_json) {
        gn_cli_json json;
        gn_cli_json_init(&json, stdout);
        gn_cli_json_object(&json, NULL);
        gn_cli_json_uint(&json, "removed", n);
        gn_cli_json_uint(&json, "bytes", bytes);
        gn_cli_json_end(&json);
    } else {
        char size[GN_CLI_HUMAN];
        (void)printf("removed %zu files, %s\n", n, gn_cli_human_bytes(bytes, size));
    }
    return GN_OK;
}

gn_status gn_cli_cache_command(const gn_cli_list *args, bool as_json)
{
    gn_buf folder = {0};
    gn_status status = gn_panel_cache_folder(&folder);
    if (status == GN_OK && args->n >= 1 && strcmp(args->v[0], "rm") == 0) {
        status = remove_files(folder.data, args, as_json);
    } else if (status == GN_OK &&
               (args->n == 0 || (args->n == 1 && strcmp(args->v[0], "list") == 0))) {
        status = list(folder.data, as_json);
    } else if (status == GN_OK) {
        status = gn_base_fail(GN_E_ARG, "--cache: found \"%s\", expected list or rm", args->v[0]);
    }
    gn_buf_fini(&folder);
    return status;
}
