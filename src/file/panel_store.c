/* The folder of cache files: what lies there, and removing. Names are fixed (32 hexadecimal digits and a
 * suffix), so nothing else in the folder is ever touched. */
#include "base/alloc.h"
#include "file/panel_format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEX_DIGITS 32u

static bool is_ours(const char *name, bool *partial)
{
    size_t digits = strspn(name, "0123456789abcdef");
    *partial = strcmp(name + digits, ".part") == 0;
    return digits == HEX_DIGITS && (*partial || strcmp(name + digits, ".panels") == 0);
}

/* The model's path out of a header, where there is one. */
static void read_model(int folder, gn_panel_cache_entry *entry)
{
    int fd = openat(folder, entry->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    gn_panel_header header;
    if (fd >= 0 && pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header.magic, GN_PANEL_MAGIC, sizeof header.magic) == 0 &&
        header.format == GN_PANEL_FORMAT) {
        memcpy(entry->model, header.model, sizeof entry->model);
        entry->model[sizeof entry->model - 1] = '\0';
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static int by_use(const void *a, const void *b)
{
    const gn_panel_cache_entry *x = a;
    const gn_panel_cache_entry *y = b;
    return x->used_ns != y->used_ns ? (x->used_ns < y->used_ns ? -1 : 1) : strcmp(x->file, y->file);
}

typedef struct list {
    gn_panel_cache_entry *v;
    size_t n;
    size_t cap;
} list;

static gn_status add(list *l, int folder, const char *name)
{
    struct stat st;
    bool partial;
    if (!is_ours(name, &partial) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode)) {
        return GN_OK;
    }
    gn_panel_cache_entry *grown = gn_grow_array(l->v, &l->cap, l->n + 1, sizeof *grown);
    if (grown == NULL) {
        return gn_alloc_failed();
    }
    l->v = grown;
    gn_panel_cache_entry *entry = &l->v[l->n++];
    *entry = (gn_panel_cache_entry){.bytes = (uint64_t)st.st_blocks * 512,
                                    .used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
                                               st.st_mtim.tv_nsec,
                                    .partial = partial};
    memcpy(entry->file, name, strlen(name) + 1);
    read_model(folder, entry);
    return GN_OK;
}

gn_status gn_panel_cache_list(const char *folder, gn_panel_cache_entry **entries, size_t *n)
{
    list l = {0};
    gn_status status = GN_OK;
    DIR *dir = opendir(folder);
    const struct dirent *item;
    while (dir != NULL && status == GN_OK && (item = readdir(dir)) != NULL) {
        status = add(&l, dirfd(dir), item->d_name);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (status != GN_OK) {
        gn_free(l.v);
        return status;
    }
    if (l.n > 1) {
        qsort(l.v, l.n, sizeof *l.v, by_use);
    }
    *entries = l.v;
    *n = l.n;
    return GN_OK;
}

static bool matches(const gn_panel_cache_entry *entry, const char *what)
{
    const char *slash = strrchr(entry->model, '/');
    return what == NULL || strcmp(entry->file, what) == 0 || strcmp(entry->model, what) == 0 ||
           (slash != NULL && strcmp(slash + 1, what) == 0);
}

/* Remove one entry, *removed says whether. A part that is being written is locked and stays; the lock of
 * another part is held until its name is gone, so that no writer can take it over in between. */
static gn_status remove_entry(const char *path, int folder, const gn_panel_cache_entry *entry,
                              bool *removed)
{
    int fd = entry->partial ? openat(folder, entry->file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    gn_status status = GN_OK;
    *removed = !busy && unlinkat(folder, entry->file, 0) == 0;
    if (!busy && !*removed && errno != ENOENT) {
        status = gn_base_fail(GN_E_UNAVAILABLE, "%s/%s: cannot remove: %s", path, entry->file,
                              strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

gn_status gn_panel_cache_remove(const char *folder, const char *what, size_t *n, uint64_t *bytes)
{
    gn_panel_cache_entry *entries = NULL;
    size_t n_entries = 0;
    *n = 0;
    *bytes = 0;
    GN_TRY(gn_panel_cache_list(folder, &entries, &n_entries));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    gn_status status = GN_OK;
    for (size_t i = 0; i < n_entries && status == GN_OK; i++) {
        bool removed = false;
        if (matches(&entries[i], what)) {
            status = remove_entry(folder, fd, &entries[i], &removed);
        }
        if (removed) {
            (*n)++;
            *bytes += entries[i].bytes;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    gn_free(entries);
    GN_REQUIRE(status != GN_OK || *n != 0 || what == NULL, GN_E_NOT_FOUND,
               "%s: no cache file of that name or model", what);
    return status;
}
