/* Anthropic's Messages API without a server: what a request becomes, and the bytes that scripted deltas become. */
#include "serve/anthropic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Read the request and compare the messages; returns the rest of what was asked for. */
static gn_anthropic_ask read(gn_arena *arena, const char *text)
{
    const gn_json *body;
    assert_int_equal(gn_base_json_parse(arena, text, strlen(text), &body, NULL), GN_OK);
    gn_anthropic_ask ask = {0};
    if (gn_anthropic_read(arena, body, &ask) != GN_OK) {
        fail_msg("%s", gn_error_message());
    }
    return ask;
}

static void expect_json(json_t *value, const char *expected)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
}

static void refuse(const char *text, const char *message)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    const gn_json *body;
    assert_int_equal(gn_base_json_parse(&arena, text, strlen(text), &body, NULL), GN_OK);
    gn_anthropic_ask ask = {0};
    assert_int_equal(gn_anthropic_read(&arena, body, &ask), GN_E_ARG);
    assert_string_equal(gn_error_message(), message);
    gn_anthropic_ask_fini(&ask);
    gn_arena_fini(&arena);
}

static void test_messages(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_anthropic_ask ask = read(
        &arena,
        "{\"model\":\"m\",\"max_tokens\":7,\"stream\":true,\"temperature\":0.5,\"top_k\":3,"
        "\"stop_sequences\":[\"END\",\"\"],\"unknown\":1,"
        "\"system\":[{\"type\":\"text\",\"text\":\"Be\",\"cache_control\":{\"type\":\"ephemeral\"}}"
        ","
        "{\"type\":\"text\",\"text\":\"brief.\"}],\"messages\":["
        "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
        "\"text\":\"there\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\","
        "\"signature\":"
        "\"s\"},{\"type\":\"text\",\"text\":\"Look\"},{\"type\":\"tool_use\",\"id\":\"call_1\","
        "\"name\":"
        "\"f\",\"input\":{ \"a b\" : [1, \"x \\\" y\"] }}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"call_1\","
        "\"content\":"
        "[{\"type\":\"text\",\"text\":\"no\"}],\"is_error\":true},{\"type\":\"text\",\"text\":\"go "
        "on\"}]},"
        "{\"role\":\"assistant\",\"content\":\"So\"}]}");
    expect_json(
        ask.messages,
        "[{\"role\":\"system\",\"content\":\"Be\\nbrief.\"},"
        "{\"role\":\"user\",\"content\":\"Hi\\nthere\"},"
        "{\"role\":\"assistant\",\"content\":\"Look\",\"reasoning_content\":\"hm\",\"tool_calls\":["
        "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
        "\"{\\\"a b\\\":[1,\\\"x \\\\\\\" y\\\"]}\"}}]},"
        "{\"role\":\"tool\",\"content\":\"Error:\\nno\",\"tool_call_id\":\"call_1\"},"
        "{\"role\":\"user\",\"content\":\"go on\"},"
        "{\"role\":\"assistant\",\"content\":\"So\"}]");
    assert_true(ask.stream && ask.options.continue_last);
    assert_true(gn_base_json_is(ask.model, "m"));
    assert_int_equal(ask.options.request.max_tokens, 7);
    assert_int_equal(ask.options.request.sample.top_k, 3);
    assert_int_equal(ask.options.request.n_stop, 1);
    assert_string_equal(ask.options.request.stop[0], "END");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_NONE);
    gn_anthropic_ask_fini(&ask);
    gn_arena_fini(&arena);
}

#define TOOLS                                                                                      \
    "{\"model\":\"m\",\"max_tokens\":7,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"      \
    "\"tools\":["                                                                                  \
    "{\"name\":\"f\",\"description\":\"d\",\"input_schema\":{\"type\":\"object\"}},"               \
    "{\"type\":\"web_search_20250305\",\"name\":\"web_search\"},"                                  \
    "{\"type\":\"custom\",\"name\":\"g\",\"input_schema\":{},\"strict\":true}]"

