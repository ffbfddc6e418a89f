/* A conversation as a template wants it. Templates expect arguments as objects, as transformers has them; clients send
 * them as JSON text. What is malformed becomes text of the message: a history is never a reason to refuse. */
#include "agent/toolcall.h"

#include <stdlib.h>
#include <string.h>

static int append_text(json_t *message, const char *s, size_t len)
{
    const json_t *content = json_object_get(message, "content");
    gn_buf text = {0};
    gn_status status = GN_OK;
    if (json_is_string(content) && json_string_length(content) > 0) {
        status = gn_buf_append(&text, json_string_value(content), json_string_length(content));
        status = status == GN_OK ? gn_buf_putc(&text, '\n') : status;
    }
    status = status == GN_OK ? gn_buf_append(&text, s, len) : status;
    json_t *value = status == GN_OK ? json_stringn(text.data, text.len) : NULL;
    gn_buf_fini(&text);
    return value != NULL ? json_object_set_new(message, "content", value) : -1;
}

/* The arguments as an object; NULL: they are none. */
static json_t *arguments_of(const json_t *function)
{
    const json_t *arguments = json_object_get(function, "arguments");
    if (json_is_object(arguments)) {
        return json_deep_copy(arguments);
    }
    if (!json_is_string(arguments)) {
        return arguments == NULL ? json_object() : NULL;
    }
    if (json_string_length(arguments) == 0) {
        return json_object();
    }
    json_t *value = json_loadb(json_string_value(arguments), json_string_length(arguments),
                               JSON_ALLOW_NUL, NULL);
    if (value != NULL && !json_is_object(value)) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

/* The id as the template takes it: as it is, or letters and digits made of it, the same for the same id. */
static json_t *fixed_id(const gn_tool_format *format, const json_t *id)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    const char *s = json_is_string(id) ? json_string_value(id) : "call_0";
    size_t len = json_is_string(id) ? json_string_length(id) : strlen(s);
    if (format->id_len == 0 || (len == format->id_len && strspn(s, digits) == len)) {
        return json_stringn(s, len);
    }
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)s[i]) * 0x100000001b3u;
    }
    char out[32];
    for (uint32_t i = 0; i < format->id_len && i < sizeof out; i++) {
        out[i] = digits[hash % (sizeof digits - 1)];
        hash /= sizeof digits - 1;
    }
    return json_stringn(out, format->id_len);
}

/* A call with its arguments as an object, or NULL where it is malformed. */
static json_t *good_call(const gn_tool_format *format, const json_t *call)
{
    const json_t *function = json_object_get(call, "function");
    const json_t *name = json_object_get(function, "name");
    json_t *arguments = json_is_string(name) ? arguments_of(function) : NULL;
    if (arguments == NULL) {
        return NULL;
    }
    return json_pack("{s:o, s:s, s:{s:s%, s:o}}", "id",
                     fixed_id(format, json_object_get(call, "id")), "type", "function", "function",
                     "name", json_string_value(name), json_string_length(name), "arguments",
                     arguments);
}

static int append_json(json_t *message, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    int result = text != NULL ? append_text(message, text, strlen(text)) : -1;
    free(text);
    return result;
}

/* A call as the model would have written it. */
static int append_call(json_t *message, const json_t *call)
{
    const json_t *function = json_object_get(call, "function");
    char *text = json_dumps(function, 0);
    gn_buf all = {0};
    int result = -1;
    if (text != NULL && gn_buf_printf(&all, "<tool_call>\n%s\n</tool_call>", text) == GN_OK) {
        result = append_text(message, all.data, all.len);
    }
    gn_buf_fini(&all);
    free(text);
    return result;
}

static int fix_calls(const gn_tool_format *format, json_t *message)
{
    json_t *calls = json_object_get(message, "tool_calls");
    json_t *good = json_array();
    int result = good != NULL ? 0 : -1;
    size_t i = 0;
    const json_t *call = NULL;
    json_array_foreach(calls, i, call)
    {
        json_t *fixed = good_call(format, call);
        if (result == 0 && fixed == NULL) {
            result = append_json(message, call);
        } else if (result == 0 && format->told) {
            result = append_call(message, fixed);
        } else if (result == 0) {
            result = json_array_append(good, fixed);
        }
        json_decref(fixed);
    }
    if (result == 0 && json_array_size(good) > 0) {
        result = json_object_set(message, "tool_calls", good);
    } else if (calls != NULL) {
        (void)json_object_del(message, "tool_calls");
    }
    json_decref(good);
    return result;
}

