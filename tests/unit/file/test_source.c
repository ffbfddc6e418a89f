/* file/source: which kind of model lies at a path; file/hf: its side files; file/extent: order. */
#include "pack.h"

#include "base/rng.h"
#include "file/extent.h"
#include "file/hf.h"
#include "file/show.h"
#include "file/source.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/file/folder.h"

static void write_string(const char *name, const char *text)
{
    write_file(in_folder(name), text, strlen(text));
}

static void write_packed(const char *name, const char *text)
{
    gn_buf buf = {0};
    pack(&buf, text);
    write_file(in_folder(name), buf.data, buf.len);
    gn_buf_fini(&buf);
}

static gn_source *open_source(const char *path)
{
    gn_source *source = NULL;
    if (gn_source_open(path, &source) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return source;
}

static void expect_refusal(const char *path, gn_status code, const char *fragment)
{
    gn_source *source = NULL;
    long live = gn_alloc_live();
    assert_true(failed_as(gn_source_open(path, &source), code, fragment, path));
    assert_null(source);
    assert_int_equal(gn_alloc_live(), live);
    assert_memory_equal(gn_error_message(), folder, strlen(folder));
}

#define GGUF                                                                                       \
    "'GGUF' u4:3 u8:2 u8:1 s:general.architecture u4:8 s:llama s:b u4:1 u8:1 u4:0 u8:32 "          \
    "s:a.weight u4:1 u8:2 u4:0 u8:0 align:32 z:36"
#define SAFETENSORS "s:{\"w\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}} z:4"

static void test_gguf(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("g"), 0700), 0);
    write_packed("g/model.gguf", GGUF);
    write_string("g/README.md", "text");
    const char *const paths[] = {"g", "g/", "g/model.gguf"};
    for (size_t i = 0; i < GN_COUNTOF(paths); i++) {
        gn_source *source = open_source(in_folder(paths[i]));
        assert_string_equal(gn_source_path(source), in_folder(paths[i]));
        assert_int_equal(gn_source_get_kind(source), GN_SOURCE_GGUF);
        assert_non_null(gn_source_gguf(source));
        assert_null(gn_source_config(source));
        assert_null(gn_source_tokenizer(source));
        assert_null(gn_source_chat_template(source));
        assert_int_equal(gn_source_n_tensors(source), 2);
        const char *name = NULL;
        const gn_view *view = gn_source_tensor_at(source, 1, &name);
        assert_string_equal(name, "a.weight");
        assert_ptr_equal(view, gn_source_find(source, "a.weight"));
        assert_null(gn_source_find(source, "a"));
        assert_true(gn_source_bytes(source) > 100);
        gn_source_close(source);
    }
    write_packed("g/other.gguf", GGUF);
    expect_refusal(in_folder("g"), GN_E_NOT_FOUND, "2 .gguf files");
}

static void test_split_folder(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("s"), 0700), 0);
    write_packed("s/m-00001-of-00002.gguf",
                 "'GGUF' u4:3 u8:0 u8:3 s:general.architecture u4:8 s:llama "
                 "s:split.no u4:2 u2:0 s:split.count u4:2 u2:2");
    write_packed("s/m-00002-of-00002.gguf", "'GGUF' u4:3 u8:1 u8:2 s:split.no u4:2 u2:1 "
                                            "s:split.count u4:2 u2:2 s:b u4:1 u8:1 u4:0 u8:0 "
                                            "align:32 z:4");
    gn_source *source = open_source(in_folder("s"));
    assert_int_equal(gn_source_n_tensors(source), 1);
    assert_non_null(gn_source_find(source, "b"));
    gn_source_close(source);
}

