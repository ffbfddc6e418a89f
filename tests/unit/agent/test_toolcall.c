/* Tool calls: which format a template means, a grammar's texts read back as calls, and histories as templates want
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/toolcall.h"
#include "base/alloc.h"
#include "base/rng.h"

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } rows[] = {
        {NULL, "told"},
        {"{{ messages }}", "told"},
        {"{% if tools %}<tool_call>{\"name\": {% endif %}", "hermes"},
        {"{% if tools %}<tool_call><function={% endif %}", "told"},
        {"{% if tools %}<tool_call>{{ name }}<arg_key>{% endif %}", "told"},
        {"{% if tools %}[TOOL_CALLS]{% endif %}", "mistral"},
        {"{% if tools %}<|tool_call|>{% endif %}", "granite"},
        {"{% if tools %}<TOOLCALL>{% endif %}", "nemotron"},
        {"{% if tools %}{\"name\": x, \"parameters\": y}{% endif %}", "llama3"},
        {"{% if tools %}<|START_ACTION|> \"parameters\": {% endif %}", "told"},
    };
    for (size_t i = 0; i < GN_COUNTOF(rows); i++) {
        assert_string_equal(gn_toolcall_format(rows[i].text)->name, rows[i].name);
    }
}

/* --- the reader --- */

/* Events as text: words as they are, calls as [name|arguments]. */
static void read_all(const gn_tool_format *format, const char *text, uint64_t seed, gn_buf *out)
{
    gn_toolcall_reader *reader = NULL;
    gn_rng rng = {.state = seed};
    bool open = false;
    size_t len = strlen(text);
    assert_int_equal(gn_toolcall_reader_create(format, &reader), GN_OK);
    for (size_t at = 0, n; at <= len; at += n) {
        n = seed == 0 ? 1 : 1 + (size_t)(gn_rng_next(&rng) % 9);
        bool last = at + n > len;
        n = last ? len - at : n;
        assert_int_equal(gn_toolcall_reader_push(reader, text + at, n, last), GN_OK);
        gn_toolcall_event event;
        while (gn_toolcall_reader_take(reader, &event)) {
            if (open && event.type != GN_TOOLCALL_ARGUMENTS) {
                assert_int_equal(gn_buf_putc(out, ']'), GN_OK);
                open = false;
            }
            if (event.type == GN_TOOLCALL_BEGIN) {
                assert_int_equal(gn_buf_printf(out, "[%.*s|", (int)event.len, event.text), GN_OK);
                open = true;
            } else {
                assert_int_equal(gn_buf_append(out, event.text, event.len), GN_OK);
            }
        }
        if (last) {
            break;
        }
    }
    if (open) {
        assert_int_equal(gn_buf_putc(out, ']'), GN_OK);
    }
    gn_toolcall_reader_destroy(reader);
}

static void expect(const gn_tool_format *format, const char *text, const char *expected)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        gn_buf out = {0};
        read_all(format, text, seed, &out);
        assert_string_equal(out.data != NULL ? out.data : "", expected);
        gn_buf_fini(&out);
    }
}