static void test_tools(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_anthropic_ask ask = read(
        &arena, TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"g\","
                      "\"disable_parallel_tool_use\":true},\"thinking\":{\"type\":\"disabled\"}}");
    expect_json(
        ask.tools,
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\","
        "\"parameters\":{\"type\":\"object\"}}},"
        "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"parameters\":{},\"strict\":true}}]");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_REQUIRED);
    assert_false(ask.options.parallel_tool_calls);
    assert_int_equal(ask.options.allowed_tools->len, 1);
    assert_true(gn_base_json_is(ask.options.allowed_tools->first, "g"));
    assert_string_equal(ask.options.template_kwargs->raw, "{\"enable_thinking\":false}");
    gn_anthropic_ask_fini(&ask);
    ask = read(&arena, TOOLS "}");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_AUTO);
    assert_true(ask.options.parallel_tool_calls);
    assert_null(ask.options.allowed_tools);
    assert_null(ask.options.template_kwargs);
    gn_anthropic_ask_fini(&ask);
    ask = read(&arena, TOOLS ",\"output_config\":{\"effort\":\"low\",\"format\":{\"type\":"
                             "\"json_schema\",\"schema\":{\"type\":\"object\"}}}}");
    assert_int_equal(ask.options.format, GN_FORMAT_SCHEMA);
    assert_memory_equal(ask.options.format_text, "{\"type\":\"object\"}", ask.options.format_len);
    assert_string_equal(ask.options.template_kwargs->raw, "{\"reasoning_effort\":\"low\"}");
    gn_anthropic_ask_fini(&ask);
    gn_arena_fini(&arena);
}

/* A system prompt of nothing is none: the template's own stays. */
static void test_no_system(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"max_tokens\":1,\"system\":[],\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
        "{\"max_tokens\":1,\"system\":\"\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}"};
    for (size_t i = 0; i < GN_COUNTOF(texts); i++) {
        gn_arena arena;
        gn_arena_init(&arena, 0);
        gn_anthropic_ask ask = read(&arena, texts[i]);
        expect_json(ask.messages, "[{\"role\":\"user\",\"content\":\"x\"}]");
        gn_anthropic_ask_fini(&ask);
        gn_arena_fini(&arena);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("{\"messages\":[]}", "max_tokens: not there, expected a whole number");
    refuse("{\"max_tokens\":0}",
           "max_tokens: found 0, expected a whole number from 1 to 2147483647");
    refuse("{\"max_tokens\":1}", "messages: not there, expected an array");
    refuse("{\"max_tokens\":1,\"messages\":[]}",
           "messages: found no message, expected at least one");
    refuse("{\"max_tokens\":1,\"messages\":[{\"role\":\"robot\",\"content\":\"\"}]}",
           "messages[0].role: found \"robot\", expected \"user\" or \"assistant\"");
    refuse("{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
           "\"text\":\"\"},{\"type\":\"image\",\"source\":{}}]}]}",
           "messages[0].content[1]: images are not supported");
    refuse(
        "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"x\",\"content\":[{\"type\":\"image\"}]}]}]}",
        "messages[0].content[0].content[0]: images are not supported");
    refuse("{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":7}]}",
           "messages[0].content: found 7, expected a string or an array of content blocks");
    refuse(TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"web_search\"}}",
           "tool_choice.name: found \"web_search\", expected the name of one of the tools");
    refuse(TOOLS ",\"tool_choice\":{\"type\":\"all\"}}",
           "tool_choice.type: found \"all\", expected \"auto\", \"any\", \"tool\" or \"none\"");
}

static void say(gn_anthropic_stream *stream, const gn_chat_delta *delta, gn_buf *out)
{
    const gn_chat_usage usage = {.n_prompt = 10, .n_cached = 4, .n_generated = 6, .n_reasoning = 2};
    assert_int_equal(gn_anthropic_event(stream, delta, &usage, out), GN_OK);
}

#define TEXT(kind, s)                                                                              \
    &(gn_chat_delta)                                                                               \
    {                                                                                              \
        .type = (kind), .text = (s), .len = sizeof(s) - 1                                          \
    }

#define USAGE                                                                                      \
    "\"usage\":{\"input_tokens\":6,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":" \
    "4,"                                                                                           \
    "\"output_tokens\":6,\"output_tokens_details\":{\"thinking_tokens\":2}}"