static void test_hugging_face(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("h"), 0700), 0);
    expect_refusal(in_folder("h"), GN_E_NOT_FOUND, "found no config.json and 0 .gguf files");
    write_string("h/config.json", "{\"model_type\":\"llama\"}");
    gn_source *source = open_source(in_folder("h"));
    assert_int_equal(gn_source_get_kind(source), GN_SOURCE_HF);
    assert_int_equal(gn_source_n_tensors(source), 0);
    assert_null(gn_source_find(source, "w"));
    assert_int_equal(gn_source_bytes(source), 0);
    gn_source_close(source);

    write_packed("h/model.safetensors", SAFETENSORS);
    write_string("h/tokenizer.json", "{\"version\":\"1.0\"}");
    write_string("h/tokenizer_config.json", "{\"bos_token\":\"<s>\"}");
    write_string("h/generation_config.json", "{\"eos_token_id\":2}");
    write_string("h/chat_template.jinja", "{{ messages }}\n");
    const char *const paths[] = {"h", "h/model.safetensors"};
    for (size_t i = 0; i < GN_COUNTOF(paths); i++) {
        source = open_source(in_folder(paths[i]));
        assert_null(gn_source_gguf(source));
        assert_string_equal(
            json_string_value(json_object_get(gn_source_config(source), "model_type")), "llama");
        assert_non_null(json_object_get(gn_source_tokenizer(source), "version"));
        assert_non_null(json_object_get(gn_source_tokenizer_config(source), "bos_token"));
        assert_int_equal(
            json_integer_value(json_object_get(gn_source_generation(source), "eos_token_id")), 2);
        assert_string_equal(gn_source_chat_template(source), "{{ messages }}\n");
        assert_int_equal(gn_source_n_tensors(source), 1);
        const char *name = NULL;
        assert_ptr_equal(gn_source_tensor_at(source, 0, &name), gn_source_find(source, "w"));
        assert_string_equal(name, "w");
        gn_source_close(source);
    }
}

static void test_shard_stands_for_its_set(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("x"), 0700), 0);
    write_string("x/config.json", "{}");
    write_packed("x/model-00001-of-00001.safetensors", SAFETENSORS);
    write_string("x/model.safetensors.index.json",
                 "{\"weight_map\":{\"w\":\"model-00001-of-00001.safetensors\"}}");
    const char *const paths[] = {"x", "x/model-00001-of-00001.safetensors"};
    for (size_t i = 0; i < GN_COUNTOF(paths); i++) {
        gn_source *source = open_source(in_folder(paths[i]));
        assert_int_equal(gn_source_n_tensors(source), 1);
        gn_source_close(source);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("r"), 0700), 0);
    expect_refusal(in_folder("absent"), GN_E_NOT_FOUND, "cannot open");
    write_string("r/text", "hello");
    expect_refusal(in_folder("r/text"), GN_E_FORMAT, "magic: found \"hell\"");
    write_packed("r/model.safetensors", SAFETENSORS);
    expect_refusal(in_folder("r/model.safetensors"), GN_E_NOT_FOUND, "config.json: cannot open");
    static const struct {
        const char *text;
        const char *fragment;
    } rows[] = {
        {"", "found no text, expected a JSON object"},
        {"[1]", "found a JSON array, expected an object"},
        {"{\"a\":1,\"a\":2}", "line 1, column 10: found bad JSON: duplicate object key"},
        {"{\"a\":1e999}", "real number overflow"},
        {"{\"a\":NaN}", "found bad JSON"},
        {"{\n\"a\":}", "line 2, column 5: found bad JSON"},
        {"{\"a\":\"\\u0000\"}", "\\u0000 is not allowed"},
        {"{\"a\":\"\xc0\x80\"}", "unable to decode byte 0xc0"},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        write_string("r/config.json", rows[i].text);
        expect_refusal(in_folder("r"), GN_E_FORMAT, rows[i].fragment);
        assert_non_null(strstr(gn_error_message(), "/config.json: "));
    }
    write_string("r/config.json", "{}");
    write_string("r/tokenizer.json", "{");
    expect_refusal(in_folder("r"), GN_E_FORMAT, "/tokenizer.json: line 1");
    write_string("r/tokenizer.json", "{}");
    write_string("r/chat_template.jinja", "a\xff");
    expect_refusal(in_folder("r"), GN_E_FORMAT,
                   "/chat_template.jinja: found bytes that are not UTF-8");
    write_file(in_folder("r/chat_template.jinja"), "a\0b", 3);
    expect_refusal(in_folder("r"), GN_E_FORMAT, "/chat_template.jinja: found a NUL byte");
    assert_int_equal(truncate(in_folder("r/chat_template.jinja"), (1 << 20) + 1), 0);
    expect_refusal(in_folder("r"), GN_E_FORMAT, "found 1048577 bytes, expected at most 1048576");
}

