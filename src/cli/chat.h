/* The chat of `ganglion run`: a conversation, kept as JSON messages, and the commands that change it.
 * Answers go to standard output; everything else that is said goes to standard error. One thread. */
#ifndef GN_CLI_CHAT_H
#define GN_CLI_CHAT_H

#include "cli/answer.h"
#include "cli/chat_line.h"

typedef struct gn_cli_chat {
    gn_cli_asker *asker;    /* borrowed */
    const char *model_name; /* borrowed */
    gn_cli_settings settings;
    json_t *messages; /* array of {"role", "content"} */
    gn_cli_answer last;
    size_t n_generated; /* tokens, over all answers */
    bool show_stats;    /* after each answer */
    bool quit;
} gn_cli_chat;

/* Talk until /quit or the end of standard input. `system` may be NULL. Where standard input is no terminal,
 * the code of the last message or command that failed is returned, its line already printed. */
GN_MUST_USE gn_status gn_cli_chat_run(gn_cli_asker *asker, const char *model_name,
                                      const gn_cli_settings *settings, const char *system,
                                      bool show_stats);

/* Run the command in text[0 .. len), which starts with a slash. A failure leaves the chat as it was. */
GN_MUST_USE gn_status gn_cli_chat_command(gn_cli_chat *chat, const char *text, size_t len);

/* Answer the messages as they are. *answered: an answer was added to them. Else nothing was, because of a
 * failure or because Ctrl-C came before its first word. */
GN_MUST_USE gn_status gn_cli_chat_reply(gn_cli_chat *chat, bool *answered);

/* Append a message, or put it in front. GN_E_FORMAT: the text is no valid UTF-8. */
GN_MUST_USE gn_status gn_cli_chat_add(json_t *messages, size_t index, const char *role,
                                      const char *text, size_t len);

/* The role of message i, or "" where there is none. */
const char *gn_cli_chat_role(const json_t *messages, size_t i);

/* chat_file.c: the conversation and its settings as a JSON file. Writing replaces the file in one step.
 * Reading checks everything before it changes anything; messages name file and place. */
GN_MUST_USE gn_status gn_cli_chat_save(const gn_cli_chat *chat, const char *path);
GN_MUST_USE gn_status gn_cli_chat_load(gn_cli_chat *chat, const char *path);

#endif
