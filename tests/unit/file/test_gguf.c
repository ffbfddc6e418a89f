/* file/gguf: what a valid file gives. test_gguf_faults.c has what is refused. */
#include "pack.h"

#include "base/buf.h"
#include "file/gguf.h"

#include <math.h>
#include <unistd.h>

#include "tests/unit/file/folder.h"

#define ARCH "s:general.architecture u4:8 s:llama "

static gn_gguf *open_text(gn_buf *buf, const char *text)
{
    gn_gguf *gguf = NULL;
    pack(buf, text);
    gn_status status = gn_gguf_open_memory(buf->data, buf->len, &gguf);
    if (status != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return gguf;
}

/* One of each type, and an array of each. */
static const char all_types[] =
    "'GGUF' u4:3 u8:0 u8:28 " ARCH "s:u8 u4:0 u1:200 s:i8 u4:1 u1:0xff s:u16 u4:2 u2:65535 "
    "s:i16 u4:3 u2:0x8000 s:u32 u4:4 u4:0xffffffff s:i32 u4:5 u4:0xfffffffe s:f32 u4:6 f4:0.5 "
    "s:bool u4:7 u1:1 s:str u4:8 s:a\\x00b s:u64 u4:10 u8:0xffffffffffffffff "
    "s:i64 u4:11 u8:0x8000000000000000 s:f64 u4:12 f8:-2.25 "
    "s:au8 u4:9 u4:0 u8:2 u1:1 u1:255 s:ai8 u4:9 u4:1 u8:2 u1:1 u1:255 "
    "s:au16 u4:9 u4:2 u8:1 u2:7 s:ai16 u4:9 u4:3 u8:1 u2:0xfff9 s:au32 u4:9 u4:4 u8:2 u4:1 u4:9 "
    "s:ai32 u4:9 u4:5 u8:2 u4:0xffffffff u4:9 s:af32 u4:9 u4:6 u8:2 f4:1.5 f4:-1.5 "
    "s:abool u4:9 u4:7 u8:3 u1:1 u1:0 u1:1 s:astr u4:9 u4:8 u8:3 s:x s: s:yz "
    "s:aarr u4:9 u4:9 u8:3 u4:5 u8:1 u4:4 u4:8 u8:1 s:in u4:9 u8:1 u4:0 u8:0 "
    "s:au64 u4:9 u4:10 u8:1 u8:5 s:ai64 u4:9 u4:11 u8:1 u8:0xfffffffffffffffb "
    "s:af64 u4:9 u4:12 u8:1 f8:1e300 s:empty u4:9 u4:8 u8:0 s:inf u4:6 f4:inf";

static void test_every_type(void **state)
{
    (void)state;
    gn_buf buf = {0};
    gn_gguf *g = open_text(&buf, all_types);
    assert_int_equal(gn_gguf_version(g), 3);
    assert_int_equal(gn_gguf_n_values(g), 28);
    assert_int_equal(gn_gguf_n_tensors(g), 0);
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    gn_gguf_str s;
    assert_int_equal(gn_gguf_get_u64(g, "u8", &u), GN_OK);
    assert_int_equal(u, 200);
    assert_int_equal(gn_gguf_get_u64(g, "u64", &u), GN_OK);
    assert_true(u == UINT64_MAX);
    assert_int_equal(gn_gguf_get_i64(g, "i8", &i), GN_OK);
    assert_int_equal(i, -1);
    assert_int_equal(gn_gguf_get_i64(g, "u16", &i), GN_OK);
    assert_int_equal(i, 65535);
    assert_int_equal(gn_gguf_get_i64(g, "i16", &i), GN_OK);
    assert_int_equal(i, INT16_MIN);
    assert_int_equal(gn_gguf_get_i64(g, "i32", &i), GN_OK);
    assert_int_equal(i, -2);
    assert_int_equal(gn_gguf_get_i64(g, "i64", &i), GN_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(gn_gguf_get_f64(g, "f32", &f), GN_OK);
    assert_true(f == 0.5);
    assert_int_equal(gn_gguf_get_f64(g, "f64", &f), GN_OK);
    assert_true(f == -2.25);
    assert_int_equal(gn_gguf_get_f64(g, "i32", &f), GN_OK);
    assert_true(f == -2.0);
    assert_int_equal(gn_gguf_get_bool(g, "bool", &b), GN_OK);
    assert_true(b);
    assert_int_equal(gn_gguf_get_str(g, "str", &s), GN_OK);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.s, "a\0b", 3);
    gn_gguf_close(g);
    gn_buf_fini(&buf);
}

static void test_arrays(void **state)
{
    (void)state;
    gn_buf buf = {0};
    gn_gguf *g = open_text(&buf, all_types);
    const gn_gguf_value *v = gn_gguf_find(g, "au8");
    assert_int_equal(v->type, GN_GGUF_ARRAY);
    assert_int_equal(v->elem, GN_GGUF_U8);
    assert_int_equal(v->n, 2);
    assert_int_equal(gn_gguf_elem_u64(v, 1), 255);
    assert_int_equal(gn_gguf_elem_i64(gn_gguf_find(g, "ai8"), 1), -1);
    assert_int_equal(gn_gguf_elem_u64(gn_gguf_find(g, "au16"), 0), 7);
    assert_int_equal(gn_gguf_elem_i64(gn_gguf_find(g, "ai16"), 0), -7);
    assert_int_equal(gn_gguf_elem_u64(gn_gguf_find(g, "au32"), 1), 9);
    assert_int_equal(gn_gguf_elem_i64(gn_gguf_find(g, "ai32"), 0), -1);
    assert_true(gn_gguf_elem_f64(gn_gguf_find(g, "af32"), 1) == -1.5);
    assert_true(gn_gguf_elem_f64(gn_gguf_find(g, "ai32"), 0) == -1.0);
    assert_int_equal(gn_gguf_elem_u64(gn_gguf_find(g, "abool"), 2), 1);
    assert_int_equal(gn_gguf_elem_u64(gn_gguf_find(g, "au64"), 0), 5);
    assert_int_equal(gn_gguf_elem_i64(gn_gguf_find(g, "ai64"), 0), -5);
    assert_true(gn_gguf_elem_f64(gn_gguf_find(g, "af64"), 0) == 1e300);
    const void *cursor = NULL;
    const gn_gguf_value *strings = gn_gguf_find(g, "astr");
    static const char *const expected[] = {"x", "", "yz"};
    for (uint64_t i = 0; i < strings->n; i++) {
        gn_gguf_str s = gn_gguf_str_next(strings, &cursor);
        assert_int_equal(s.len, strlen(expected[i]));
        assert_memory_equal(s.s, expected[i], s.len);
    }
    assert_int_equal(gn_gguf_find(g, "aarr")->elem, GN_GGUF_ARRAY);
    assert_int_equal(gn_gguf_find(g, "aarr")->n, 3);
    assert_int_equal(gn_gguf_find(g, "empty")->n, 0);
    assert_null(gn_gguf_find(g, "absent"));
    assert_null(gn_gguf_find(g, "au"));
    gn_gguf_close(g);
    gn_buf_fini(&buf);
}

static void test_getters_refuse(void **state)
{
    (void)state;
    gn_buf buf = {0};
    gn_gguf *g = open_text(&buf, all_types);
    uint64_t u = 77;
    int64_t i = 77;
    double f = 77;
    bool b = false;
    gn_gguf_str s = {.s = "kept", .len = 4};
    assert_int_equal(gn_gguf_get_u64(g, "absent", &u), GN_E_NOT_FOUND);
    assert_string_equal(gn_error_message(), "key \"absent\": not found");
    assert_int_equal(gn_gguf_get_u64(g, "i8", &u), GN_E_FORMAT);
    assert_string_equal(gn_error_message(), "key \"i8\": found -1, expected 0 or more");
    assert_int_equal(gn_gguf_get_u64(g, "f32", &u), GN_E_FORMAT);
    assert_string_equal(gn_error_message(), "key \"f32\": found type f32, expected an integer");
    assert_int_equal(gn_gguf_get_u64(g, "bool", &u), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_u64(g, "au8", &u), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_i64(g, "u64", &i), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_i64(g, "str", &i), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_f64(g, "str", &f), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_f64(g, "bool", &f), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_f64(g, "inf", &f), GN_E_FORMAT);
    assert_string_equal(gn_error_message(), "key \"inf\": found inf, expected a finite number");
    assert_int_equal(gn_gguf_get_bool(g, "u8", &b), GN_E_FORMAT);
    assert_int_equal(gn_gguf_get_str(g, "u8", &s), GN_E_FORMAT);
    assert_true(u == 77 && i == 77 && f == 77 && !b && s.len == 4);
    gn_gguf_close(g);
    gn_buf_fini(&buf);
}

static void test_tensors(void **state)
{
    (void)state;
    gn_buf buf = {0};
    /* Alignment 64; the tensors' data lie in another order than their descriptions. */
    gn_gguf *g = open_text(&buf, "'GGUF' u4:2 u8:3 u8:2 " ARCH "s:general.alignment u4:4 u4:64 "
                                 "s:b.weight u4:2 u8:32 u8:3 u4:8 u8:64 "
                                 "s:a.weight u4:4 u8:2 u8:3 u8:1 u8:2 u4:0 u8:192 "
                                 "s:c u4:1 u8:1 u4:28 u8:0 "
                                 "align:64 f8:1.0 align:64 z:102 align:64 f4:5 z:44");
    assert_int_equal(gn_gguf_version(g), 2);
    assert_int_equal(gn_gguf_alignment(g), 64);
    assert_int_equal(gn_gguf_n_tensors(g), 3);
    assert_int_equal(gn_gguf_tensor_at(g, 0)->name.len, 8);
    const gn_view *v = gn_gguf_find_tensor(g, "b.weight");
    assert_ptr_equal(v, &gn_gguf_tensor_at(g, 0)->view);
    assert_int_equal(v->dtype, GN_DTYPE_Q8_0);
    assert_int_equal(v->n_dims, 2);
    assert_int_equal(v->shape[0], 3);
    assert_int_equal(v->shape[1], 32);
    assert_int_equal(v->shape[2], 1);
    assert_int_equal(v->row_bytes, 34);
    assert_int_equal(v->bytes, 102);
    v = gn_gguf_find_tensor(g, "a.weight");
    assert_int_equal(v->n_dims, 4);
    assert_int_equal(v->shape[0], 2);
    assert_int_equal(v->shape[1], 1);
    assert_int_equal(v->shape[2], 3);
    assert_int_equal(v->shape[3], 2);
    assert_int_equal(v->row_bytes, 8);
    assert_int_equal(v->bytes, 48);
    float first = 0;
    memcpy(&first, v->data, sizeof first);
    assert_true(first == 5);
    assert_ptr_equal((const char *)v->data + v->bytes, buf.data + buf.len);
    assert_null(gn_gguf_find_tensor(g, "d"));
    gn_gguf_close(g);
    gn_buf_fini(&buf);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    gn_buf buf = {0};
    pack(&buf, "'GGUF' u4:3 u8:1 u8:1 " ARCH "s:a u4:1 u8:1 u4:0 u8:0 align:32 z:4");
    long live = gn_alloc_live();
    gn_status status = GN_E_NOMEM;
    long n = 1;
    for (; status == GN_E_NOMEM; n++) {
        alloc_fault failing = {.at = n};
        gn_gguf *g = NULL;
        gn_alloc_set_fault(fail_nth, &failing);
        status = gn_gguf_open_memory(buf.data, buf.len, &g);
        gn_alloc_set_fault(NULL, NULL);
        assert_true(status == GN_OK || (status == GN_E_NOMEM && g == NULL));
        gn_gguf_close(g);
        assert_int_equal(gn_alloc_live(), live);
    }
    assert_int_equal(status, GN_OK);
    assert_true(n > 4);
    gn_buf_fini(&buf);
}

/* ---- split sets ---- */

static void write_text(const char *name, const char *text)
{
    gn_buf buf = {0};
    pack(&buf, text);
    write_file(in_folder(name), buf.data, buf.len);
    gn_buf_fini(&buf);
}

#define SPLIT(no, count, tensors)                                                                  \
    "s:split.no u4:2 u2:" #no " s:split.count u4:2 u2:" #count                                     \
    " s:split.tensors.count u4:5 u4:" #tensors " "
#define ONE(name) "s:" name " u4:1 u8:1 u4:0 u8:0 align:32 z:4"

static void write_first(void)
{
    write_text("m-00001-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:4 " ARCH SPLIT(0, 3, 3) ONE("a"));
}

static void write_others(void)
{
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(1, 3, 3) ONE("b"));
    write_text("m-00003-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(2, 3, 3) ONE("c"));
}

static void test_split_set(void **state)
{
    (void)state;
    write_first();
    write_others();
    gn_gguf *g = NULL;
    assert_int_equal(gn_gguf_open(in_folder("m-00001-of-00003.gguf"), &g), GN_OK);
    assert_int_equal(gn_gguf_n_tensors(g), 3);
    assert_non_null(gn_gguf_find_tensor(g, "a"));
    assert_non_null(gn_gguf_find_tensor(g, "c"));
    assert_memory_equal(gn_gguf_tensor_at(g, 1)->name.s, "b", 1);
    assert_int_equal(gn_gguf_n_values(g), 4);
    assert_true(gn_gguf_bytes(g) > 3 * 100);
    gn_gguf_close(g);
}

static void expect_split(const char *name, gn_status code, const char *fragment)
{
    gn_gguf *g = NULL;
    long live = gn_alloc_live();
    assert_true(failed_as(gn_gguf_open(in_folder(name), &g), code, fragment, name));
    assert_null(g);
    assert_int_equal(gn_alloc_live(), live);
    assert_memory_equal(gn_error_message(), folder, strlen(folder));
}

static void test_split_faults(void **state)
{
    (void)state;
    static const char first[] = "m-00001-of-00003.gguf";
    write_first();
    write_others();
    expect_split("m-00002-of-00003.gguf", GN_E_FORMAT, "found part 2 of 3, expected the first");
    assert_int_equal(unlink(in_folder("m-00002-of-00003.gguf")), 0);
    expect_split(first, GN_E_NOT_FOUND, "part 2 of 3 is missing");
    assert_non_null(strstr(gn_error_message(), "m-00002-of-00003.gguf"));
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(2, 3, 3) ONE("b"));
    expect_split(first, GN_E_FORMAT, "\"split.no\": found 2, expected 1");
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(1, 4, 3) ONE("b"));
    expect_split(first, GN_E_FORMAT, "\"split.count\": found 4, expected 3");
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(1, 3, 4) ONE("b"));
    expect_split(first, GN_E_FORMAT, "\"split.tensors.count\": found 4, expected 3");
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:1 u8:3 " SPLIT(1, 3, 3) ONE("a"));
    expect_split(first, GN_E_FORMAT, "tensor \"a\": found twice");
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3 u8:0 u8:3 " SPLIT(1, 3, 3));
    expect_split(first, GN_E_FORMAT, "\"split.tensors.count\": found 3, expected 2");
    write_text("m-00002-of-00003.gguf", "'GGUF' u4:3");
    expect_split(first, GN_E_FORMAT, "found a file of 8 bytes, expected at least 24");
    write_text("other.gguf", "'GGUF' u4:3 u8:1 u8:4 " ARCH SPLIT(0, 3, 3) ONE("a"));
    expect_split("other.gguf", GN_E_FORMAT,
                 "expected a file name that ends in -00001-of-00003.gguf");
    expect_split("absent.gguf", GN_E_NOT_FOUND, "cannot open");
}

