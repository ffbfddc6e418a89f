/* The slash commands of a chat, as a table. */
#include "cli/chat.h"

#include "base/alloc.h"

#include <string.h>

typedef struct command {
    const char *name;
    const char *args; /* "" where it takes none */
    bool needs_args;
    const char *help;
    gn_status (*run)(gn_cli_chat *chat, const char *args, size_t len);
} command;

static gn_status run_help(gn_cli_chat *chat, const char *args, size_t len);

static gn_status run_system(gn_cli_chat *chat, const char *args, size_t len)
{
    json_t *messages = chat->messages;
    bool has = strcmp(gn_cli_chat_role(messages, 0), "system") == 0;
    if (len == 0) {
        const char *text =
            has ? json_string_value(json_object_get(json_array_get(messages, 0), "content")) : NULL;
        (void)fprintf(stderr, "%s\n", text != NULL ? text : "(no system message)");
        return GN_OK;
    }
    if (strcmp(args, "-") != 0) {
        GN_TRY(gn_cli_chat_add(messages, 0, "system", args, len));
        return has && json_array_remove(messages, 1) != 0 ? gn_alloc_failed() : GN_OK;
    }
    if (has) {
        (void)json_array_remove(messages, 0);
    }
    return GN_OK;
}

static gn_status run_set(gn_cli_chat *chat, const char *args, size_t len)
{
    gn_buf text = {0};
    gn_status status;
    if (len == 0) {
        status = gn_cli_settings_list(&chat->settings, &text);
        if (status == GN_OK) {
            (void)fwrite(text.data, 1, text.len, stderr);
        }
    } else {
        size_t n = strcspn(args, " \t");
        const char *value = args + n + strspn(args + n, " \t");
        status = gn_buf_append(&text, args, n);
        if (status == GN_OK) {
            status = value[0] != '\0' ? gn_cli_settings_set(&chat->settings, text.data, value)
                                      : gn_base_fail(GN_E_ARG, "expected: /set NAME VALUE");
        }
    }
    gn_buf_fini(&text);
    return status;
}

static gn_status run_regen(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)args;
    (void)len;
    size_t n = json_array_size(chat->messages);
    GN_REQUIRE(n != 0 && strcmp(gn_cli_chat_role(chat->messages, n - 1), "assistant") == 0,
               GN_E_STATE, "there is no answer to generate again");
    json_t *old = json_incref(json_array_get(chat->messages, n - 1));
    (void)json_array_remove(chat->messages, n - 1);
    bool answered;
    gn_status status = gn_cli_chat_reply(chat, &answered);
    if (!answered && json_array_append(chat->messages, old) != 0 && status == GN_OK) {
        status = gn_alloc_failed();
    }
    json_decref(old);
    return status;
}

static gn_status run_undo(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)args;
    (void)len;
    size_t from = json_array_size(chat->messages);
    while (from > 0 && strcmp(gn_cli_chat_role(chat->messages, from - 1), "user") != 0) {
        from--;
    }
    GN_REQUIRE(from > 0, GN_E_STATE, "there is nothing to undo");
    while (json_array_size(chat->messages) >= from) {
        (void)json_array_remove(chat->messages, json_array_size(chat->messages) - 1);
    }
    (void)fprintf(stderr, "(took back the last turn; %zu messages are left)\n", from - 1);
    return GN_OK;
}

static gn_status run_save(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)len;
    GN_TRY(gn_cli_chat_save(chat, args));
    (void)fprintf(stderr, "(saved %zu messages)\n", json_array_size(chat->messages));
    return GN_OK;
}

static gn_status run_load(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)len;
    GN_TRY(gn_cli_chat_load(chat, args));
    (void)fprintf(stderr, "(loaded %zu messages)\n", json_array_size(chat->messages));
    return GN_OK;
}

static gn_status run_stats(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)args;
    (void)len;
    (void)fprintf(stderr, "%s: %zu messages; %zu of %zu tokens of context in use; %zu generated\n",
                  chat->model_name, json_array_size(chat->messages),
                  gn_session_length(chat->asker->session), chat->asker->n_ctx, chat->n_generated);
    if (chat->last.n_prompt != 0) {
        gn_cli_answer_stats(&chat->last);
    }
    return GN_OK;
}

static gn_status run_quit(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)args;
    (void)len;
    chat->quit = true;
    return GN_OK;
}

static const command commands[] = {
    {"/help", "", false, "this list", run_help},
    {"/system", "[TEXT]", false, "show the system message, set it, or remove it with -",
     run_system},
    {"/set", "[NAME VALUE]", false, "show all settings, or change one", run_set},
    {"/regen", "", false, "generate the last answer again", run_regen},
    {"/undo", "", false, "take back the last message and its answer", run_undo},
    {"/save", "FILE", true, "write messages and settings to a JSON file", run_save},
    {"/load", "FILE", true, "continue from such a file", run_load},
    {"/stats", "", false, "tokens and speed", run_stats},
    {"/quit", "", false, "leave, as Ctrl-D does", run_quit},
};

static gn_status run_help(gn_cli_chat *chat, const char *args, size_t len)
{
    (void)chat;
    (void)args;
    (void)len;
    for (size_t i = 0; i < GN_COUNTOF(commands); i++) {
        (void)fprintf(stderr, "  %-8s%-14s%s\n", commands[i].name, commands[i].args,
                      commands[i].help);
    }
    (void)fprintf(
        stderr, "A line that ends in \\ goes on in the next one; \"\"\" starts and ends a text of "
                "many lines.\n"
                "Ctrl-C stops an answer. A space before / sends the line as a message.\n");
    return GN_OK;
}

static const command *find(const char *name, size_t len)
{
    for (size_t i = 0; i < GN_COUNTOF(commands); i++) {
        if (strlen(commands[i].name) == len && memcmp(commands[i].name, name, len) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static gn_status fail_unknown(const char *name, size_t len)
{
    const char *names[GN_COUNTOF(commands)];
    for (size_t i = 0; i < GN_COUNTOF(commands); i++) {
        names[i] = commands[i].name;
    }
    char found[24];
    len = len < sizeof found ? len : sizeof found - 1;
    memcpy(found, name, len);
    found[len] = '\0';
    const char *near = gn_cli_args_nearest(found, names, GN_COUNTOF(commands));
    return gn_base_fail(GN_E_ARG, "unknown command %s%s%s (/help lists them)", found,
                        near != NULL ? ", did you mean " : "", near != NULL ? near : "");
}

gn_status gn_cli_chat_command(gn_cli_chat *chat, const char *text, size_t len)
{
    GN_REQUIRE(strlen(text) == len, GN_E_ARG, "a command has no NUL byte");
    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        len--;
    }
    size_t name_len = strcspn(text, " \t\r\n");
    const command *found = find(text, name_len);
    if (found == NULL) {
        return fail_unknown(text, name_len);
    }
    size_t from = name_len + strspn(text + name_len, " \t\r\n");
    size_t args_len = from < len ? len - from : 0;
    GN_REQUIRE(args_len == 0 || found->args[0] != '\0', GN_E_ARG, "%s takes nothing", found->name);
    GN_REQUIRE(args_len != 0 || !found->needs_args, GN_E_ARG, "expected: %s %s", found->name,
               found->args);
    char *args = gn_strndup(text + from, args_len);
    if (args == NULL) {
        return gn_alloc_failed();
    }
    gn_status status = found->run(chat, args, args_len);
    gn_free(args);
    return status;
}
