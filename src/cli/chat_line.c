/* Lines come from libedit where standard input is a terminal, else from getline(). Above that, one reader
 * joins lines into messages. libedit has its own heap: its memory does not pass through base/alloc.h. */
#include "cli/chat_line.h"

#include "base/alloc.h"
#include "cli/interrupt.h"
#include "os/folder.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define HISTORY_ENTRIES 1000
#define MESSAGE_LIMIT   ((size_t)64 << 20)

struct gn_cli_line {
    EditLine *edit; /* NULL: standard input is no terminal */
    History *history;
    gn_buf history_path; /* empty: history is not kept */
    char *piped;         /* getline()'s */
    size_t piped_cap;
    const char *prompt;
};

static char *prompt_of(EditLine *edit)
{
    gn_cli_line *line = NULL;
    (void)el_get(edit, EL_CLIENTDATA, &line);
    return (char *)(uintptr_t)line->prompt;
}

/* The next character, for libedit; -1 on Ctrl-C, which drops what was typed before it. The terminal leaves that
 * to this function (noflsh), so what the wait saw is still there to read. Bytes that are no character of the locale are
 * dropped. */
static int read_char(EditLine *edit, wchar_t *out)
{
    (void)edit;
    mbstate_t state = {0};
    while (!gn_cli_interrupt_pending()) {
        struct pollfd input[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                 {.fd = gn_cli_interrupt_fd(), .events = POLLIN}};
        if (poll(input, GN_COUNTOF(input), -1) < 0 && errno != EINTR) {
            return -1;
        }
        if (input[0].revents == 0) {
            continue;
        }
        char byte;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0) {
            return n == 0 ? 0 : -1;
        }
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used <= 1) {
            return 1;
        }
        if (used == (size_t)-1) {
            state = (mbstate_t){0};
        }
    }
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    return -1;
}

/* One line from libedit. A Ctrl-C that was meant for the answer before is forgotten. */
static const char *edit_line(gn_cli_line *line, const char *prompt, int *n)
{
    (void)gn_cli_interrupted();
    line->prompt = prompt;
    (void)el_set(line->edit, EL_PREP_TERM,
                 1); /* before the prompt: keys typed after it are edited */
    return el_gets(line->edit, n);
}

/* ---- history ---- */

static gn_status find_history(gn_buf *path)
{
    const char *given = getenv("GANGLION_HISTORY");
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (given != NULL) {
        return gn_buf_puts(path, given);
    }
    if (state != NULL && state[0] == '/') {
        return gn_buf_printf(path, "%s/ganglion/history", state);
    }
    if (home != NULL && home[0] == '/') {
        return gn_buf_printf(path, "%s/.local/state/ganglion/history", home);
    }
    return GN_OK;
}

/* Make the folder that the file at `path` lies in. */
static void make_folder_of(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash != NULL && slash != path) {
        *slash = '\0';
        gn_status ignored = gn_os_make_folder(path); /* saving fails later */
        (void)ignored;
        *slash = '/';
    }
}

static gn_status open_history(gn_cli_line *line)
{
    HistEvent event;
    line->history = history_init();
    if (line->history == NULL) {
        return gn_alloc_failed();
    }
    (void)history(line->history, &event, H_SETSIZE, HISTORY_ENTRIES);
    (void)history(line->history, &event, H_SETUNIQUE, 1);
    GN_TRY(find_history(&line->history_path));
    if (line->history_path.len != 0) {
        (void)history(line->history, &event, H_LOAD, line->history_path.data);
    }
    return GN_OK;
}

static void save_history(gn_cli_line *line)
{
    HistEvent event;
    if (line->history != NULL && line->history_path.len != 0) {
        mode_t old = umask(S_IRWXG | S_IRWXO); /* messages are private */
        make_folder_of(line->history_path.data);
        (void)history(line->history, &event, H_SAVE, line->history_path.data);
        (void)umask(old);
    }
}

/* ---- opening ---- */

/* libedit reads characters by the locale; one without UTF-8 would drop all others. */
static void set_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

static gn_status open_terminal(gn_cli_line *line)
{
    set_locale();
    line->edit = el_init("ganglion", stdin, stdout, stderr);
    if (line->edit == NULL) {
        return gn_alloc_failed();
    }
    GN_TRY(open_history(line));
    (void)el_set(line->edit, EL_CLIENTDATA, line);
    (void)el_set(line->edit, EL_PROMPT, prompt_of);
    (void)el_set(line->edit, EL_GETCFN, read_char);
    (void)el_set(line->edit, EL_SETTY, "-d", "+noflsh", NULL);
    (void)el_set(line->edit, EL_EDITOR, "emacs");
    (void)el_set(line->edit, EL_HIST, history, line->history);
    (void)el_set(line->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    (void)el_source(line->edit, NULL); /* the user's ~/.editrc has the last word */
    return GN_OK;
}

gn_status gn_cli_line_create(gn_cli_line **out)
{
    gn_cli_line *line = gn_calloc(1, sizeof *line);
    if (line == NULL) {
        return gn_alloc_failed();
    }
    if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
        gn_status status = open_terminal(line);
        if (status != GN_OK) {
            gn_cli_line_destroy(line);
            return status;
        }
    }
    *out = line;
    return GN_OK;
}