static void test_stream(void **state)
{
    (void)state;
    gn_anthropic_stream stream = {.id = "msg_1", .model = "m"};
    gn_buf out = {0};
    say(&stream, &(gn_chat_delta){.type = GN_CHAT_PING}, &out);
    say(&stream, &(gn_chat_delta){.type = GN_CHAT_START}, &out);
    say(&stream, TEXT(GN_CHAT_REASONING, "hm"), &out);
    say(&stream, TEXT(GN_CHAT_TEXT, ""), &out);
    say(&stream, TEXT(GN_CHAT_TEXT, "Hi\n"), &out);
    say(&stream, TEXT(GN_CHAT_TEXT, "you"), &out);
    say(&stream, &(gn_chat_delta){.type = GN_CHAT_CALL, .id = "call_1", .name = "f"}, &out);
    say(&stream, TEXT(GN_CHAT_ARGUMENTS, "{\"a\":"), &out);
    say(&stream, &(gn_chat_delta){.type = GN_CHAT_CALL, .id = "call_2", .name = "g"}, &out);
    say(&stream, &(gn_chat_delta){.type = GN_CHAT_FINISH, .finish = GN_FINISH_STOP, .called = true},
        &out);
    assert_string_equal(
        out.data,
        "event: ping\ndata: {\"type\":\"ping\"}\n\n"
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\","
        "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"
        "\"stop_reason\":null,\"stop_sequence\":null," USAGE "}}\n\n"
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"
        "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
        "\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n"
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
        "\"type\":\"signature_delta\",\"signature\":\"unsigned\"}}\n\n"
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,"
        "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{"
        "\"type\":\"text_delta\",\"text\":\"Hi\\n\"}}\n\n"
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{"
        "\"type\":\"text_delta\",\"text\":\"you\"}}\n\n"
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n"
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,"
        "\"content_block\":{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"f\",\"input\":{}}}"
        "\n\n"
        "event: content_block_delta\ndata: "
        "{\"type\":\"content_block_delta\",\"index\":2,\"delta\":{"
        "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n"
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n"
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3,"
        "\"content_block\":{\"type\":\"tool_use\",\"id\":\"call_2\",\"name\":\"g\",\"input\":{}}}"
        "\n\n"
        "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n"
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
        "\"tool_use\",\"stop_sequence\":null}," USAGE "}\n\n"
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    gn_buf_fini(&out);
}

static void test_whole(void **state)
{
    (void)state;
    gn_parts parts = {0};
    const gn_chat_delta deltas[] = {
        {.type = GN_CHAT_START},
        {.type = GN_CHAT_REASONING, .text = "hm", .len = 2},
        {.type = GN_CHAT_TEXT, .text = "Hi", .len = 2},
        {.type = GN_CHAT_TEXT, .text = " you", .len = 4},
        {.type = GN_CHAT_CALL, .id = "call_1", .name = "f"},
        {.type = GN_CHAT_ARGUMENTS, .text = "{\"a\":\n", .len = 6},
        {.type = GN_CHAT_ARGUMENTS, .text = "[1, 2]}", .len = 7},
        {.type = GN_CHAT_CALL, .id = "call_2", .name = "g"},
        {.type = GN_CHAT_ARGUMENTS, .text = "{\"cut", .len = 5},
        {.type = GN_CHAT_FINISH, .finish = GN_FINISH_STOP, .stop_text = "END"}};
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        assert_int_equal(gn_parts_add(&parts, &deltas[i], NULL), GN_OK);
    }
    const gn_chat_usage usage = {.n_prompt = 10, .n_cached = 4, .n_generated = 6, .n_reasoning = 2};
    const gn_anthropic_stream stream = {.id = "msg_1", .model = "m"};
    gn_buf out = {0};
    assert_int_equal(gn_anthropic_message(&stream, &parts, &usage, &out), GN_OK);
    assert_string_equal(
        out.data,
        "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":"
        "["
        "{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"unsigned\"},"
        "{\"type\":\"text\",\"text\":\"Hi you\"},"
        "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"f\",\"input\":{\"a\":[1,2]}},"
        "{\"type\":\"tool_use\",\"id\":\"call_2\",\"name\":\"g\",\"input\":{}}],"
        "\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"END\"," USAGE "}");
    gn_buf_fini(&out);
    gn_parts_fini(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_tools),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_system),
        cmocka_unit_test(test_stream),   cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
