/* Walking and removing of what lies in the models folder. Folders are opened relative to each other and
 * without following links, so that a link planted in a model's folder leads nowhere. */
#include "cli/pull_store.h"

#include "base/alloc.h"
#include "cli/catalogue.h"
#include "cli/model_path.h"
#include "cli/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 8

typedef struct usage {
    uint64_t bytes;
    bool partial; /* some file is under way */
} usage;

static bool is_partial(const char *name)
{
    size_t len = strlen(name);
    return len > 5 && strcmp(name + len - 5, ".part") == 0;
}

/* Visit everything below the folder `fd` (closed here), adding up sizes and removing if `remove`. */
static gn_status walk(int fd, int depth, bool remove, usage *sum)
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        (void)close(fd);
        return gn_base_fail(GN_E_UNAVAILABLE, "cannot read a folder: %s", strerror(errno));
    }
    gn_status status = GN_OK;
    const struct dirent *entry;
    while (status == GN_OK && (entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        struct stat st;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        bool is_folder = S_ISDIR(st.st_mode);
        if (is_folder && depth < MAX_DEPTH) {
            int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            status = inner >= 0 ? walk(inner, depth + 1, remove, sum) : GN_OK;
        } else if (S_ISREG(st.st_mode)) {
            sum->bytes += is_partial(name) ? (uint64_t)st.st_blocks * 512 : (uint64_t)st.st_size;
            sum->partial = sum->partial || is_partial(name);
        }
        if (status == GN_OK && remove && unlinkat(fd, name, is_folder ? AT_REMOVEDIR : 0) != 0) {
            status = gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot remove: %s", name, strerror(errno));
        }
    }
    (void)closedir(folder);
    return status;
}

static int open_models(void)
{
    gn_buf path = {0};
    int fd = -1;
    if (gn_cli_models_folder(&path) == GN_OK) {
        fd = open(path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    gn_buf_fini(&path);
    return fd;
}

/* The model called `name` below `fd`: a folder, or a file put there by hand. */
static gn_status visit(int fd, const char *name, bool remove, usage *sum)
{
    struct stat st;
    GN_REQUIRE(fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0, GN_E_NOT_FOUND,
               "%s: no such model in the models folder", name);
    if (!S_ISDIR(st.st_mode)) {
        sum->bytes += (uint64_t)st.st_size;
    } else {
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        GN_REQUIRE(inner >= 0, GN_E_UNAVAILABLE, "%s: cannot open the folder: %s", name,
                   strerror(errno));
        GN_TRY(walk(inner, 0, remove, sum));
    }
    if (remove && unlinkat(fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) != 0) {
        return gn_base_fail(GN_E_UNAVAILABLE, "%s: cannot remove: %s", name, strerror(errno));
    }
    return GN_OK;
}

gn_status gn_cli_store_remove(const char *name, uint64_t *bytes)
{
    GN_REQUIRE(gn_cli_model_name_ok(name), GN_E_ARG,
               "rm: found the name \"%s\", expected letters, digits and . _ - + @ only", name);
    int fd = open_models();
    GN_REQUIRE(fd >= 0, GN_E_NOT_FOUND, "%s: no such model in the models folder", name);
    usage sum = {0};
    gn_status status = visit(fd, name, true, &sum);
    (void)close(fd);
    if (status == GN_OK) {
        *bytes = sum.bytes;
    }
    return status;
}

static int visible(const struct dirent *entry)
{
    return gn_cli_model_name_ok(entry->d_name);
}

/* Printing of one line or object. */
static void put_model(gn_cli_json *json, const char *name, const char *state, uint64_t bytes,
                      const char *note)
{
    if (json != NULL) {
        gn_cli_json_object(json, NULL);
        gn_cli_json_str(json, "name", name);
        gn_cli_json_str(json, "state", state);
        gn_cli_json_uint(json, "bytes", bytes);
        gn_cli_json_end(json);
        return;
    }
    char size[GN_CLI_HUMAN];
    (void)printf("%-40s %-9s %10s%s%s\n", name, state, gn_cli_human_bytes(bytes, size),
                 note[0] != '\0' ? "  " : "", note);
}

static gn_status put_present(int fd, gn_cli_json *json)
{
    struct dirent **entries = NULL;
    int n = scandirat(fd, ".", &entries, visible, alphasort);
    gn_status status = GN_OK;
    for (int i = 0; i < n; i++) {
        usage sum = {0};
        if (status == GN_OK) {
            status = visit(fd, entries[i]->d_name, false, &sum);
        }
        if (status == GN_OK) {
            put_model(json, entries[i]->d_name, sum.partial ? "partial" : "here", sum.bytes, "");
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static void put_catalogue(int fd, gn_cli_json *json)
{
    for (size_t i = 0; i < gn_cli_n_catalogue; i++) {
        const gn_cli_catalogue_entry *entry = &gn_cli_catalogue[i];
        uint64_t bytes = 0;
        for (size_t f = 0; f < entry->n_files; f++) {
            bytes += entry->files[f].bytes;
        }
        if (fd < 0 || faccessat(fd, entry->name, F_OK, 0) != 0) {
            put_model(json, entry->name, "catalogue", bytes, entry->summary);
        }
    }
}

gn_status gn_cli_store_list(bool as_json)
{
    gn_cli_json json;
    gn_buf folder = {0};
    GN_TRY(gn_cli_models_folder(&folder));
    gn_cli_json_init(&json, stdout);
    if (as_json) {
        gn_cli_json_object(&json, NULL);
        gn_cli_json_str(&json, "folder", folder.data);
        gn_cli_json_array(&json, "models");
    }
    gn_buf_fini(&folder);
    int fd = open_models();
    gn_status status = fd >= 0 ? put_present(fd, as_json ? &json : NULL) : GN_OK;
    if (status == GN_OK) {
        put_catalogue(fd, as_json ? &json : NULL);
    }
    if (as_json) {
        gn_cli_json_end(&json);
        gn_cli_json_end(&json);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}
