/* The loop of a chat: read a message, run it as a command or answer it. A message that gets no answer is
 * taken back, so that the conversation always alternates, which many templates insist on. */
#include "cli/chat.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/out.h"

#include <string.h>

const char *gn_cli_chat_role(const json_t *messages, size_t i)
{
    const char *role = json_string_value(json_object_get(json_array_get(messages, i), "role"));
    return role != NULL ? role : "";
}

gn_status gn_cli_chat_add(json_t *messages, size_t index, const char *role, const char *text,
                          size_t len)
{
    GN_REQUIRE(gn_utf8_valid(text, len), GN_E_FORMAT, "the message is not valid UTF-8");
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", json_stringn(text, len));
    if (message == NULL || json_array_insert_new(messages, index, message) != 0) {
        return gn_alloc_failed();
    }
    return GN_OK;
}

/* Nothing is cut in silence. */
static void explain_finish(const gn_cli_chat *chat)
{
    const gn_cli_answer *a = &chat->last;
    if (a->finish == GN_FINISH_CANCELLED) {
        (void)fprintf(stderr, "(stopped by Ctrl-C; /regen tries again)\n");
    } else if (a->finish == GN_FINISH_LENGTH && a->n_prompt + a->n >= chat->asker->n_ctx) {
        (void)fprintf(stderr,
                      "(the answer is cut: the context of %zu tokens is full; /undo takes turns "
                      "back, --ctx sets its size)\n",
                      chat->asker->n_ctx);
    } else if (a->finish == GN_FINISH_LENGTH) {
        (void)fprintf(stderr, "(the answer is cut at %lld tokens; /set max-tokens N)\n",
                      (long long)chat->settings.max_tokens);
    }
}

gn_status gn_cli_chat_reply(gn_cli_chat *chat, bool *answered)
{
    *answered = false;
    gn_status status = gn_cli_ask_chat(chat->asker, &chat->settings, chat->messages, &chat->last);
    const gn_cli_answer *a = &chat->last;
    if (a->text.len != 0 || status == GN_OK) {
        (void)fputc('\n', stdout);
        GN_TRY(gn_cli_flush());
    }
    GN_TRY(status);
    chat->n_generated += a->n;
    if (a->text.len != 0 || a->finish != GN_FINISH_CANCELLED) {
        GN_TRY(gn_cli_chat_add(chat->messages, json_array_size(chat->messages), "assistant",
                               a->text.len != 0 ? a->text.data : "", a->text.len));
        *answered = true;
    }
    explain_finish(chat);
    if (chat->show_stats) {
        gn_cli_answer_stats(a);
    }
    return GN_OK;
}

static gn_status talk(gn_cli_chat *chat, const char *text, size_t len)
{
    size_t at = json_array_size(chat->messages);
    GN_TRY(gn_cli_chat_add(chat->messages, at, "user", text, len));
    bool answered;
    gn_status status = gn_cli_chat_reply(chat, &answered);
    if (!answered) {
        (void)json_array_remove(chat->messages, at);
    }
    return status;
}

static bool is_blank(const gn_buf *text)
{
    return strspn(text->data != NULL ? text->data : "", " \t\r\n") == text->len;
}

static void print_failure(gn_status status)
{
    (void)fflush(stdout);
    if (status != GN_OK) {
        (void)fprintf(stderr, "error: %s\n", gn_error_message());
    }
}

static gn_status loop(gn_cli_chat *chat, gn_cli_line *line)
{
    bool terminal = gn_cli_line_is_terminal(line);
    gn_status worst = GN_OK;
    gn_buf text = {0};
    gn_status status = GN_OK;
    while (!chat->quit) {
        gn_cli_line_event event;
        status = gn_cli_line_read(line, &text, &event);
        if (status != GN_OK || event == GN_CLI_LINE_END) {
            break;
        }
        if (event == GN_CLI_LINE_INTERRUPT) {
            (void)fprintf(stderr, "\n(Ctrl-D or /quit leaves the chat)\n");
            continue;
        }
        if (is_blank(&text)) {
            continue;
        }
        gn_status done = text.data[0] == '/' ? gn_cli_chat_command(chat, text.data, text.len)
                                             : talk(chat, text.data, text.len);
        print_failure(done);
        worst = done != GN_OK ? done : worst;
    }
    gn_buf_fini(&text);
    if (status == GN_OK && !terminal) {
        gn_base_fail_clear(); /* it was printed when it happened */
        return worst;
    }
    if (status == GN_OK && !chat->quit) {
        (void)fputc('\n', stderr); /* Ctrl-D leaves the cursor behind the prompt */
    }
    return status;
}

gn_status gn_cli_chat_run(gn_cli_asker *asker, const char *model_name,
                          const gn_cli_settings *settings, const char *system, bool show_stats)
{
    gn_cli_chat chat = {.asker = asker,
                        .model_name = model_name,
                        .settings = *settings,
                        .messages = json_array(),
                        .show_stats = show_stats};
    gn_cli_line *line = NULL;
    gn_status status = chat.messages != NULL ? GN_OK : gn_alloc_failed();
    if (status == GN_OK && system != NULL) {
        status = gn_cli_chat_add(chat.messages, 0, "system", system, strlen(system));
    }
    if (status == GN_OK) {
        status = gn_cli_line_create(&line);
    }
    if (status == GN_OK && gn_cli_line_is_terminal(line)) {
        status = gn_cli_interrupt_catch();
        (void)fprintf(stderr, "%s, %zu tokens of context. /help lists commands.\n", model_name,
                      asker->n_ctx);
    }
    if (status == GN_OK) {
        status = loop(&chat, line);
    }
    gn_cli_line_destroy(line);
    gn_cli_answer_fini(&chat.last);
    json_decref(chat.messages);
    return status;
}
