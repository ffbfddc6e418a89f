/* Renders templates for tests. Each line of standard input is a JSON object: template (string), context
 * (object), and optionally now (seconds since 1970), max_steps, max_output, max_memory. Each answer is a
 * line: {"ok": true, "text": …} or {"ok": false, "code": "GN_E_…", "message": …}. The last template is kept
 * parsed, so a run of lines with the same one is fast. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/template.h"

static gn_template *tmpl;
static char *parsed;

static gn_status parse(const char *source, size_t len)
{
    if (parsed != NULL && strcmp(parsed, source) == 0 && strlen(source) == len) {
        return GN_OK;
    }
    gn_template_destroy(tmpl);
    free(parsed);
    tmpl = NULL;
    parsed = NULL;
    gn_status status = gn_template_parse(source, len, &tmpl);
    if (status == GN_OK) {
        parsed = strdup(source);
    }
    return status;
}

static json_t *answer(const json_t *request)
{
    const json_t *source = json_object_get(request, "template");
    const json_t *context = json_object_get(request, "context");
    gn_template_limits limits = {
        .max_steps = (uint64_t)json_integer_value(json_object_get(request, "max_steps")),
        .max_output = (size_t)json_integer_value(json_object_get(request, "max_output")),
        .max_memory = (size_t)json_integer_value(json_object_get(request, "max_memory")),
    };
    gn_buf out = {0};
    gn_status status = parse(json_string_value(source), json_string_length(source));
    if (status == GN_OK) {
        time_t now = (time_t)json_integer_value(json_object_get(request, "now"));
        status = gn_template_render(tmpl, context, now, &limits, &out);
    }
    json_t *reply = json_object();
    json_object_set_new(reply, "ok", json_boolean(status == GN_OK));
    if (status == GN_OK) {
        json_object_set_new(reply, "text", json_stringn(out.data != NULL ? out.data : "", out.len));
    } else {
        json_object_set_new(reply, "code", json_string(gn_status_name(status)));
        json_object_set_new(reply, "message", json_string(gn_error_message()));
    }
    gn_buf_fini(&out);
    return reply;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        json_error_t error;
        json_t *request = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, &error);
        json_t *reply = request != NULL ? answer(request)
                                        : json_pack("{s:b, s:s, s:s}", "ok", 0, "code", "request",
                                                    "message", error.text);
        json_decref(request);
        if (json_dumpf(reply, stdout, JSON_COMPACT) != 0) {
            return 1;
        }
        (void)fputc('\n', stdout);
        (void)fflush(stdout);
        json_decref(reply);
    }
    free(line);
    free(parsed);
    gn_template_destroy(tmpl);
    return 0;
}