void gn_cli_line_destroy(gn_cli_line *line)
{
    if (line == NULL) {
        return;
    }
    save_history(line);
    if (line->edit != NULL) {
        el_end(line->edit);
    }
    if (line->history != NULL) {
        history_end(line->history);
    }
    gn_buf_fini(&line->history_path);
    free(line->piped);
    gn_free(line);
}

bool gn_cli_line_is_terminal(const gn_cli_line *line)
{
    return line->edit != NULL;
}

/* ---- reading ---- */

/* One line without its newline; borrowed until the next call. */
static gn_status read_line(gn_cli_line *line, const char *prompt, const char **text, size_t *len,
                           gn_cli_line_event *event)
{
    *event = GN_CLI_LINE_MESSAGE;
    errno = 0;
    if (line->edit != NULL) {
        int n = 0;
        *text = edit_line(line, prompt, &n);
        *len = *text != NULL && n > 0 ? (size_t)n : 0;
    } else {
        ssize_t n = getline(&line->piped, &line->piped_cap, stdin);
        *text = line->piped;
        *len = n > 0 ? (size_t)n : 0;
    }
    if (line->edit != NULL && gn_cli_interrupted()) {
        *event = GN_CLI_LINE_INTERRUPT;
        el_reset(line->edit);
    } else if (*len == 0) {
        GN_REQUIRE(errno != ENOMEM, GN_E_NOMEM, "out of memory");
        GN_REQUIRE(line->edit != NULL || !ferror(stdin), GN_E_IO, "standard input: cannot read: %s",
                   strerror(errno));
        *event = GN_CLI_LINE_END;
    } else if ((*text)[*len - 1] == '\n') {
        --*len;
    }
    return GN_OK;
}

static bool ends_with(const gn_buf *text, const char *end)
{
    size_t n = strlen(end);
    return text->len >= n && memcmp(text->data + text->len - n, end, n) == 0;
}

static void cut(gn_buf *text, size_t from, size_t n)
{
    memmove(text->data + from, text->data + from + n, text->len - from - n + 1);
    text->len -= n;
}

/* Is the message complete? Takes off the marks of continuation. */
static bool is_complete(gn_buf *text, bool *in_block)
{
    static const char mark[] = "\"\"\"";
    const size_t n = sizeof mark - 1;
    if (!*in_block && text->len >= n && memcmp(text->data, mark, n) == 0) {
        *in_block = true;
        cut(text, 0, n);
    }
    if (*in_block) {
        if (!ends_with(text, mark)) {
            return false;
        }
        cut(text, text->len - n, n);
        return true;
    }
    if (ends_with(text, "\\")) {
        cut(text, text->len - 1, 1);
        return false;
    }
    return true;
}

/* A block's marks may stand on lines of their own. */
static void trim_block(gn_buf *text)
{
    if (text->len != 0 && text->data[0] == '\n') {
        cut(text, 0, 1);
    }
    if (ends_with(text, "\n")) {
        cut(text, text->len - 1, 1);
    }
}

static void remember(gn_cli_line *line, const gn_buf *typed)
{
    HistEvent event;
    if (line->history != NULL && typed->len != 0) {
        (void)history(line->history, &event, H_ENTER, typed->data);
    }
}

gn_status gn_cli_line_read(gn_cli_line *line, gn_buf *out, gn_cli_line_event *event)
{
    bool in_block = false;
    bool complete = false;
    gn_buf_clear(out);
    for (bool first = true; !complete; first = false) {
        const char *text;
        size_t len;
        GN_TRY(read_line(line, first ? ">>> " : "... ", &text, &len, event));
        if (*event == GN_CLI_LINE_INTERRUPT || (*event == GN_CLI_LINE_END && first)) {
            return GN_OK;
        }
        if (*event ==
            GN_CLI_LINE_END) { /* what is there counts; the next call finds the end again */
            break;
        }
        GN_REQUIRE(out->len + len < MESSAGE_LIMIT, GN_E_LIMIT,
                   "the message has more than %zu bytes", MESSAGE_LIMIT);
        GN_TRY(gn_buf_append(out, first ? "" : "\n", first ? 0 : 1));
        GN_TRY(gn_buf_append(out, text, len));
        complete = is_complete(out, &in_block);
    }
    if (in_block) {
        trim_block(out);
    }
    *event = GN_CLI_LINE_MESSAGE;
    remember(line, out);
    return GN_OK;
}
