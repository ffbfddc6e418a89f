/* The signal may arrive on any thread of the program, workers included, so it cannot be relied on to
 * interrupt a wait of the main thread: the handler also writes to a pipe, which the wait watches. */
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t mark;
static int wake[2] = {-1, -1}; /* what is read from, what the handler writes to */

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    int saved = errno;
    mark = 1;
    ssize_t written = write(wake[1], "", 1); /* a full pipe is readable already */
    (void)written;
    errno = saved;
}

gn_status gn_cli_interrupt_catch(void)
{
    GN_REQUIRE(wake[0] >= 0 || pipe2(wake, O_CLOEXEC | O_NONBLOCK) == 0, GN_E_UNAVAILABLE,
               "cannot catch Ctrl-C: %s", strerror(errno));
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    GN_REQUIRE(sigaction(SIGINT, &action, NULL) == 0, GN_E_UNAVAILABLE, "cannot catch Ctrl-C: %s",
               strerror(errno));
    return GN_OK;
}

bool gn_cli_interrupt_pending(void)
{
    return mark != 0;
}

bool gn_cli_interrupted(void)
{
    bool was = mark != 0;
    mark = 0;
    char bytes[64];
    while (wake[0] >= 0 && read(wake[0], bytes, sizeof bytes) > 0) {
    }
    return was;
}

int gn_cli_interrupt_fd(void)
{
    return wake[0];
}
