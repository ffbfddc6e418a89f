/* Unicode classes by PCRE2's tables: a pattern of one class finds its runs in the text of all code points. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/alloc.h"
#include "base/utf8.h"
#include "grammar/regex.h"

#include <pcre2.h>

#include <stdio.h>
#include <string.h>

#define BLOCK     0x1000u /* code points looked at in one go: few, so that little memory is needed */
#define MAX_CLASS 48u

static gn_status push(gn_re_range **v, size_t *n, size_t *cap, uint32_t lo, uint32_t hi)
{
    if (*n > 0 && (*v)[*n - 1].hi + 1 == lo) {
        (*v)[*n - 1].hi = hi;
        return GN_OK;
    }
    gn_re_range *bigger = gn_grow_array(*v, cap, *n + 1, sizeof *bigger);
    if (bigger == NULL) {
        return gn_alloc_failed();
    }
    *v = bigger;
    (*v)[(*n)++] = (gn_re_range){lo, hi};
    return GN_OK;
}

/* Add the members among the code points base .. base + BLOCK - 1. */
static gn_status scan_block(const pcre2_code *code, pcre2_match_data *data, uint32_t base,
                            char *text, gn_re_range **v, size_t *n, size_t *cap)
{
    size_t len = 0;
    for (uint32_t c = base; c < base + BLOCK; c++) {
        len += gn_utf8_encode(c, text + len);
    }
    size_t at = 0;
    while (at < len &&
           pcre2_match(code, (PCRE2_SPTR)text, len, at, PCRE2_NO_UTF_CHECK, data, NULL) > 0) {
        const PCRE2_SIZE *where = pcre2_get_ovector_pointer(data);
        for (size_t i = where[0]; i < where[1];) {
            uint32_t c = 0;
            i += gn_utf8_decode(text + i, len - i, &c);
            GN_TRY(push(v, n, cap, c, c));
        }
        at = where[1];
    }
    return GN_OK;
}

gn_status gn_grammar_unicode_class(const char *name, size_t len, gn_re_range **out, size_t *n)
{
    char pattern[MAX_CLASS + 8];
    GN_REQUIRE(len > 0 && len <= MAX_CLASS, GN_E_UNSUPPORTED,
               "regex: no Unicode class of this name");
    for (size_t i = 0; i < len; i++) {
        bool ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                  name[i] == '_' || name[i] == '&';
        GN_REQUIRE(ok, GN_E_UNSUPPORTED, "regex: no Unicode class of this name");
    }
    (void)snprintf(pattern, sizeof pattern, "\\p{%.*s}+", (int)len, name);
    int error;
    PCRE2_SIZE where;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &where, NULL);
    GN_REQUIRE(code != NULL, GN_E_UNSUPPORTED, "regex: \\p{%.*s} is no Unicode class", (int)len,
               name);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    char *text = gn_alloc((size_t)BLOCK * 4);
    gn_status status = data != NULL && text != NULL ? GN_OK : gn_alloc_failed();
    gn_re_range *v = NULL;
    size_t count = 0;
    size_t cap = 0;
    for (uint32_t base = 0; base <= 0x10ffff && status == GN_OK; base += BLOCK) {
        status = scan_block(code, data, base, text, &v, &count, &cap);
    }
    gn_free(text);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
    if (status != GN_OK) {
        gn_free(v);
        return status;
    }
    *out = v;
    *n = count;
    return GN_OK;
}
