/* Model files for tests, written as text. pack() appends the bytes that `text` describes; its words:
 *
 *   'abc'      the bytes abc                     u1:N u2:N u4:N u8:N   an integer of so many bytes
 *   s:abc      a length of 8 bytes, then abc     f4:X f8:X             a float
 *   z:N        N zero bytes                      align:N               zero bytes up to a multiple of N
 *   deep:N     N times the head of an array of one array
 *
 * In strings \xNN stands for a byte and \_ for a space. */
#ifndef TESTS_UNIT_FILE_PACK_H
#define TESTS_UNIT_FILE_PACK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/attr.h"
#include "base/buf.h"

GN_UNUSED static void put(gn_buf *buf, const void *data, size_t len)
{
    assert_int_equal(gn_buf_append(buf, data, len), GN_OK);
}

static size_t unescape(const char *s, size_t n, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && s[i + 1] == '_') {
            out[len++] = ' ';
            i++;
        } else if (s[i] == '\\' && s[i + 1] == 'x') {
            char hex[3] = {s[i + 2], s[i + 3], '\0'};
            out[len++] = (char)strtoul(hex, NULL, 16);
            i += 3;
        } else {
            out[len++] = s[i];
        }
    }
    return len;
}

static void put_zeros(gn_buf *buf, size_t n)
{
    while (n-- > 0) {
        put(buf, "", 1);
    }
}

static void pack_word(gn_buf *buf, const char *word, size_t n)
{
    char text[256];
    assert_true(n < sizeof text);
    if (word[0] == '\'') {
        put(buf, text, unescape(word + 1, n - 2, text));
        return;
    }
    const char *arg = strchr(word, ':');
    assert_non_null(arg);
    arg++;
    if (word[0] == 's') {
        uint64_t len = unescape(arg, n - (size_t)(arg - word), text);
        put(buf, &len, sizeof len);
        put(buf, text, len);
    } else if (word[0] == 'u') {
        uint64_t value = strtoull(arg, NULL, 0);
        put(buf, &value, (size_t)(word[1] - '0'));
    } else if (word[0] == 'f' && word[1] == '4') {
        float value = strtof(arg, NULL);
        put(buf, &value, sizeof value);
    } else if (word[0] == 'f') {
        double value = strtod(arg, NULL);
        put(buf, &value, sizeof value);
    } else if (word[0] == 'z') {
        put_zeros(buf, strtoul(arg, NULL, 0));
    } else if (word[0] == 'a') {
        size_t align = strtoul(arg, NULL, 0);
        put_zeros(buf, (align - buf->len % align) % align);
    } else if (word[0] == 'd') {
        for (unsigned long i = strtoul(arg, NULL, 0); i > 0; i--) {
            const uint32_t head[3] = {9, 1, 0};
            put(buf, head, sizeof head);
        }
    } else {
        fail_msg("no such word: %s", word);
    }
}

GN_UNUSED static void pack(gn_buf *buf, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (n > 0) {
            pack_word(buf, text, n);
        }
        text += n + (text[n] == ' ');
    }
}

/* The bytes in a block of exactly their size, so that ASan sees a read past the end. */
GN_UNUSED static unsigned char *exact_copy(const void *data, size_t n)
{
    unsigned char *copy = malloc(n != 0 ? n : 1);
    assert_non_null(copy);
    if (n != 0) {
        memcpy(copy, data, n);
    }
    return copy;
}

GN_UNUSED static void write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Fails the allocation whose number is `at`, counting from 1; 0 fails none. */
typedef struct alloc_fault {
    long at;
    long seen;
} alloc_fault;

GN_UNUSED static int fail_nth(void *ctx)
{
    alloc_fault *fault = ctx;
    fault->seen++;
    return fault->seen == fault->at;
}

/* Did it fail with that code and one line that has the fragment? Says so where not. */
GN_UNUSED static bool failed_as(gn_status status, gn_status code, const char *fragment,
                                const char *which)
{
    const char *message = gn_error_message();
    if (status == code && strstr(message, fragment) != NULL && strchr(message, '\n') == NULL) {
        return true;
    }
    print_error("%s: found %s \"%s\", expected %s \"...%s...\"\n", which, gn_status_name(status),
                status != GN_OK ? message : "", gn_status_name(code), fragment);
    return false;
}

#endif
