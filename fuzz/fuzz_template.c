/* Chat templates: the input is a template, optionally a NUL byte and a JSON context behind it. Limits are
 * small, so that a slow input is a finding. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/template.h"

static const char CONTEXT[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi \\u00e9\"}, {\"role\": \"assistant\", "
    "\"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
    "1.5}}}"
    "]}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": "
    "{}}}], "
    "\"n\": 7, \"s\": \"some text\\nmore\", \"d\": {\"k\": [1, 2, 3]}, \"add_generation_prompt\": "
    "true}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *source = (const char *)data;
    const char *nul = memchr(source, '\0', size);
    size_t len = nul != NULL ? (size_t)(nul - source) : size;
    gn_template *tmpl = NULL;
    if (gn_template_parse(source, len, &tmpl) != GN_OK) {
        return 0;
    }
    json_t *context =
        nul != NULL ? json_loadb(nul + 1, size - len - 1, JSON_ALLOW_NUL, NULL) : NULL;
    if (!json_is_object(context)) {
        json_decref(context);
        context = json_loads(CONTEXT, 0, NULL);
    }
    gn_template_limits limits = {
        .max_steps = 200000, .max_output = (size_t)1 << 20, .max_memory = (size_t)16 << 20};
    gn_buf out = {0};
    gn_status status = gn_template_render(tmpl, context, 0, &limits, &out);
    (void)status;
    gn_buf_fini(&out);
    json_decref(context);
    gn_template_destroy(tmpl);
    return 0;
}
