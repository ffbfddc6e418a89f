#include "base/utf8.h"

/* Length that a lead byte announces; 0 where it is no lead byte. */
static size_t announced(unsigned char c)
{
    if (c < 0x80) {
        return 1;
    }
    if (c >= 0xc2 && c <= 0xdf) {
        return 2;
    }
    if (c >= 0xe0 && c <= 0xef) {
        return 3;
    }
    return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

/* Is c allowed as byte `i` (1 …) of a sequence that starts with `lead`? */
static bool continues(unsigned char lead, size_t i, unsigned char c)
{
    unsigned char lo = 0x80;
    unsigned char hi = 0xbf;
    if (i == 1) {
        if (lead == 0xe0) {
            lo = 0xa0;
        } else if (lead == 0xed) {
            hi = 0x9f;
        } else if (lead == 0xf0) {
            lo = 0x90;
        } else if (lead == 0xf4) {
            hi = 0x8f;
        }
    }
    return c >= lo && c <= hi;
}

size_t gn_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    unsigned char lead = (unsigned char)s[0];
    size_t len = announced(lead);
    if (len == 0 || len > n) {
        return 0;
    }
    if (len == 1) {
        *cp = lead;
        return 1;
    }
    uint32_t value = lead & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (!continues(lead, i, c)) {
            return 0;
        }
        value = (value << 6) | (c & 0x3fu);
    }
    *cp = value;
    return len;
}

size_t gn_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | (cp >> 6));
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp >= 0xd800 && cp <= 0xdfff) {
        return 0;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | (cp >> 12));
        out[1] = (char)(0x80 | ((cp >> 6) & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    if (cp > 0x10ffff) {
        return 0;
    }
    out[0] = (char)(0xf0 | (cp >> 18));
    out[1] = (char)(0x80 | ((cp >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((cp >> 6) & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

bool gn_utf8_valid(const char *s, size_t n)
{
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        size_t len = gn_utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

size_t gn_utf8_incomplete_tail(const char *s, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char lead = (unsigned char)s[n - back];
        size_t len = announced(lead);
        if (len == 0) {
            continue; /* a continuation byte, or invalid: look further back */
        }
        if (len <= back) {
            return 0;
        }
        for (size_t i = 1; i < back; i++) {
            if (!continues(lead, i, (unsigned char)s[n - back + i])) {
                return 0;
            }
        }
        return back;
    }
    return 0;
}
