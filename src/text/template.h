/* Chat templates: an interpreter for the Jinja language as transformers uses it (trim_blocks and
 * lstrip_blocks on, tojson without ASCII escapes, strftime_now, raise_exception, loop controls,
 * `generation` blocks). It reads its context and nothing else: no files, no clock but the time given, no
 * environment. Bounded in steps, depth and output. Reference: the Jinja 3.1 documentation. */
#ifndef GN_TEXT_TEMPLATE_H
#define GN_TEXT_TEMPLATE_H

#include "base/buf.h"
#include "base/status.h"

#include <jansson.h>
#include <stdint.h>
#include <time.h>

typedef struct gn_template gn_template;

/* Parse source[0 .. len). GN_E_FORMAT: "line L, column C: found X, expected Y"; GN_E_LIMIT: nested too deep
 * or too large. Immutable afterwards: any thread may render. */
GN_MUST_USE gn_status gn_template_parse(const char *source, size_t len, gn_template **out);
void gn_template_destroy(gn_template *tmpl);

typedef struct gn_template_limits {
    uint64_t max_steps; /* evaluated nodes; 0: 50 million */
    size_t max_output;  /* bytes; 0: 64 MiB */
    size_t max_memory;  /* bytes of values; 0: 512 MiB */
} gn_template_limits;

/* Render with the members of `context` (a JSON object; borrowed, not changed) as global names: messages,
 * tools, add_generation_prompt, bos_token … Key order of objects is kept. `now` is what strftime_now sees
 * (local time). limits may be NULL. Appends to `out`; on failure `out` may hold part of the output.
 * GN_E_REFUSED: the template called raise_exception (message: its text). GN_E_FORMAT: an error in
 * evaluation (type error, unknown filter …) with line. GN_E_LIMIT, GN_E_NOMEM. */
GN_MUST_USE gn_status gn_template_render(const gn_template *tmpl, const json_t *context, time_t now,
                                         const gn_template_limits *limits, gn_buf *out);

#endif