static void test_split_out_of_memory(void **state)
{
    (void)state;
    write_first();
    write_others();
    const char *path = in_folder("m-00001-of-00003.gguf");
    long live = gn_alloc_live();
    gn_status status = GN_E_NOMEM;
    long n = 1;
    for (; status == GN_E_NOMEM; n++) {
        alloc_fault failing = {.at = n};
        gn_gguf *g = NULL;
        gn_alloc_set_fault(fail_nth, &failing);
        status = gn_gguf_open(path, &g);
        gn_alloc_set_fault(NULL, NULL);
        gn_gguf_close(g);
        assert_int_equal(gn_alloc_live(), live);
    }
    assert_int_equal(status, GN_OK);
    assert_true(n > 15);
}

static void test_named_getter(void **state)
{
    (void)state;
    write_text("one.gguf", "'GGUF' u4:3 u8:0 u8:1 " ARCH);
    gn_gguf *g = NULL;
    uint64_t u = 0;
    assert_int_equal(gn_gguf_open(in_folder("one.gguf"), &g), GN_OK);
    assert_int_equal(gn_gguf_get_u64(g, "general.architecture", &u), GN_E_FORMAT);
    assert_non_null(strstr(gn_error_message(),
                           "/one.gguf: key \"general.architecture\": found type "
                           "string, expected an integer"));
    gn_gguf_close(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),     cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_getters_refuse), cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_split_set),
        cmocka_unit_test(test_split_faults),   cmocka_unit_test(test_split_out_of_memory),
        cmocka_unit_test(test_named_getter),
    };
    return cmocka_run_group_tests_name("file/gguf", tests, make_folder, remove_folder);
}
