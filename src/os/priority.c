/* See os/priority.h. */
#include "os/priority.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int64_t gn_os_thread_id(void)
{
    return (int64_t)syscall(SYS_gettid);
}

void gn_os_thread_set_idle(int64_t thread_id, bool idle)
{
    const struct sched_param none = {0};
    (void)sched_setscheduler((pid_t)thread_id, idle ? SCHED_IDLE : SCHED_OTHER, &none);
}
