/* base/: status, buf, arena, utf8, map, checked arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/utf8.h"

static void test_fail_is_one_line(void **state)
{
    (void)state;
    assert_int_equal(gn_base_fail(GN_E_FORMAT, "key \"a\nb\x1b\": found %d", 3), GN_E_FORMAT);
    assert_string_equal(gn_error_message(), "key \"a\\x0ab\\x1b\": found 3");
    assert_int_equal(gn_base_fail_prefix(GN_E_FORMAT, "%s: ", "f.gguf"), GN_E_FORMAT);
    assert_string_equal(gn_error_message(), "f.gguf: key \"a\\x0ab\\x1b\": found 3");
    assert_string_equal(gn_status_name(GN_E_FORMAT), "GN_E_FORMAT");
}

static void test_checked(void **state)
{
    (void)state;
    size_t out = 7;
    assert_false(gn_checked_add(SIZE_MAX, 1, &out));
    assert_false(gn_checked_mul(SIZE_MAX / 2, 3, &out));
    assert_false(gn_checked_align(SIZE_MAX - 2, 32, &out));
    assert_int_equal(out, 7);
    assert_true(gn_checked_align(33, 32, &out));
    assert_int_equal(out, 64);
    assert_false(gn_checked_range(10, SIZE_MAX, 100));
    assert_true(gn_checked_range(100, 0, 100));
}

static void test_buf(void **state)
{
    (void)state;
    gn_buf buf = {.limit = 100};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(gn_buf_printf(&buf, "%d,", i), GN_OK);
    }
    assert_string_equal(buf.data, "0,1,2,3,4,5,6,7,8,9,");
    assert_int_equal(gn_buf_append(&buf, buf.data, 81), GN_E_LIMIT);
    assert_int_equal(buf.len, 20);
    gn_buf_fini(&buf);
}

static void test_arena(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < 1000; i++) {
        unsigned char *p = gn_arena_alloc(&arena, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, (int)i, i);
    }
    assert_null(gn_arena_alloc(&arena, 1 << 20));
    gn_arena_fini(&arena);
}

static void test_utf8(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char s[4];
        size_t len = gn_utf8_encode(cp, s);
        if (len == 0) {
            assert_true((cp >= 0xd800 && cp <= 0xdfff) || cp > 0x10ffff);
            continue;
        }
        uint32_t back = 0;
        assert_int_equal(gn_utf8_decode(s, len, &back), len);
        assert_int_equal(back, cp);
        for (size_t cut = 1; cut < len; cut++) {
            assert_int_equal(gn_utf8_decode(s, cut, &back), 0);
            assert_int_equal(gn_utf8_incomplete_tail(s, cut), cut);
        }
        assert_int_equal(gn_utf8_incomplete_tail(s, len), 0);
    }
    assert_false(gn_utf8_valid("\xc0\x80", 2));
    assert_false(gn_utf8_valid("\xed\xa0\x80", 3));
    assert_false(gn_utf8_valid("\xf4\x90\x80\x80", 4));
    assert_int_equal(gn_utf8_incomplete_tail("a\x80", 2), 0);
}

static void test_map(void **state)
{
    (void)state;
    static char keys[5000][8];
    gn_map map = {0};
    for (uint32_t i = 0; i < 5000; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%u", i);
        bool added = false;
        assert_int_equal(gn_map_add(&map, keys[i], strlen(keys[i]), i, &added, NULL), GN_OK);
        assert_true(added);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        const uint32_t *v = gn_map_find(&map, keys[i], strlen(keys[i]));
        assert_non_null(v);
        assert_int_equal(*v, i);
    }
    uint32_t existing = 0;
    bool added = true;
    assert_int_equal(gn_map_add(&map, "k7", 2, 99, &added, &existing), GN_OK);
    assert_false(added);
    assert_int_equal(existing, 7);
    assert_null(gn_map_find(&map, "k5000", 5));
    gn_map_fini(&map);
    assert_int_equal(gn_alloc_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_is_one_line),
        cmocka_unit_test(test_checked),
        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
