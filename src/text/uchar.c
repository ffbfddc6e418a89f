/* Categories come from utf8proc; the lists that are closed in Unicode are written out. */
#include "text/uchar.h"

#include <utf8proc.h>

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
    return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

bool gn_uchar_is_word(uint32_t cp)
{
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_ND) || c == UTF8PROC_CATEGORY_NL ||
           c == UTF8PROC_CATEGORY_PC;
}

bool gn_uchar_is_mark_nonspacing(uint32_t cp)
{
    return cp >= 0x300 && utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN;
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
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CF || c == UTF8PROC_CATEGORY_CN ||
           c == UTF8PROC_CATEGORY_CO;
}

bool gn_uchar_is_cjk(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
           (cp >= 0x20000 && cp <= 0x2a6df) || (cp >= 0x2a700 && cp <= 0x2b73f) ||
           (cp >= 0x2b740 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
           (cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x2f800 && cp <= 0x2fa1f);
}
