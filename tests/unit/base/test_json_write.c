/* The JSON writer: what it writes reads back as what was given. */
#include "base/json_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_nesting(void **state)
{
    (void)state;
    gn_buf buf = {0};
    gn_json_out out;
    gn_base_json_out(&out, &buf);
    gn_base_put_object(&out, NULL);
    gn_base_put_str(&out, "a", "x");
    gn_base_put_array(&out, "b");
    gn_base_put_int(&out, NULL, -1);
    gn_base_put_uint(&out, NULL, UINT64_MAX);
    gn_base_put_object(&out, NULL);
    gn_base_put_end(&out);
    gn_base_put_end(&out);
    gn_base_put_bool(&out, "c", true);
    gn_base_put_str(&out, "d", NULL);
    gn_base_put_real(&out, "e", 0.5, 2);
    gn_base_put_real(&out, "f", INFINITY, 2);
    gn_base_put_float(&out, "g", 0.1f);
    gn_base_put_raw(&out, "h", "[1]", 3);
    gn_base_put_end(&out);
    assert_int_equal(out.status, GN_OK);
    assert_string_equal(buf.data,
                        "{\"a\":\"x\",\"b\":[-1,18446744073709551615,{}],\"c\":true,\"d\":null,"
                        "\"e\":0.50,\"f\":null,\"g\":0.100000001,\"h\":[1]}");
    gn_buf_fini(&buf);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t len;
        const char *expected;
    } cases[] = {{"", 0, "\"\""},
                 {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
                 {"\n\t\r\x01\x7f", 5, "\"\\n\\t\\r\\u0001\\u007f\""},
                 {"a\0b", 3, "\"a\\u0000b\""},
                 {"\xc3\xa9\xf0\x9f\x98\x80", 6, "\"\xc3\xa9\xf0\x9f\x98\x80\""},
                 {"x\xc3", 2, "\"x\xef\xbf\xbd\""},
                 {"\xff\xfey", 3, "\"\xef\xbf\xbd\xef\xbf\xbdy\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gn_buf buf = {0};
        assert_int_equal(gn_base_json_quote(&buf, cases[i].s, cases[i].len), GN_OK);
        assert_string_equal(buf.data, cases[i].expected);
        gn_buf_fini(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nesting),
                                       cmocka_unit_test(test_strings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
