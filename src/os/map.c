#include "os/map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
        void *p = mmap(NULL, map.size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            status = gn_base_fail(errno == ENOMEM ? GN_E_NOMEM : GN_E_IO, "%s: cannot map: %s",
                                  path, strerror(errno));
        } else {
            map.data = p;
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
        (void)munmap((void *)(uintptr_t)map->data, map->size);
    }
    if (map != NULL) {
        *map = (gn_os_map){0};
    }
}

static const char *guard_message;
static int guard_exit_code;

static void on_sigbus(int sig)
{
    (void)sig;
    ssize_t n = write(STDERR_FILENO, guard_message, strlen(guard_message));
    n = write(STDERR_FILENO, "\n", 1);
    (void)n;
    _exit(guard_exit_code);
}

void gn_os_guard_maps(const char *message, int exit_code)
{
    guard_message = message;
    guard_exit_code = exit_code;
    struct sigaction action = {.sa_handler = on_sigbus};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}