/* Each allocation fails in turn, jansson's too. jansson reports some of its own as bad JSON, and its lexer
 * drops a character where its buffer can't grow, so there any code may come; what must hold is that nothing
 * crashes or leaks. */
static void fail_each(const char *path, long at_least)
{
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(gn_alloc, gn_free);
    long live = gn_alloc_live();
    bool hit = true;
    long n = 0;
    while (hit) {
        alloc_fault failing = {.at = ++n};
        gn_source *source = NULL;
        gn_alloc_set_fault(fail_nth, &failing);
        gn_status status = gn_source_open(path, &source);
        gn_alloc_set_fault(NULL, NULL);
        hit = failing.seen >= failing.at;
        assert_true(hit || status == GN_OK);
        assert_true((status == GN_OK) == (source != NULL));
        gn_source_close(source);
        assert_int_equal(gn_alloc_live(), live);
    }
    json_set_alloc_funcs(old_malloc, old_free);
    assert_true(n > at_least);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("o"), 0700), 0);
    write_packed("o/model.gguf", GGUF);
    fail_each(in_folder("o"), 8);
    write_string("o/config.json", "{\"model_type\":\"llama\",\"eos_token_id\":[1,2]}");
    write_string("o/tokenizer.json", "{\"version\":\"1.0\"}");
    write_string("o/chat_template.jinja", "{{ messages }}");
    write_packed("o/model-00001-of-00001.safetensors", SAFETENSORS);
    write_string("o/model.safetensors.index.json",
                 "{\"weight_map\":{\"w\":\"model-00001-of-00001.safetensors\"}}");
    fail_each(in_folder("o"), 60);
}

static void test_show(void **state)
{
    (void)state;
    static const char text[] = "a\"\\\n\x7f\xff\xc3\xa9\xe2\x80\xa8";
    assert_string_equal(gn_file_show(text, sizeof text - 1).text,
                        "a\\\"\\\\\\x0a\\x7f\\xff\xc3\xa9\\xe2\\x80\\xa8");
    char longer[500];
    memset(longer, 'x', sizeof longer);
    gn_file_shown shown = gn_file_show(longer, sizeof longer);
    assert_int_equal(strlen(shown.text), GN_FILE_SHOW_BYTES - 1);
    assert_string_equal(shown.text + GN_FILE_SHOW_BYTES - 4, "...");
    memset(longer, 1, sizeof longer);
    for (size_t n = 0; n < 60; n++) {
        shown = gn_file_show(longer, n);
        assert_true(strlen(shown.text) < GN_FILE_SHOW_BYTES);
    }
}

static void test_extents(void **state)
{
    (void)state;
    gn_rng rng = {.state = 7};
    gn_extent extents[257];
    for (size_t n = 0; n <= GN_COUNTOF(extents); n++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t begin = gn_rng_next(&rng) % 64;
            extents[i] = (gn_extent){begin, begin + gn_rng_next(&rng) % 4, (uint32_t)i};
            sum += begin;
        }
        gn_extent_sort(extents, n);
        for (size_t i = 0; i < n; i++) {
            sum -= extents[i].begin;
            if (i > 0) {
                const gn_extent *a = &extents[i - 1];
                const gn_extent *b = &extents[i];
                assert_true(a->begin < b->begin ||
                            (a->begin == b->begin &&
                             (a->end < b->end || (a->end == b->end && a->index < b->index))));
            }
        }
        assert_int_equal(sum, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),         cmocka_unit_test(test_split_folder),
        cmocka_unit_test(test_hugging_face), cmocka_unit_test(test_shard_stands_for_its_set),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_show),         cmocka_unit_test(test_extents),
    };
    return cmocka_run_group_tests_name("file/source", tests, make_folder, remove_folder);
}