/* The name of the call that a result belongs to. */
static const json_t *name_of_call(const json_t *messages, const json_t *id)
{
    size_t i = 0;
    const json_t *message = NULL;
    json_array_foreach(messages, i, message)
    {
        size_t j = 0;
        const json_t *call = NULL;
        json_array_foreach(json_object_get(message, "tool_calls"), j, call)
        {
            if (json_equal(json_object_get(call, "id"), id)) {
                return json_object_get(json_object_get(call, "function"), "name");
            }
        }
    }
    return NULL;
}

static int fix_result(const gn_tool_format *format, const json_t *messages, json_t *message)
{
    if (format->told) {
        const json_t *content = json_object_get(message, "content");
        gn_buf text = {0};
        int result = -1;
        if (gn_buf_printf(&text, "<tool_response>\n%s\n</tool_response>",
                          json_is_string(content) ? json_string_value(content) : "") == GN_OK) {
            result = json_object_set_new(message, "content", json_stringn(text.data, text.len));
        }
        gn_buf_fini(&text);
        return result != 0 ? result : json_object_set_new(message, "role", json_string("user"));
    }
    const json_t *id = json_object_get(message, "tool_call_id");
    const json_t *name =
        json_object_get(message, "name") == NULL && id != NULL ? name_of_call(messages, id) : NULL;
    if (json_is_string(name) && json_object_set(message, "name", (json_t *)(uintptr_t)name) != 0) {
        return -1;
    }
    return format->id_len > 0 ? json_object_set_new(message, "tool_call_id", fixed_id(format, id))
                              : 0;
}

/* --- telling a model what it can call --- */

static int put_told(gn_buf *out, const json_t *tools)
{
    if (gn_buf_puts(out, "# Tools\n\nYou may call one or more functions. They are, as JSON:\n") !=
        GN_OK) {
        return -1;
    }
    size_t i = 0;
    const json_t *tool = NULL;
    json_array_foreach(tools, i, tool)
    {
        char *text = json_dumps(tool, 0);
        bool good = text != NULL && gn_buf_printf(out, "%s\n", text) == GN_OK;
        free(text);
        if (!good) {
            return -1;
        }
    }
    return gn_buf_puts(out, "\nTo call one, write its name and arguments as a JSON object between "
                            "tags:\n<tool_call>\n{\"name\": NAME, \"arguments\": "
                            "OBJECT}\n</tool_call>") == GN_OK
               ? 0
               : -1;
}

static int tell(json_t *messages, const json_t *tools)
{
    gn_buf text = {0};
    json_t *first = json_array_get(messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    int result = put_told(&text, tools);
    if (result == 0 && role != NULL && strcmp(role, "system") == 0) {
        result = append_text(first, text.data, text.len);
    } else if (result == 0) {
        result = json_array_insert_new(
            messages, 0,
            json_pack("{s:s, s:s%}", "role", "system", "content", text.data, text.len));
    }
    gn_buf_fini(&text);
    return result;
}

static int fix(const gn_tool_format *format, const json_t *messages, json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    if (json_object_get(message, "tool_calls") != NULL) {
        return fix_calls(format, message);
    }
    return role != NULL && strcmp(role, "tool") == 0 ? fix_result(format, messages, message) : 0;
}

json_t *gn_toolcall_messages(const gn_tool_format *format, const json_t *messages,
                             const json_t *tools)
{
    json_t *out = json_array();
    int result = out != NULL ? 0 : -1;
    size_t i = 0;
    const json_t *message = NULL;
    json_array_foreach(messages, i, message)
    {
        json_t *copy = json_copy((json_t *)(uintptr_t)message);
        result = result == 0 && copy != NULL ? fix(format, messages, copy) : -1;
        if (result == 0) {
            result = json_array_append(out, copy);
        }
        json_decref(copy);
    }
    if (result == 0 && format->told && json_array_size(tools) > 0) {
        result = tell(out, tools);
    }
    if (result != 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}
