/* All tools become one JSON Schema, an alternative for each: the name as a constant and the tool's own schema, which keeps
 * its references to itself by an identifier of its own. What stands around it is a frame (grammar/frame.h). */
#include "agent/toolcall.h"
#include "base/json_write.h"
#include "grammar/json_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_allowed(const gn_json *allowed, const char *name)
{
    if (allowed == NULL) {
        return true;
    }
    for (const gn_json *a = allowed->first; a != NULL; a = a->next) {
        if (a->type == GN_JSON_STRING && strcmp(a->text, name) == 0) {
            return true;
        }
    }
    return false;
}

static const json_t *function_of(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    return json_is_object(function) ? function : tool;
}

/* The schema of a tool's arguments as JSON text, with an identifier where it has none. free() */
static char *parameters_text(const json_t *function, size_t index)
{
    const json_t *parameters = json_object_get(function, "parameters");
    if (!json_is_object(parameters)) {
        return strdup("{\"type\":\"object\"}");
    }
    json_t *copy = json_copy((json_t *)(uintptr_t)parameters);
    char id[40];
    (void)snprintf(id, sizeof id, "tool:/%zu", index);
    char *text = NULL;
    bool set = json_object_get(copy, "$id") != NULL ||
               json_object_set_new(copy, "$id", json_string(id)) == 0;
    if (copy != NULL && set) {
        text = json_dumps(copy, JSON_COMPACT);
    }
    json_decref(copy);
    return text;
}

static gn_status put_tool(gn_json_out *json, const gn_tool_format *format, const json_t *function,
                          const char *name, size_t index)
{
    char *parameters = parameters_text(function, index);
    GN_REQUIRE(parameters != NULL, GN_E_NOMEM, "out of memory");
    gn_base_put_object(json, NULL);
    gn_base_put_str(json, "type", "object");
    gn_base_put_object(json, "properties");
    gn_base_put_object(json, "name");
    gn_base_put_str(json, "const", name);
    gn_base_put_end(json);
    gn_base_put_raw(json, format->arguments, parameters, strlen(parameters));
    gn_base_put_end(json);
    gn_base_put_array(json, "required");
    gn_base_put_str(json, NULL, "name");
    gn_base_put_str(json, NULL, format->arguments);
    gn_base_put_end(json);
    gn_base_put_bool(json, "additionalProperties", false);
    gn_base_put_end(json);
    free(parameters);
    return json->status;
}

static gn_status put_schema(const gn_tool_format *format, const gn_toolcall_rules *rules,
                            gn_buf *out)
{
    gn_json_out json;
    gn_base_json_out(&json, out);
    gn_base_put_object(&json, NULL);
    gn_base_put_array(&json, "anyOf");
    size_t i = 0;
    size_t n = 0;
    const json_t *tool = NULL;
    json_array_foreach(rules->tools, i, tool)
    {
        const json_t *function = function_of(tool);
        const char *name = json_string_value(json_object_get(function, "name"));
        if (name != NULL && is_allowed(rules->allowed, name)) {
            GN_TRY(put_tool(&json, format, function, name, i));
            n++;
        }
    }
    GN_REQUIRE(n > 0, GN_E_ARG, "no tool may be called");
    gn_base_put_end(&json);
    gn_base_put_end(&json);
    return json.status;
}

gn_status gn_toolcall_grammar(const gn_tool_format *format, const gn_toolcall_rules *rules,
                              gn_grammar **out, char **pointer)
{
    gn_buf schema = {0};
    gn_buf place = {0};
    *pointer = NULL;
    const gn_frame frame = {
        .trigger = rules->required ? NULL : format->trigger,
        .at_start = format->at_start,
        .open = format->open,
        .between = format->between,
        .close = format->close,
        .required = rules->required,
        .most = format->many && rules->parallel ? GN_IR_MANY : 1,
        .thought = rules->thinks ? GN_THOUGHT_OPEN : GN_THOUGHT_MAY,
    };
    const gn_json_schema_options options = {.ordered = true, .frame = &frame};
    gn_status status = put_schema(format, rules, &schema);
    if (status == GN_OK) {
        status = gn_grammar_json_schema(schema.data, schema.len, &options, out, &place);
    }
    if (status != GN_OK) {
        *pointer = gn_buf_take(&place);
    }
    gn_buf_fini(&place);
    gn_buf_fini(&schema);
    return status;
}
