/* The PCRE2 side of patterns: compile with JIT, match with bounds. UTF-8 is checked once by the
 * caller, not by PCRE2 on each match, which would make splitting quadratic. */
#include "text/pattern.h"

#include "base/alloc.h"
#include "base/status.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdint.h>
#include <string.h>

/* Steps of backtracking that one match may take, and the JIT's own stack for patterns whose groups
 * remember a place for each repetition. */
#define MATCH_LIMIT     20000000u
#define JIT_STACK_FIRST ((size_t)64 * 1024)
#define JIT_STACK_MOST  ((size_t)64 * 1024 * 1024)
#define MAX_SOURCE      65536

struct gn_pattern {
    pcre2_code *code;
};

static void *pcre_alloc(PCRE2_SIZE bytes, void *ctx)
{
    (void)ctx;
    return gn_alloc(bytes);
}

static void pcre_free(void *p, void *ctx)
{
    (void)ctx;
    gn_free(p);
}

static gn_status compile_failed(int code, size_t at, const char *source, size_t len)
{
    if (code == PCRE2_ERROR_HEAP_FAILED) {
        return gn_alloc_failed();
    }
    char text[160];
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text) < 0) {
        text[0] = '\0';
    }
    int shown = len < 80 ? (int)len : 80;
    return gn_base_fail(GN_E_FORMAT, "regular expression \"%.*s\": %s (near byte %zu)", shown,
                        source, text, at);
}

static gn_status escape(const char *source, size_t len, gn_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr("\\^$.[]|()?*+{}#-", source[i]) != NULL && source[i] != '\0') {
            GN_TRY(gn_buf_putc(out, '\\'));
        }
        GN_TRY(gn_buf_putc(out, source[i]));
    }
    return GN_OK;
}

static gn_status compile(const char *source, size_t len, const gn_buf *text, gn_pattern *pattern)
{
    gn_status status = GN_OK;
    pcre2_general_context *general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    pcre2_compile_context *context = general != NULL ? pcre2_compile_context_create(general) : NULL;
    if (context == NULL) {
        status = gn_alloc_failed();
        goto done;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_max_pattern_length(context, 8 * MAX_SOURCE);
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    pattern->code = pcre2_compile((PCRE2_SPTR)text->data, text->len, options, &code, &at, context);
    if (pattern->code == NULL) {
        status = compile_failed(code, at, source, len);
        goto done;
    }
    /* A machine without JIT support runs the interpreter: same matches, less speed. */
    code = pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE);
    if (code == PCRE2_ERROR_NOMEMORY) {
        status = gn_alloc_failed();
    }
done:
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return status;
}

gn_status gn_pattern_compile(const char *source, size_t len, bool literal, gn_pattern **out)
{
    GN_REQUIRE(len > 0 && len <= MAX_SOURCE, GN_E_FORMAT,
               "regular expression: found %zu bytes, expected 1 to %d", len, MAX_SOURCE);
    gn_buf text = {0};
    gn_pattern *pattern = gn_calloc(1, sizeof *pattern);
    gn_status status = pattern != NULL ? GN_OK : gn_alloc_failed();
    if (status == GN_OK) {
        status = literal ? escape(source, len, &text) : gn_pattern_translate(source, len, &text);
    }
    if (status == GN_OK) {
        status = compile(source, len, &text, pattern);
    }
    gn_buf_fini(&text);
    if (status != GN_OK) {
        gn_pattern_destroy(pattern);
        return status;
    }
    *out = pattern;
    return GN_OK;
}

void gn_pattern_destroy(gn_pattern *pattern)
{
    if (pattern != NULL) {
        pcre2_code_free(pattern->code);
        gn_free(pattern);
    }
}

void gn_pattern_work_fini(gn_pattern_work *work)
{
    if (work != NULL) {
        pcre2_match_data_free(work->data);
        pcre2_match_context_free(work->context);
        pcre2_jit_stack_free(work->stack);
        *work = (gn_pattern_work){0};
    }
}

static gn_status prepare(gn_pattern_work *work)
{
    pcre2_general_context *general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (general == NULL) {
        return gn_alloc_failed();
    }
    work->data = pcre2_match_data_create(1, general);
    work->context = pcre2_match_context_create(general);
    pcre2_general_context_free(general);
    if (work->data == NULL || work->context == NULL) {
        gn_pattern_work_fini(work);
        return gn_alloc_failed();
    }
    pcre2_set_match_limit(work->context, MATCH_LIMIT);
    return GN_OK;
}

static int match_once(const gn_pattern *pattern, gn_pattern_work *work, const char *text,
                      size_t len, size_t from)
{
    return pcre2_match(pattern->code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK, work->data,
                       work->context);
}

gn_status gn_pattern_find(const gn_pattern *pattern, gn_pattern_work *work, const char *text,
                          size_t len, size_t from, gn_pattern_match *match)
{
    if (work->data == NULL) {
        GN_TRY(prepare(work));
    }
    int rc = match_once(pattern, work, text, len, from);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && work->stack == NULL) {
        work->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, NULL);
        if (work->stack == NULL) {
            return gn_alloc_failed();
        }
        pcre2_jit_stack_assign(work->context, NULL, work->stack);
        rc = match_once(pattern, work, text, len, from);
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
        *match = (gn_pattern_match){0};
        return GN_OK;
    }
    if (rc == PCRE2_ERROR_NOMEMORY) {
        return gn_alloc_failed();
    }
    GN_REQUIRE(rc >= 0, GN_E_LIMIT,
               "encode: the pre-tokenizer's expression takes too long on this text (PCRE2 code %d)",
               rc);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(work->data);
    /* \K inside a lookahead can put the start behind the end; such a match is taken as empty. */
    *match = (gn_pattern_match){true, at[0] < at[1] ? at[0] : at[1], at[1]};
    return GN_OK;
}
