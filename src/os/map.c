/* Mappings are listed with their paths, so that the handler of SIGBUS can name the file. The list changes
 * under a lock; the handler, which may take none, reads it as it is. */
#include "os/map.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct listed {
    const unsigned char *data;
    size_t size;
    struct listed *next;
    char path[]; /* without control characters */
} listed;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static listed *list;

static gn_status list_add(const gn_os_map *map, const char *path)
{
    size_t len = strlen(path);
    listed *entry = gn_alloc(sizeof *entry + len + 1);
    if (entry == NULL) {
        return gn_alloc_failed();
    }
    entry->data = map->data;
    entry->size = map->size;
    for (size_t i = 0; i <= len; i++) {
        unsigned char c = (unsigned char)path[i];
        entry->path[i] = (c < 0x20 && c != 0) || c == 0x7f ? '?' : path[i];
    }
    (void)pthread_mutex_lock(&list_lock);
    entry->next = list;
    list = entry;
    (void)pthread_mutex_unlock(&list_lock);
    return GN_OK;
}

static void list_remove(const unsigned char *data)
{
    (void)pthread_mutex_lock(&list_lock);
    listed **at = &list;
    while (*at != NULL && (*at)->data != data) {
        at = &(*at)->next;
    }
    listed *entry = *at;
    if (entry != NULL) {
        *at = entry->next;
    }
    (void)pthread_mutex_unlock(&list_lock);
    gn_free(entry);
}

static int64_t time_ns(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

gn_status gn_os_map_file(const char *path, gn_os_map *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        gn_status code = errno == ENOENT ? GN_E_NOT_FOUND : GN_E_IO;
        return gn_base_fail(code, "%s: cannot open: %s", path, strerror(errno));
    }
    gn_status status = GN_OK;
    struct stat st;
    gn_os_map map = {0};
    if (fstat(fd, &st) != 0) {
        status = gn_base_fail(GN_E_IO, "%s: cannot stat: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        status = gn_base_fail(GN_E_IO, "%s: found a %s, expected a regular file", path,
                              S_ISDIR(st.st_mode) ? "directory" : "special file");
    } else if (st.st_size > 0) {
        map.size = (size_t)st.st_size;
        map.id = (gn_os_file_id){(uint64_t)st.st_ino, time_ns(&st.st_mtim), time_ns(&st.st_ctim)};
        void *p = mmap(NULL, map.size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            status = gn_base_fail(errno == ENOMEM ? GN_E_NOMEM : GN_E_IO, "%s: cannot map: %s",
                                  path, strerror(errno));
        } else {
            map.data = p;
            status = list_add(&map, path);
            if (status != GN_OK) {
                (void)munmap(p, map.size);
            }
        }
    }
    (void)close(fd);
    if (status == GN_OK) {
        *out = map;
    }
    return status;
}

void gn_os_unmap(gn_os_map *map)
{
    if (map != NULL && map->data != NULL) {
        list_remove(map->data);
        (void)munmap((void *)(uintptr_t)map->data, map->size);
    }
    if (map != NULL) {
        *map = (gn_os_map){0};
    }
}

#define ENTRIES 512 /* pages looked at at a time */

/* Entries of /proc/self/pagemap for pages [begin, begin + n ≤ ENTRIES); false where the system has none. */
static bool read_pagemap(uintptr_t begin, size_t n, uint64_t entries[ENTRIES])
{
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t want = (ssize_t)(n * sizeof *entries);
    bool ok = pread(fd, entries, (size_t)want, (off_t)(begin * sizeof *entries)) == want;
    (void)close(fd);
    return ok;
}

static bool is_present(uint64_t entry)
{
    return entry >> 63 != 0;
}

size_t gn_os_mapped_around(const void *data, size_t bytes, const void *p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)data / page;
    uintptr_t last = ((uintptr_t)data + bytes - 1) / page;
    uintptr_t at = (uintptr_t)p / page;
    uintptr_t begin = at - first > ENTRIES / 2 ? at - ENTRIES / 2 : first;
    uintptr_t end = last - at >= ENTRIES / 2 ? at + ENTRIES / 2 : last + 1;
    uint64_t entries[ENTRIES];
    (void)*(const volatile unsigned char *)p; /* maps it */
    if (!read_pagemap(begin, end - begin, entries)) {
        return 0;
    }
    size_t n = 1;
    for (uintptr_t i = at + 1; i < end && is_present(entries[i - begin]); i++) {
        n++;
    }
    for (uintptr_t i = at; i > begin && is_present(entries[i - 1 - begin]); i--) {
        n++;
    }
    return n * page;
}

size_t gn_os_mapped_bytes(const void *data, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = ((uintptr_t)data + bytes - 1) / page + 1;
    uint64_t entries[ENTRIES];
    size_t n = 0;
    for (uintptr_t begin = (uintptr_t)data / page; bytes != 0 && begin < end; begin += ENTRIES) {
        size_t count = end - begin < ENTRIES ? end - begin : ENTRIES;
        if (!read_pagemap(begin, count, entries)) {
            return 0;
        }
        for (size_t i = 0; i < count; i++) {
            n += is_present(entries[i]);
        }
    }
    return n * page;
}

static const char *guard_prefix;
static int guard_exit_code;

static void put(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    const listed *entry = list;
    uintptr_t at = (uintptr_t)info->si_addr;
    while (entry != NULL &&
           (at < (uintptr_t)entry->data || at - (uintptr_t)entry->data >= entry->size)) {
        entry = entry->next;
    }
    put(guard_prefix);
    put(": ");
    put(entry != NULL ? entry->path : "a mapped file");
    put(": the file was cut short while it was read\n");
    _exit(guard_exit_code);
}

void gn_os_guard_maps(const char *prefix, int exit_code)
{
    guard_prefix = prefix;
    guard_exit_code = exit_code;
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}
