/* file/safetensors: valid files, crafted faults, shards. */
#include "pack.h"

#include "file/safetensors.h"

#include <jansson.h>
#include <unistd.h>

#include "tests/unit/file/folder.h"

/* A file: header length, header, n_data zero bytes. */
static void build(gn_buf *buf, const char *header, size_t n_data)
{
    uint64_t len = strlen(header);
    put(buf, &len, sizeof len);
    put(buf, header, len);
    put_zeros(buf, n_data);
}

static const char valid[] =
    "{\"__metadata__\":{\"format\":\"pt\",\"by\":\"a test\"},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
    "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
    "\"c.\\u00e9\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,2,2,2],\"data_offsets\":[16,24]}}   ";

static void test_valid(void **state)
{
    (void)state;
    gn_buf buf = {0};
    build(&buf, valid, 24);
    gn_safetensors *st = NULL;
    assert_int_equal(gn_safetensors_open_memory(buf.data, buf.len, &st), GN_OK);
    assert_int_equal(gn_safetensors_n_tensors(st), 3);
    const gn_safetensors_tensor *a = gn_safetensors_tensor_at(st, 0);
    assert_string_equal(a->name, "a");
    assert_int_equal(a->view.n_dims, 1);
    assert_int_equal(a->view.shape[0], 1);
    assert_int_equal(a->view.bytes, 4);
    const gn_view *b = gn_safetensors_find(st, "b");
    assert_ptr_equal(b, &gn_safetensors_tensor_at(st, 1)->view);
    assert_int_equal(b->dtype, GN_DTYPE_F16);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->row_bytes, 6);
    assert_ptr_equal(b->data, buf.data + buf.len - 20);
    const gn_view *c = gn_safetensors_find(st, "c.\xc3\xa9");
    assert_non_null(c);
    assert_int_equal(c->dtype, GN_DTYPE_F8_E4M3);
    assert_int_equal(c->n_dims, 4);
    assert_null(gn_safetensors_find(st, "__metadata__"));
    assert_int_equal(gn_safetensors_n_metadata(st), 2);
    const char *key = NULL;
    const char *value = NULL;
    gn_safetensors_metadata_at(st, 1, &key, &value);
    assert_string_equal(key, "by");
    assert_string_equal(value, "a test");
    gn_safetensors_close(st);
    gn_buf_fini(&buf);
}

static void test_every_dtype(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        gn_dtype dtype;
        size_t bytes;
    } rows[] = {
        {"F64", GN_DTYPE_F64, 8},         {"F32", GN_DTYPE_F32, 4},
        {"F16", GN_DTYPE_F16, 2},         {"BF16", GN_DTYPE_BF16, 2},
        {"I64", GN_DTYPE_I64, 8},         {"I32", GN_DTYPE_I32, 4},
        {"I16", GN_DTYPE_I16, 2},         {"I8", GN_DTYPE_I8, 1},
        {"U8", GN_DTYPE_U8, 1},           {"BOOL", GN_DTYPE_BOOL, 1},
        {"F8_E4M3", GN_DTYPE_F8_E4M3, 1}, {"F8_E5M2", GN_DTYPE_F8_E5M2, 1},
        {"F8_E8M0", GN_DTYPE_F8_E8M0, 1}, {"U16", GN_DTYPE_U16, 2},
        {"U32", GN_DTYPE_U32, 4},         {"U64", GN_DTYPE_U64, 8},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        char header[128];
        (void)snprintf(header, sizeof header,
                       "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
                       rows[i].name, 3 * rows[i].bytes);
        gn_buf buf = {0};
        build(&buf, header, 3 * rows[i].bytes);
        gn_safetensors *st = NULL;
        assert_int_equal(gn_safetensors_open_memory(buf.data, buf.len, &st), GN_OK);
        assert_int_equal(gn_safetensors_find(st, "t")->dtype, rows[i].dtype);
        assert_int_equal(gn_safetensors_find(st, "t")->row_bytes, 3 * rows[i].bytes);
        gn_safetensors_close(st);
        gn_buf_fini(&buf);
    }
}

