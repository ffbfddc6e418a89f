#include "file/show.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029;
}

gn_file_shown gn_file_show(const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    enum { ROOM = GN_FILE_SHOW_BYTES - 4 }; /* what is left takes "..." and the NUL */
    gn_file_shown shown;
    size_t used = 0;
    size_t i = 0;
    while (i < n) {
        uint32_t cp = 0;
        size_t len = gn_utf8_decode(s + i, n - i, &cp);
        if (len != 0 && !is_control(cp) && cp != '"' && cp != '\\') {
            if (used + len > ROOM) {
                break;
            }
            memcpy(shown.text + used, s + i, len);
            used += len;
            i += len;
            continue;
        }
        if (used + 4 > ROOM) {
            break;
        }
        unsigned char c = (unsigned char)s[i++];
        shown.text[used++] = '\\';
        if (c == '"' || c == '\\') {
            shown.text[used++] = (char)c;
        } else {
            shown.text[used++] = 'x';
            shown.text[used++] = hex[c >> 4];
            shown.text[used++] = hex[c & 15];
        }
    }
    memcpy(shown.text + used, i < n ? "..." : "", i < n ? 4 : 1);
    return shown;
}

/* Is one of the parts between slashes and backslashes ".."? */
static bool climbs(const char *s, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i == n || s[i] == '/' || s[i] == '\\') {
            if (i - start == 2 && s[start] == '.' && s[start + 1] == '.') {
                return true;
            }
            start = i + 1;
        }
    }
    return false;
}

const char *gn_file_name_fault(const char *s, size_t n, size_t max)
{
    if (n == 0) {
        return "is empty";
    }
    if (n > max) {
        return "is too long";
    }
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t len = gn_utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            return "is not UTF-8";
        }
        if (is_control(cp)) {
            return "has a control character";
        }
        i += len;
    }
    return climbs(s, n) ? "has a path part \"..\"" : NULL;
}
