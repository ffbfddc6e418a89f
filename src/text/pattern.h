/* Regular expressions of tokenizers: Oniguruma's syntax, as tokenizer.json has it, compiled by
 * PCRE2 with JIT. A pattern is immutable; each thread brings its own work area. */
#ifndef GN_TEXT_PATTERN_H
#define GN_TEXT_PATTERN_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct gn_pattern gn_pattern;

/* Compile source[0 .. len); `literal`: it is a string to find, not an expression. GN_E_FORMAT
 * (message: expression and place), GN_E_UNSUPPORTED (a construct PCRE2 has no equal of),
 * GN_E_NOMEM. */
GN_MUST_USE gn_status gn_pattern_compile(const char *source, size_t len, bool literal,
                                         gn_pattern **out);
void gn_pattern_destroy(gn_pattern *pattern);

typedef struct gn_pattern_work { /* a zeroed one is valid */
    void *data;
    void *context;
    void *stack;
} gn_pattern_work;

void gn_pattern_work_fini(gn_pattern_work *work);

typedef struct gn_pattern_match {
    bool found;
    size_t start;
    size_t end;
} gn_pattern_match;

/* First match in text[from .. len) of valid UTF-8; what lies before `from` is seen by lookbehind.
 * GN_E_LIMIT where the expression takes too many steps on this text. */
GN_MUST_USE gn_status gn_pattern_find(const gn_pattern *pattern, gn_pattern_work *work,
                                      const char *text, size_t len, size_t from,
                                      gn_pattern_match *match);

/* Oniguruma's syntax to PCRE2's; used by gn_pattern_compile(), open for its tests. */
GN_MUST_USE gn_status gn_pattern_translate(const char *source, size_t len, gn_buf *out);

#endif
