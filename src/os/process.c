#include "os/process.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Start the program with its standard output into `out` (a descriptor). */
static int spawn(const char *const *argv, int out, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    }
    if (error == 0) {
        /* posix_spawn() takes the arguments as execv() does, without const for C's sake. */
        error = posix_spawn(pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Read to the end; the time of the first byte, or of the end where there is none. */
static uint64_t drain(int fd)
{
    char bytes[512];
    uint64_t first_ns = 0;
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0 && first_ns == 0) {
            first_ns = gn_os_now_ns();
        }
    }
    return first_ns != 0 ? first_ns : gn_os_now_ns();
}

gn_status gn_os_first_output(const char *const *argv, uint64_t *ns)
{
    int ends[2];
    GN_REQUIRE(pipe2(ends, O_CLOEXEC) == 0, GN_E_UNAVAILABLE, "pipe: %s", strerror(errno));
    uint64_t start = gn_os_now_ns();
    pid_t pid = 0;
    int error = spawn(argv, ends[1], &pid);
    (void)close(ends[1]);
    if (error != 0) {
        (void)close(ends[0]);
        return gn_base_fail(GN_E_UNAVAILABLE, "%s: can't be started: %s", argv[0], strerror(error));
    }
    uint64_t first = drain(ends[0]);
    (void)close(ends[0]);
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    GN_REQUIRE(WIFEXITED(how) && WEXITSTATUS(how) == 0, GN_E_UNAVAILABLE,
               "%s: ended with status %d, expected 0", argv[0], how);
    *ns = first - start;
    return GN_OK;
}

/* The rest of the first line of the file at `path` that starts with `name` and a colon, without blanks in
 * front: out [size]. False where there is none. */
static bool find_line(const char *path, const char *name, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    char line[256];
    bool found = false;
    while (!found && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon != NULL && strncmp(line, name, strlen(name)) == 0 &&
            strspn(line + strlen(name), " \t") == (size_t)(colon - line) - strlen(name)) {
            const char *value = colon + 1 + strspn(colon + 1, " \t");
            (void)snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
            found = true;
        }
    }
    (void)fclose(f);
    return found;
}

static uint64_t status_bytes(const char *name)
{
    char value[32];
    return find_line("/proc/self/status", name, value, sizeof value)
               ? strtoull(value, NULL, 10) * 1024
               : 0;
}

gn_os_usage gn_os_memory_usage(void)
{
    return (gn_os_usage){.private_bytes = status_bytes("RssAnon"),
                         .shared_bytes = status_bytes("RssFile") + status_bytes("RssShmem"),
                         .peak_bytes = status_bytes("VmHWM")};
}

const char *gn_os_cpu_name(char out[GN_OS_CPU_NAME])
{
    if (!find_line("/proc/cpuinfo", "model name", out, GN_OS_CPU_NAME)) {
        out[0] = '\0';
    }
    return out;
}