/* ---- faults ---- */

typedef struct fault {
    const char *name;
    const char *header;
    size_t n_data;
    const char *fragment;
    gn_status code; /* GN_OK stands for GN_E_FORMAT */
} fault;

/* One tensor t with the given fields, and the valid ones. */
#define T(fields) "{\"t\":{" fields "}}"
#define DTYPE     "\"dtype\":\"F32\","
#define SHAPE     "\"shape\":[2,2],"
#define OFFSETS   "\"data_offsets\":[0,16]"
#define F(b, e)   "\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" #b "," #e "]"

static const fault faults[] = {
    {"no header", "", 0, "header: found no \"{\"", GN_OK},
    {"one brace", "{", 0, "header: found no \"{\"", GN_OK},
    {"an array", "[]", 0, "header: found no \"{\"", GN_OK},
    {"leading blank", " {}", 0, "header: found no \"{\"", GN_OK},
    {"not closed", "{\"a\":", 0, "header: line 1, column", GN_OK},
    {"text after", "{} x", 0, "header: line 1, column", GN_OK},
    {"not UTF-8", "{\"\xff\":1}", 0, "bad JSON: unable to decode byte 0xff", GN_OK},
    {"NUL in a name", "{\"a\\u0000\":{" F(0, 4) "}}", 4, "bad JSON", GN_OK},
    {"number too large",
     T("\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,4]"), 4,
     "too big integer", GN_OK},
    {"name twice", "{\"t\":{" F(0, 4) "},\"t\":{" F(4, 8) "}}", 8, "duplicate object key", GN_OK},
    {"field twice", T(DTYPE DTYPE SHAPE OFFSETS), 16, "duplicate object key", GN_OK},
    {"name empty", "{\"\":{" F(0, 4) "}}", 4, "tensor name \"\" is empty", GN_OK},
    {"name a path", "{\"../x\":{" F(0, 4) "}}", 4, "tensor name \"../x\" has a path part", GN_OK},
    {"name with a line break", "{\"a\\nb\":{" F(0, 4) "}}", 4,
     "tensor name \"a\\x0ab\" has a control character", GN_OK},
    {"a tensor that is a number", "{\"t\":1}", 0,
     "tensor \"t\": found an integer, expected an object", GN_OK},
    {"a fourth field", T(DTYPE SHAPE OFFSETS ",\"x\":1"), 16, "found 4 fields", GN_OK},
    {"no dtype", T(SHAPE OFFSETS), 16, "tensor \"t\": dtype: found nothing, expected a string",
     GN_OK},
    {"dtype a number", T("\"dtype\":1," SHAPE OFFSETS), 16, "dtype: found an integer", GN_OK},
    {"dtype unknown", T("\"dtype\":\"F33\"," SHAPE OFFSETS), 16, "dtype: found \"F33\"", GN_OK},
    {"dtype in small letters", T("\"dtype\":\"f32\"," SHAPE OFFSETS), 16, "dtype: found \"f32\"",
     GN_OK},
    {"dtype not ours", T("\"dtype\":\"F4\"," SHAPE OFFSETS), 16,
     "dtype: found F4, which is known but not supported", GN_E_UNSUPPORTED},
    {"no shape", T(DTYPE OFFSETS), 16, "shape: found nothing, expected an array", GN_OK},
    {"shape a number", T(DTYPE "\"shape\":4," OFFSETS), 16, "shape: found an integer", GN_OK},
    {"dimension 0", T(DTYPE "\"shape\":[0,2],\"data_offsets\":[0,0]"), 0,
     "dimension 0: found 0, expected 1 or more", GN_OK},
    {"dimension -1", T(DTYPE "\"shape\":[2,-1]," OFFSETS), 16, "dimension 1: found -1", GN_OK},
    {"dimension a fraction", T(DTYPE "\"shape\":[2.0,2]," OFFSETS), 16,
     "dimension 0: found a fraction", GN_OK},
    {"dimension a string", T(DTYPE "\"shape\":[\"2\",2]," OFFSETS), 16,
     "dimension 0: found a string", GN_OK},
    {"dimensions that wrap", T(DTYPE "\"shape\":[4611686018427387904,4]," OFFSETS), 16,
     "below 2^63 bytes", GN_OK},
    {"2^42+1 twice", T(DTYPE "\"shape\":[4398046511105,4398046511105]," OFFSETS), 16,
     "dimension 1: found 4398046511105", GN_OK},
    {"5 dimensions", T(DTYPE "\"shape\":[1,1,1,2,2]," OFFSETS), 16, "shape: found 5 dimensions",
     GN_E_UNSUPPORTED},
    {"no offsets", T(DTYPE "\"shape\":[2,2]"), 16, "data_offsets: found nothing", GN_OK},
    {"three offsets", T(DTYPE SHAPE "\"data_offsets\":[0,16,32]"), 32,
     "data_offsets: found another number", GN_OK},
    {"offsets strings", T(DTYPE SHAPE "\"data_offsets\":[\"0\",16]"), 16,
     "data_offsets: found a string and an integer", GN_OK},
    {"offsets negative", T(DTYPE SHAPE "\"data_offsets\":[-16,0]"), 16,
     "data_offsets: found -16 to 0", GN_OK},
    {"offsets descending", T(DTYPE SHAPE "\"data_offsets\":[16,0]"), 16,
     "data_offsets: found 16 to 0", GN_OK},
    {"past the end", T(DTYPE SHAPE OFFSETS), 15,
     "data_offsets: found an end of 16, expected at most 15", GN_OK},
    {"end 2^63-1", T(DTYPE SHAPE "\"data_offsets\":[0,9223372036854775807]"), 16,
     "found an end of 9223372036854775807", GN_OK},
    {"size and shape disagree", T(DTYPE "\"shape\":[2,3]," OFFSETS), 16,
     "data_offsets: found 16 bytes, expected 24", GN_OK},
    {"size and dtype disagree", T("\"dtype\":\"F16\"," SHAPE OFFSETS), 16,
     "data_offsets: found 16 bytes, expected 8", GN_OK},
    {"overlap", "{\"a\":{" F(0, 4) "},\"b\":{" F(2, 6) "}}", 6,
     "tensor \"b\": data_offsets: found 2, expected 4 (it overlaps", GN_OK},
    {"the same place", "{\"a\":{" F(0, 4) "},\"b\":{" F(0, 4) "}}", 4, "(it overlaps", GN_OK},
    {"hole", "{\"a\":{" F(0, 4) "},\"b\":{" F(5, 9) "}}", 9,
     "tensor \"b\": data_offsets: found 5, expected 4 (a hole", GN_OK},
    {"hole at the start", "{\"a\":{" F(1, 5) "}}", 5, "found 1, expected 0 (a hole", GN_OK},
    {"rest", "{\"a\":{" F(0, 4) "}}", 5, "data section: found 5 bytes, expected 4", GN_OK},
    {"data without tensors", "{}", 1, "data section: found 1 bytes, expected 0", GN_OK},
    {"metadata a string", "{\"__metadata__\":\"x\"}", 0, "__metadata__: found a string", GN_OK},
    {"metadata of numbers", "{\"__metadata__\":{\"k\":1}}", 0,
     "__metadata__: \"k\": found an integer", GN_OK},
};

