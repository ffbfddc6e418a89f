/* The probe of AMX. There are machines that advertise the tiles, grant the permission and then fault, so the
 * instructions are tried where a fault hurts nobody: in a child process.
 *
 * The child is made with clone(), sharing memory while its parent waits. Unlike a fork this copies no page
 * tables, however large the process is, and runs no handlers of the program; since it sends no signal when it
 * ends and only asking for clones finds it, a program that watches children of its own never sees it. The
 * child resets the signals that could end it and sets an alarm. */
#include "cpu/amx.h"

#include "base/attr.h"

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__linux__)
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From the Linux ABI: asm/prctl.h and the number of the tile data's state component. */
#define REQUEST_PERMISSION 0x1023
#define TILE_DATA          18

#define STACK_BYTES 65536
#define LIMIT_S     1

static int run_test(void *test)
{
    static const int deadly[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGALRM};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < GN_COUNTOF(deadly); i++) {
        (void)sigaction(deadly[i], &usual, NULL);
        (void)sigaddset(&set, deadly[i]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)alarm(LIMIT_S);
    return (*(gn_cpu_amx_test **)test)(); /* clone() ends the process with it */
}

/* A thread sanitizer keeps its books of a thread in the memory that parent and child would share. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_SHARES CLONE_VFORK
#else
#define CHILD_SHARES (CLONE_VM | CLONE_VFORK)
#endif

/* Exit status of the child, -1 where there is none, or minus the number of the signal that ended it. */
static int in_child(gn_cpu_amx_test *test)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return -1;
    }
    int result = -1;
    int status = 0;
    pid_t pid = clone(run_test, stack + STACK_BYTES, CHILD_SHARES, &test);
    if (pid > 0) {
        pid_t ended;
        do {
            ended = waitpid(pid, &status, __WALL);
        } while (ended < 0 && errno == EINTR);
        if (ended == pid) {
            result = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
        }
    }
    (void)munmap(stack, STACK_BYTES);
    return result;
}

bool gn_cpu_amx_usable(gn_cpu_amx_test *test, char *why, size_t n)
{
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0) {
        (void)snprintf(why, n, "the operating system does not permit it");
        return false;
    }
    int result = in_child(test);
    if (result == -1) {
        (void)snprintf(why, n, "no process could be made for its self-test");
    } else if (result < 0) {
        (void)snprintf(why, n, "its self-test was ended by signal %d", -result);
    } else if (result != 0) {
        (void)snprintf(why, n, "its self-test gave wrong numbers");
    }
    return result == 0;
}

#else

bool gn_cpu_amx_usable(gn_cpu_amx_test *test, char *why, size_t n)
{
    (void)test;
    (void)snprintf(why, n, "it is not supported on this operating system");
    return false;
}

#endif

/* Static and constant: the intrinsic of gcc 12 claims to read 8 bytes only, so stores to a local may be
 * dropped. Tile 0 is C, 1 A, 2 B, 16 rows of 64 bytes each. */
static const uint8_t config[64] GN_ALIGNED(64) = {
    [0] = 1, [16] = 64, [18] = 64, [20] = 64, [48] = 16, [49] = 16, [50] = 16};

int gn_cpu_amx_multiply(void)
{
    uint8_t a[16][64] GN_ALIGNED(64);
    uint8_t b[16][64] GN_ALIGNED(64);
    int32_t c[16][16] GN_ALIGNED(64);
    for (unsigned i = 0; i < 16; i++) {
        for (unsigned j = 0; j < 64; j++) {
            a[i][j] = (uint8_t)(i * 37 + j * 11);
            b[i][j] = (uint8_t)(i * 29 + j * 83 + 5);
        }
    }
    _tile_loadconfig(config);
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        _tile_zero(0);
        _tile_loadd(1, a, 64);
        _tile_loadd(2, b, 64);
        if (is_signed != 0) {
            _tile_dpbssd(0, 1, 2);
        } else {
            _tile_dpbsud(0, 1, 2);
        }
        _tile_stored(0, c, 64);
        for (unsigned i = 0; i < 16; i++) {
            for (unsigned r = 0; r < 16; r++) {
                int32_t sum = 0;
                for (unsigned k = 0; k < 64; k++) {
                    const uint8_t code = b[k / 4][r * 4 + k % 4];
                    sum += (int8_t)a[i][k] * (is_signed != 0 ? (int8_t)code : code);
                }
                if (c[i][r] != sum) {
                    return 1;
                }
            }
        }
    }
    _tile_release();
    return 0;
}
