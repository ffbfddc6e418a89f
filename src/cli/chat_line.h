/* Messages typed by the user: line editing and history on a terminal, plain lines from a pipe. One thread. */
#ifndef GN_CLI_CHAT_LINE_H
#define GN_CLI_CHAT_LINE_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct gn_cli_line gn_cli_line;

typedef enum gn_cli_line_event {
    GN_CLI_LINE_MESSAGE,
    GN_CLI_LINE_INTERRUPT, /* Ctrl-C on a terminal: what was typed is dropped */
    GN_CLI_LINE_END        /* Ctrl-D, or the end of the pipe */
} gn_cli_line_event;

/* Read from standard input. History is kept in `$GANGLION_HISTORY` (empty: nowhere), else
 * $XDG_STATE_HOME/ganglion/history, else ~/.local/state/ganglion/history; a history that can't be read or
 * written is no error. */
GN_MUST_USE gn_status gn_cli_line_create(gn_cli_line **out);
/* Saves the history. */
void gn_cli_line_destroy(gn_cli_line *line);

bool gn_cli_line_is_terminal(const gn_cli_line *line);

/* Put the next message into `out` (cleared first), without its last newline. A line that ends in `\` goes
 * on in the next one; text between """ and """ may have any number of lines. */
GN_MUST_USE gn_status gn_cli_line_read(gn_cli_line *line, gn_buf *out, gn_cli_line_event *event);

#endif