static void test_faults(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < GN_COUNTOF(faults); i++) {
        gn_buf buf = {0};
        build(&buf, faults[i].header, faults[i].n_data);
        unsigned char *bytes = exact_copy(buf.data, buf.len);
        size_t n = buf.len;
        gn_buf_fini(&buf);
        long live = gn_alloc_live();
        gn_safetensors *st = NULL;
        gn_status code = faults[i].code != GN_OK ? faults[i].code : GN_E_FORMAT;
        bad += !failed_as(gn_safetensors_open_memory(bytes, n, &st), code, faults[i].fragment,
                          faults[i].name);
        assert_null(st);
        assert_int_equal(gn_alloc_live(), live);
        free(bytes);
    }
    assert_int_equal(bad, 0);
}

static void test_header_length(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        const char *fragment;
    } rows[] = {
        {UINT64_MAX, "header length: found 18446744073709551615, expected at most 60"},
        {UINT64_MAX - 7, "header length: found 18446744073709551608"},
        {(uint64_t)1 << 60, "header length: found 1152921504606846976"},
        {61, "header length: found 61, expected at most 60"},
        {0, "header: found no \"{\""},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        unsigned char bytes[68] = {0};
        memcpy(bytes, &rows[i].length, 8);
        gn_safetensors *st = NULL;
        assert_true(failed_as(gn_safetensors_open_memory(bytes, sizeof bytes, &st), GN_E_FORMAT,
                              rows[i].fragment, "length"));
    }
    size_t size = 8 + 100000001;
    unsigned char *large = calloc(size, 1);
    assert_non_null(large);
    uint64_t length = 100000001;
    memcpy(large, &length, sizeof length);
    gn_safetensors *st = NULL;
    assert_true(failed_as(gn_safetensors_open_memory(large, size, &st), GN_E_FORMAT,
                          "expected at most 100000000", "large header"));
    free(large);
}

