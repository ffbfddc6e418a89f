/* Ctrl-C as an event: it stops an answer, not the program. For the main thread. */
#ifndef GN_CLI_INTERRUPT_H
#define GN_CLI_INTERRUPT_H

#include "base/status.h"

#include <stdbool.h>

/* From now on Ctrl-C does not end the program but sets a mark. */
GN_MUST_USE gn_status gn_cli_interrupt_catch(void);

/* Is the mark set? */
bool gn_cli_interrupt_pending(void);

/* Was it? It is cleared. */
bool gn_cli_interrupted(void);

/* Becomes readable when the mark is set, for poll(); -1 before gn_cli_interrupt_catch(). */
int gn_cli_interrupt_fd(void);

#endif
