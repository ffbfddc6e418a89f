/* UTF-8 by the Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef GN_BASE_UTF8_H
#define GN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode one code point at s[0 .. n), n ≥ 1. Returns the bytes used, 1 to 4, and sets *cp; a byte
 * that starts no valid sequence gives 0 and leaves *cp alone. */
size_t gn_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Encode cp (a scalar value) to out[4]; returns 1 to 4, or 0 where cp is no scalar value. */
size_t gn_utf8_encode(uint32_t cp, char out[4]);

bool gn_utf8_valid(const char *s, size_t n);

/* How many bytes at the end of s[0 .. n) are the start of a sequence that more bytes could complete:
 * 0 to 3. Used to hold back text that would split a code point. */
size_t gn_utf8_incomplete_tail(const char *s, size_t n);

#endif