static void test_deep_nesting(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *text = malloc(6 * DEPTH + 1);
    assert_non_null(text);
    for (size_t i = 0; i < DEPTH; i++) {
        memcpy(text + 6 * i, "{\"a\": ", 6);
    }
    text[6 * DEPTH] = '\0';
    gn_buf buf = {0};
    build(&buf, text, 0);
    gn_safetensors *st = NULL;
    assert_true(failed_as(gn_safetensors_open_memory(buf.data, buf.len, &st), GN_E_FORMAT,
                          "maximum parsing depth reached", "deep"));
    gn_buf_fini(&buf);
    free(text);
}

static void test_truncated(void **state)
{
    (void)state;
    gn_buf buf = {0};
    build(&buf, valid, 24);
    for (size_t n = 0; n < buf.len; n++) {
        unsigned char *bytes = exact_copy(buf.data, n);
        gn_safetensors *st = NULL;
        char which[32];
        (void)snprintf(which, sizeof which, "cut at %zu", n);
        assert_true(
            failed_as(gn_safetensors_open_memory(bytes, n, &st), GN_E_FORMAT, "found", which));
        free(bytes);
    }
    gn_buf_fini(&buf);
}

/* Each allocation fails in turn, jansson's too, of which it reports some as bad JSON or not at all: what
 * must hold is that nothing crashes or leaks. */
static void test_out_of_memory(void **state)
{
    (void)state;
    gn_buf buf = {0};
    build(&buf, valid, 24);
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(gn_alloc, gn_free);
    long live = gn_alloc_live();
    bool hit = true;
    long n = 0;
    while (hit) {
        alloc_fault failing = {.at = ++n};
        gn_safetensors *st = NULL;
        gn_alloc_set_fault(fail_nth, &failing);
        gn_status status = gn_safetensors_open_memory(buf.data, buf.len, &st);
        gn_alloc_set_fault(NULL, NULL);
        hit = failing.seen >= failing.at;
        assert_true(hit || status == GN_OK);
        assert_true((status == GN_OK) == (st != NULL));
        gn_safetensors_close(st);
        assert_int_equal(gn_alloc_live(), live);
    }
    assert_true(n > 30);
    json_set_alloc_funcs(old_malloc, old_free);
    gn_buf_fini(&buf);
}

/* ---- shards ---- */

#define ONE(name) "{\"" name "\":{" F(0, 4) "}}"
#define INDEX     "model.safetensors.index.json"

static void write_shard(const char *name, const char *header)
{
    gn_buf buf = {0};
    build(&buf, header, 4);
    write_file(in_folder(name), buf.data, buf.len);
    gn_buf_fini(&buf);
}