static void test_reader(void **state)
{
    (void)state;
    const gn_tool_format *hermes = gn_toolcall_format("<tool_call> tools");
    expect(hermes, "", "");
    expect(hermes, "Hello <b> <tool <tool_cal", "Hello <b> <tool <tool_cal");
    expect(hermes, "<<tool_call", "<<tool_call");
    expect(hermes,
           "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\\\"]\"]}}\n</tool_call>",
           "[f|{\"a\": [1, \"}\\\"]\"]}]");
    expect(hermes,
           "Now:\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n<tool_call>\n"
           "{\"name\": \"g\\u00e9\", \"arguments\": {\"x\": {\"y\": null}}}\n</tool_call>",
           "Now:\n[f|{}][g\xc3\xa9|{\"x\": {\"y\": null}}]");
    expect(hermes, "the tag <tool_call> is text", "the tag <tool_call> is text");
    const gn_tool_format *mistral = gn_toolcall_format("[TOOL_CALLS] tools");
    expect(mistral,
           "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", "
           "\"arguments\": {}}]",
           "[f|{\"a\": 1}][g|{}]");
    expect(mistral, "[TOOL] [1]", "[TOOL] [1]");
    const gn_tool_format *llama = gn_toolcall_format("\"parameters\": tools");
    expect(llama, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}", "[f|{\"a\": 1}]");
    expect(llama, "{\"names\": 1}", "{\"names\": 1}");
    expect(llama, "see {\"name\": \"f\"}", "see {\"name\": \"f\"}");
}

/* --- the grammar --- */

static json_t *some_tools(void)
{
    json_t *tools = json_loads(
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
        "\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}},\"required\":[\"a\"],"
        "\"additionalProperties\":false,\"$defs\":{\"n\":{\"type\":\"integer\"}}}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]",
        0, NULL);
    assert_non_null(tools);
    return tools;
}

static void test_grammar_refusals(void **state)
{
    (void)state;
    const gn_tool_format *hermes = gn_toolcall_format("<tool_call> tools");
    json_t *tools = some_tools();
    gn_grammar *grammar = NULL;
    char *pointer = NULL;
    gn_toolcall_rules rules = {.tools = tools, .required = true};
    assert_int_equal(gn_toolcall_grammar(hermes, &rules, &grammar, &pointer), GN_OK);
    gn_grammar_release(grammar);
    gn_arena arena;
    gn_arena_init(&arena, 0);
    assert_int_equal(gn_base_json_parse(&arena, "[\"h\"]", 5, &rules.allowed, NULL), GN_OK);
    assert_int_equal(gn_toolcall_grammar(hermes, &rules, &grammar, &pointer), GN_E_ARG);
    gn_arena_fini(&arena);
    json_decref(tools);
    tools = json_loads("[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"thing\"}}}]", 0,
                       NULL);
    rules = (gn_toolcall_rules){.tools = tools};
    assert_int_equal(gn_toolcall_grammar(hermes, &rules, &grammar, &pointer), GN_E_FORMAT);
    assert_non_null(pointer);
    gn_free(pointer);
    json_decref(tools);
}

/* --- the conversation --- */

static void expect_messages(const char *template, const char *messages, const char *expected)
{
    const gn_tool_format *format = gn_toolcall_format(template);
    json_t *in = json_loads(messages, 0, NULL);
    json_t *tools = json_loads("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]", 0, NULL);
    assert_non_null(in);
    json_t *out = gn_toolcall_messages(format, in, tools);
    assert_non_null(out);
    char *text = json_dumps(out, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(out);
    json_decref(tools);
    json_decref(in);
}

static void test_messages(void **state)
{
    (void)state;
    static const char hermes[] = "<tool_call> tools";
    expect_messages(
        hermes,
        "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"9\"}]",
        "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"type\":"
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1}}}]},"
        "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"9\",\"name\":\"f\"}]");
    expect_messages(
        hermes,
        "[{\"role\":\"assistant\",\"content\":\"x\",\"tool_calls\":[{\"function\":{"
        "\"name\":\"f\",\"arguments\":\"{broken\"}},7]}]",
        "[{\"role\":\"assistant\",\"content\":\"x\\n{\\\"function\\\":{\\\"name\\\":\\\"f\\\","
        "\\\"arguments\\\":\\\"{broken\\\"}}\\n7\"}]");
    expect_messages(
        "", "[{\"role\":\"tool\",\"content\":\"9\"}]",
        "[{\"role\":\"system\",\"content\":\"# Tools\\n\\nYou may call one or more functions. They "
        "are, as JSON:\\n{\\\"type\\\": \\\"function\\\", \\\"function\\\": {\\\"name\\\": "
        "\\\"f\\\"}}\\n\\nTo call one, write its name and arguments as a JSON object between "
        "tags:\\n<tool_call>\\n{\\\"name\\\": NAME, \\\"arguments\\\": OBJECT}\\n</tool_call>\"},"
        "{\"role\":\"user\",\"content\":\"<tool_response>\\n9\\n</tool_response>\"}]");
}

/* Mistral's templates take ids of nine letters and digits alone; a call and its result keep the same. */
static void test_short_ids(void **state)
{
    (void)state;
    const gn_tool_format *format = gn_toolcall_format("[TOOL_CALLS] tools");
    json_t *in = json_loads(
        "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_0123456789\",\"function\":{"
        "\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"abcdef012\",\"function\":{\"name\":"
        "\"f\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"call_0123456789\",\"content\":\"9\"},"
        "{\"role\":\"tool\",\"tool_call_id\":\"abcdef012\",\"content\":\"9\"}]",
        0, NULL);
    json_t *out = gn_toolcall_messages(format, in, NULL);
    assert_non_null(out);
    const json_t *calls = json_object_get(json_array_get(out, 0), "tool_calls");
    for (size_t i = 0; i < 2; i++) {
        const char *call = json_string_value(json_object_get(json_array_get(calls, i), "id"));
        const json_t *result = json_array_get(out, 1 + i);
        assert_int_equal(strspn(call, "0123456789abcdefghijklmnopqrstuvwxyz"), 9);
        assert_int_equal(strlen(call), 9);
        assert_string_equal(call, json_string_value(json_object_get(result, "tool_call_id")));
    }
    assert_string_equal(json_string_value(json_object_get(json_array_get(calls, 1), "id")),
                        "abcdef012");
    json_decref(out);
    json_decref(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats), cmocka_unit_test(test_reader),
        cmocka_unit_test(test_grammar_refusals), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_short_ids)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
