/* Categories come from utf8proc; the lists that are closed in Unicode are written out. The classes
 * that only the `tokenizers` library's steps use follow its older tables where they differ. */
#include "text/uchar.h"

#include <stddef.h>
#include <utf8proc.h>

#include "text/uchar_differs.inc"

static bool in_ranges(const uint32_t (*ranges)[2], size_t n, uint32_t cp)
{
    size_t lo = 0;
    while (lo < n) {
        size_t mid = lo + (n - lo) / 2;
        if (cp < ranges[mid][0]) {
            n = mid;
        } else if (cp > ranges[mid][1]) {
            lo = mid + 1;
        } else {
            return true;
        }
    }
    return false;
}
#define IN(ranges, cp) in_ranges(ranges, sizeof(ranges) / sizeof((ranges)[0]), cp)

bool gn_uchar_is_space(uint32_t cp)
{
    if (cp < 0x80) {
        return cp == ' ' || (cp >= 9 && cp <= 13);
    }
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool gn_uchar_is_numeric(uint32_t cp)
{
    if (cp < 0x80) {
        return cp >= '0' && cp <= '9';
    }
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

bool gn_uchar_is_digit(uint32_t cp)
{
    if (cp < 0x80) {
        return cp >= '0' && cp <= '9';
    }
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

bool gn_uchar_is_punct(uint32_t cp)
{
    if (cp < 0x80) {
        return (cp >= 0x21 && cp <= 0x2f) || (cp >= 0x3a && cp <= 0x40) ||
               (cp >= 0x5b && cp <= 0x60) || (cp >= 0x7b && cp <= 0x7e);
    }
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) != IN(punct_differs, cp);
}

bool gn_uchar_is_word(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_ND) || c == UTF8PROC_CATEGORY_NL ||
           c == UTF8PROC_CATEGORY_PC;
}

bool gn_uchar_is_mark_nonspacing(uint32_t cp)
{
    if (cp < 0x300) {
        return false;
    }
    bool mn = utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN;
    return mn != IN(mn_differs, cp);
}

bool gn_uchar_is_control(uint32_t cp)
{
    if (cp == '\t' || cp == '\n' || cp == '\r') {
        return false;
    }
    if (cp < 0x80) {
        return cp < 0x20 || cp == 0x7f;
    }
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    bool control =
        c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CO;
    return control != IN(control_differs, cp);
}

bool gn_uchar_is_cjk(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
           (cp >= 0x20000 && cp <= 0x2a6df) || (cp >= 0x2a700 && cp <= 0x2b73f) ||
           (cp >= 0x2b740 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
           (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x2f800 && cp <= 0x2fa1f);
}