static void write_index(const char *text)
{
    write_file(in_folder(INDEX), text, strlen(text));
}

static void test_shards(void **state)
{
    (void)state;
    write_shard("s1.safetensors", ONE("a"));
    write_shard("s2.safetensors", ONE("b"));
    write_index("{\"metadata\":{\"total_size\":8},\"weight_map\":{\"b\":\"s2.safetensors\","
                "\"a\":\"s1.safetensors\"}}");
    gn_safetensors *st = NULL;
    assert_int_equal(gn_safetensors_open(in_folder(INDEX), &st), GN_OK);
    assert_int_equal(gn_safetensors_n_tensors(st), 2);
    assert_non_null(gn_safetensors_find(st, "a"));
    assert_non_null(gn_safetensors_find(st, "b"));
    assert_int_equal(gn_safetensors_bytes(st), 2 * (8 + strlen(ONE("a")) + 4));
    gn_safetensors_close(st);
}

static void test_shard_faults(void **state)
{
    (void)state;
    static const struct {
        const char *index;
        const char *fragment;
        gn_status code;
    } rows[] = {
        {"", "found no text", GN_E_FORMAT},
        {"[]", "found a JSON array, expected an object", GN_E_FORMAT},
        {"{}", "weight_map: found nothing, expected an object", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":1}}", "weight_map: \"a\": found an integer", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"../s1.safetensors\"}}", "expected a plain file name",
         GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "found \"/etc/passwd\", expected a plain",
         GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"\"}}", "expected a plain file name", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"s3.safetensors\"}}", "s3.safetensors: cannot open",
         GN_E_NOT_FOUND},
        {"{\"weight_map\":{\"a\":\"s2.safetensors\"}}", "\"a\": not found in \"s2.safetensors\"",
         GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"s2.safetensors\",\"b\":\"s1.safetensors\"}}",
         "\"a\": not found in \"s2.safetensors\"", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"s1.safetensors\",\"x\":\"s1.safetensors\"}}",
         "\"x\": not found in \"s1.safetensors\"", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"s1.safetensors\",\"b\":\"t.safetensors\"}}",
         "tensor \"a\": found in another file too", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"s1.safetensors\",\"a\":\"s2.safetensors\"}}",
         "duplicate object key", GN_E_FORMAT},
        {"{\"weight_map\":{\"a\":\"cut.safetensors\"}}", "cut.safetensors: offset 0: header length",
         GN_E_FORMAT},
    };
    write_shard("s1.safetensors", ONE("a"));
    write_shard("s2.safetensors", ONE("b"));
    write_shard("t.safetensors", ONE("a"));
    write_file(in_folder("cut.safetensors"), "abc", 3);
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        write_index(rows[i].index);
        long live = gn_alloc_live();
        gn_safetensors *st = NULL;
        assert_true(failed_as(gn_safetensors_open(in_folder(INDEX), &st), rows[i].code,
                              rows[i].fragment, rows[i].index));
        assert_null(st);
        assert_int_equal(gn_alloc_live(), live);
        assert_memory_equal(gn_error_message(), folder, strlen(folder));
    }
    /* A file holds a tensor that the index does not name. */
    gn_buf buf = {0};
    build(&buf, "{\"a\":{" F(0, 4) "},\"y\":{" F(4, 8) "}}", 8);
    write_file(in_folder("s1.safetensors"), buf.data, buf.len);
    gn_buf_fini(&buf);
    write_index("{\"weight_map\":{\"a\":\"s1.safetensors\"}}");
    gn_safetensors *st = NULL;
    assert_true(failed_as(gn_safetensors_open(in_folder(INDEX), &st), GN_E_FORMAT,
                          "found a tensor \"y\" in the files", "extra tensor"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),         cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_faults),        cmocka_unit_test(test_header_length),
        cmocka_unit_test(test_deep_nesting),  cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_shards),
        cmocka_unit_test(test_shard_faults),
    };
    return cmocka_run_group_tests_name("file/safetensors", tests, make_folder, remove_folder);
}
