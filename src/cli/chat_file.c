/* A saved chat: {"ganglion_chat": 1, "model": NAME, "settings": {…}, "messages": [{"role", "content"}, …]}.
 * A file is foreign input: all of it is checked before the chat changes. */
#include "cli/chat.h"

#include "base/alloc.h"
#include "cli/out.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_VERSION 1

static gn_status build(const gn_cli_chat *chat, json_t **out)
{
    json_t *settings = NULL;
    GN_TRY(gn_cli_settings_to_json(&chat->settings, &settings));
    *out =
        json_pack("{s:i, s:s%, s:o, s:O}", "ganglion_chat", FILE_VERSION, "model", chat->model_name,
                  strlen(chat->model_name), "settings", settings, "messages", chat->messages);
    return *out != NULL ? GN_OK : gn_alloc_failed();
}

static gn_status write_file(const json_t *root, const char *path)
{
    FILE *file = fopen(path, "wbx");
    GN_REQUIRE(file != NULL, GN_E_IO, "%s: cannot write: %s", path, strerror(errno));
    errno = 0;
    bool ok = json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) == 0 &&
              fputc('\n', file) != EOF;
    ok = fflush(file) == 0 && fsync(fileno(file)) == 0 && ok;
    int cause = errno;
    ok = fclose(file) == 0 && ok;
    if (!ok) {
        (void)unlink(path);
        return gn_base_fail(GN_E_IO, "%s: cannot write: %s", path,
                            cause != 0 ? strerror(cause) : "out of memory");
    }
    return GN_OK;
}

/* Renaming over a path replaces what lies there, be it a device, a pipe or a link to elsewhere: only a
 * plain file may be. */
static gn_status check_replaceable(const char *path)
{
    struct stat st;
    GN_REQUIRE(lstat(path, &st) != 0 || S_ISREG(st.st_mode), GN_E_IO,
               "%s: cannot write: it is there and is no regular file", path);
    return GN_OK;
}

gn_status gn_cli_chat_save(const gn_cli_chat *chat, const char *path)
{
    json_t *root = NULL;
    gn_buf temporary = {0};
    gn_status status = check_replaceable(path);
    if (status == GN_OK) {
        status = build(chat, &root);
    }
    if (status == GN_OK) {
        status = gn_buf_printf(&temporary, "%s.%ld.part", path, (long)getpid());
    }
    if (status == GN_OK) {
        status = write_file(root, temporary.data);
    }
    if (status == GN_OK && rename(temporary.data, path) != 0) {
        status = gn_base_fail(GN_E_IO, "%s: cannot write: %s", path, strerror(errno));
        (void)unlink(temporary.data);
    }
    gn_buf_fini(&temporary);
    json_decref(root);
    return status;
}

static bool is_role(const char *role)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    for (size_t i = 0; i < GN_COUNTOF(roles); i++) {
        if (role != NULL && strcmp(role, roles[i]) == 0) {
            return true;
        }
    }
    return false;
}

static gn_status check_messages(const json_t *messages)
{
    GN_REQUIRE(json_is_array(messages), GN_E_FORMAT, "\"messages\": expected an array");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        GN_REQUIRE(json_is_object(message), GN_E_FORMAT, "message %zu: expected an object", i);
        GN_REQUIRE(is_role(json_string_value(json_object_get(message, "role"))), GN_E_FORMAT,
                   "message %zu: \"role\": expected system, user, assistant or tool", i);
        GN_REQUIRE(json_is_string(json_object_get(message, "content")), GN_E_FORMAT,
                   "message %zu: \"content\": expected a string", i);
    }
    return GN_OK;
}

static gn_status check(const json_t *root, gn_cli_settings *settings)
{
    const json_t *version = json_object_get(root, "ganglion_chat");
    GN_REQUIRE(json_is_integer(version), GN_E_FORMAT,
               "expected a saved chat, an object with \"ganglion_chat\"");
    GN_REQUIRE(json_integer_value(version) == FILE_VERSION, GN_E_UNSUPPORTED,
               "found version %lld of saved chats, expected %d",
               (long long)json_integer_value(version), FILE_VERSION);
    GN_TRY(check_messages(json_object_get(root, "messages")));
    return gn_cli_settings_from_json(settings, json_object_get(root, "settings"));
}

gn_status gn_cli_chat_load(gn_cli_chat *chat, const char *path)
{
    json_t *root = NULL;
    GN_TRY(gn_cli_read_json(path, &root));
    gn_cli_settings settings = chat->settings;
    gn_status status = check(root, &settings);
    if (status == GN_OK) {
        json_t *messages = json_incref(json_object_get(root, "messages"));
        json_decref(chat->messages);
        chat->messages = messages;
        chat->settings = settings;
    } else {
        status = gn_base_fail_prefix(status, "%s: ", path);
    }
    json_decref(root);
    return status;
}
