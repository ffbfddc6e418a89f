/* The Responses API without a server: what a request becomes, and the events that scripted deltas become. */
#include "serve/responses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const gn_json *parse(gn_arena *arena, const char *text)
{
    const gn_json *body = NULL;
    assert_int_equal(gn_base_json_parse(arena, text, strlen(text), &body, NULL), GN_OK);
    return body;
}

static gn_responses_ask read(gn_arena *arena, const char *text)
{
    gn_responses_ask ask = {0};
    if (gn_responses_read(arena, parse(arena, text), &ask) != GN_OK) {
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
    gn_responses_ask ask = {0};
    assert_int_equal(gn_responses_read(&arena, parse(&arena, text), &ask), GN_E_ARG);
    assert_string_equal(gn_error_message(), message);
    assert_memory_equal(gn_error_message(), ask.names.param, strlen(ask.names.param));
    gn_responses_ask_fini(&ask);
    gn_arena_fini(&arena);
}

/* Items of a turn come one by one, as an agent sends its history. */
static void test_input(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_responses_ask ask = read(
        &arena,
        "{\"model\":\"m\",\"instructions\":\"Be brief.\",\"stream\":true,\"store\":false,"
        "\"max_output_tokens\":9,\"temperature\":0.5,\"client_metadata\":{\"a\":\"b\"},"
        "\"include\":[\"reasoning.encrypted_content\",\"message.output_text.logprobs\"],"
        "\"top_logprobs\":2,\"reasoning\":{\"effort\":\"low\",\"summary\":\"auto\"},\"input\":["
        "{\"type\":\"message\",\"role\":\"developer\",\"content\":[{\"type\":\"input_text\","
        "\"text\":\"Rules\"}]},{\"role\":\"user\",\"content\":\"List\"},"
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":"
        "\"files\"}]},"
        "{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\","
        "\"text\":\"hm\"}],\"encrypted_content\":null},"
        "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"shell\",\"arguments\":"
        "\"{\\\"a\\\": 1}\"},"
        "{\"type\":\"custom_tool_call\",\"call_id\":\"c2\",\"name\":\"patch\",\"input\":\"x\\ny\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"ok\"},"
        "{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\",\"output\":[{\"type\":"
        "\"input_text\",\"text\":\"done\"}]},"
        "{\"type\":\"web_search_call\",\"id\":\"ws\",\"status\":\"completed\"},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\","
        "\"text\":\"There\",\"annotations\":[]}]},{\"role\":\"user\",\"content\":\"go\"}]}");
    expect_json(
        ask.messages,
        "[{\"role\":\"system\",\"content\":\"Be brief.\\nRules\"},"
        "{\"role\":\"user\",\"content\":\"List\\nfiles\"},"
        "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":["
        "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"shell\",\"arguments\":"
        "\"{\\\"a\\\": 1}\"}},{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":"
        "\"patch\",\"arguments\":\"{\\\"input\\\":\\\"x\\\\ny\\\"}\"}}]},"
        "{\"role\":\"tool\",\"content\":\"ok\",\"tool_call_id\":\"c1\"},"
        "{\"role\":\"tool\",\"content\":\"done\",\"tool_call_id\":\"c2\"},"
        "{\"role\":\"assistant\",\"content\":\"There\"},{\"role\":\"user\",\"content\":\"go\"}]");
    assert_true(ask.stream && ask.logprobs);
    assert_int_equal(ask.options.request.max_tokens, 9);
    assert_int_equal(ask.options.request.n_top, 2);
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_NONE);
    assert_string_equal(ask.options.template_kwargs->raw, "{\"reasoning_effort\":\"low\"}");
    gn_responses_ask_fini(&ask);
    ask = read(&arena, "{\"input\":\"Hi\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":"
                       "\"x\",\"schema\":{\"type\":\"object\"}},\"verbosity\":\"low\"}}");
    expect_json(ask.messages, "[{\"role\":\"user\",\"content\":\"Hi\"}]");
    assert_int_equal(ask.options.format, GN_FORMAT_SCHEMA);
    assert_memory_equal(ask.options.format_text, "{\"type\":\"object\"}", ask.options.format_len);
    gn_responses_ask_fini(&ask);
    gn_arena_fini(&arena);
}

#define TOOLS                                                                                      \
    "{\"input\":\"x\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"description\":\"d\","     \
    "\"strict\":true,\"parameters\":{\"type\":\"object\"}},{\"type\":\"web_search\"},"             \
    "{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[]},"                                        \
    "{\"type\":\"custom\",\"name\":\"patch\",\"format\":{\"type\":\"grammar\"}}]"

static void test_tools(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_responses_ask ask = read(&arena, TOOLS ",\"parallel_tool_calls\":false}");
    expect_json(ask.tools,
                "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\","
                "\"parameters\":{\"type\":\"object\"},\"strict\":true}},"
                "{\"type\":\"function\",\"function\":{\"name\":\"patch\",\"parameters\":{\"type\":"
                "\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":["
                "\"input\"],\"additionalProperties\":false},\"strict\":true}}]");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_AUTO);
    assert_false(ask.options.parallel_tool_calls);
    gn_responses_ask_fini(&ask);
    ask = read(&arena, TOOLS ",\"tool_choice\":{\"type\":\"function\",\"name\":\"f\"}}");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_REQUIRED);
    assert_string_equal(ask.options.allowed_tools->raw, "[\"f\"]");
    gn_responses_ask_fini(&ask);
    ask = read(&arena, TOOLS ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"auto\","
                             "\"tools\":[{\"type\":\"custom\",\"name\":\"patch\"}]}}");
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_AUTO);
    assert_string_equal(ask.options.allowed_tools->raw, "[\"patch\"]");
    gn_responses_ask_fini(&ask);
    gn_arena_fini(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("{}", "input: not there, expected a string or an array of items");
    refuse("{\"input\":[]}", "input: found no message, expected at least one");
    refuse("{\"input\":[{\"role\":\"robot\",\"content\":\"\"}]}",
           "input[0].role: found \"robot\", expected \"user\", \"assistant\", \"system\" or "
           "\"developer\"");
    refuse("{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}]}",
           "input[0].content[0]: images are not supported");
    refuse("{\"input\":\"x\",\"previous_response_id\":\"resp_1\"}",
           "previous_response_id: nothing is stored here; send the whole input");
    refuse("{\"input\":\"x\",\"background\":true}",
           "background: nothing is stored here; wait for the answer or stream it");
    refuse("{\"input\":\"x\",\"max_output_tokens\":\"9\"}",
           "max_output_tokens: found \"9\", expected a whole number from 1 to 2147483647");
    refuse("{\"input\":\"x\",\"tool_choice\":\"required\"}",
           "tool_choice: a tool is asked for, but tools has no function");
    refuse(TOOLS ",\"tool_choice\":{\"type\":\"function\",\"name\":\"g\"}}",
           "tool_choice.name: found \"g\", expected the name of one of the tools");
    refuse(TOOLS ",\"tool_choice\":{\"type\":\"web_search\"}}",
           "tool_choice.type: found \"web_search\", expected \"function\", \"custom\" or "
           "\"allowed_tools\"");
}

/* --- events --- */

#define DELTA(kind, s)                                                                             \
    {                                                                                              \
        .type = (kind), .text = (s), .len = sizeof(s) - 1                                          \
    }

/* All events of a stream as lines "TYPE" or "TYPE what"; the numbers of the events are checked. */
static char *summary(const gn_buf *out)
{
    gn_buf lines = {0};
    json_int_t n = 0;
    for (const char *at = out->data; at != NULL && *at != '\0';) {
        const char *end = strstr(at, "\n\n");
        assert_non_null(end);
        const char *data = strstr(at, "\ndata: ");
        if (data != NULL && data < end) {
            json_t *event = json_loadb(data + 7, (size_t)(end - data - 7), 0, NULL);
            assert_non_null(event);
            assert_int_equal(json_integer_value(json_object_get(event, "sequence_number")), n++);
            const char *type = json_string_value(json_object_get(event, "type"));
            assert_memory_equal(at + 7, type, strlen(type));
            const json_t *item = json_object_get(event, "item");
            const char *what = json_string_value(json_object_get(event, "delta"));
            what = item != NULL ? json_string_value(json_object_get(item, "type")) : what;
            assert_int_equal(gn_buf_printf(&lines, "%s%s%s\n", type + (type[0] == 'r' ? 9 : 0),
                                           what != NULL ? " " : "", what != NULL ? what : ""),
                             GN_OK);
            json_decref(event);
        }
        at = end + 2;
    }
    return gn_buf_take(&lines);
}

static const gn_chat_usage USAGE = {
    .n_prompt = 10, .n_cached = 4, .n_generated = 6, .n_reasoning = 2};

static json_t *last_response(const gn_buf *out)
{
    const char *data = NULL;
    for (const char *at = out->data; (at = strstr(at, "\ndata: ")) != NULL; at += 7) {
        data = at + 7;
    }
    json_t *event = json_loads(data, JSON_DISABLE_EOF_CHECK, NULL);
    json_t *response = json_incref(json_object_get(event, "response"));
    json_decref(event);
    return response;
}

static void test_stream(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_responses_stream stream = {.key = "k", .model = "m", .body = parse(&arena, TOOLS "}")};
    const gn_chat_delta deltas[] = {
        {.type = GN_CHAT_START},
        DELTA(GN_CHAT_REASONING, "hm"),
        {.type = GN_CHAT_PING},
        DELTA(GN_CHAT_TEXT, "Hi"),
        DELTA(GN_CHAT_TEXT, " you"),
        {.type = GN_CHAT_CALL, .id = "call_1", .name = "f"},
        DELTA(GN_CHAT_ARGUMENTS, "{\"a\":"),
        DELTA(GN_CHAT_ARGUMENTS, "1}"),
        {.type = GN_CHAT_CALL, .id = "call_2", .name = "patch"},
        DELTA(GN_CHAT_ARGUMENTS, "{\"input\":\"x"),
        DELTA(GN_CHAT_ARGUMENTS, "\\ny\"}"),
        {.type = GN_CHAT_FINISH, .finish = GN_FINISH_STOP, .called = true},
    };
    gn_buf out = {0};
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        assert_int_equal(gn_responses_event(&stream, &deltas[i], &USAGE, "", &out), GN_OK);
    }
    char *lines = summary(&out);
    assert_string_equal(lines,
                        "created\nin_progress\n"
                        "output_item.added reasoning\ncontent_part.added\nreasoning_text.delta hm\n"
                        "reasoning_text.done\ncontent_part.done\noutput_item.done reasoning\n"
                        "output_item.added message\ncontent_part.added\noutput_text.delta Hi\n"
                        "output_text.delta  you\noutput_text.done\ncontent_part.done\n"
                        "output_item.done message\n"
                        "output_item.added function_call\nfunction_call_arguments.delta {\"a\":\n"
                        "function_call_arguments.delta 1}\nfunction_call_arguments.done\n"
                        "output_item.done function_call\n"
                        "output_item.added custom_tool_call\ncustom_tool_call_input.delta x\ny\n"
                        "custom_tool_call_input.done\noutput_item.done custom_tool_call\n"
                        "completed\n");
    gn_release(lines);
    json_t *response = last_response(&out);
    expect_json(
        json_object_get(response, "output"),
        "[{\"id\":\"rs_k_0\",\"type\":\"reasoning\",\"summary\":[],\"content\":[{\"type\":"
        "\"reasoning_text\",\"text\":\"hm\"}]},"
        "{\"id\":\"msg_k_1\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","
        "\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":"
        "\"Hi you\"}]},"
        "{\"id\":\"fc_k_2\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":"
        "\"call_1\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"},"
        "{\"id\":\"ctc_k_3\",\"type\":\"custom_tool_call\",\"call_id\":\"call_2\",\"name\":"
        "\"patch\",\"input\":\"x\\ny\"}]");
    expect_json(json_object_get(response, "usage"),
                "{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4,"
                "\"cache_write_tokens\":0},\"output_tokens\":6,\"output_tokens_details\":{"
                "\"reasoning_tokens\":2},\"total_tokens\":16}");
    json_decref(response);
    gn_buf_fini(&out);
    gn_responses_stream_fini(&stream);
    gn_arena_fini(&arena);
}

/* Text waits for its log-probability; an answer cut at the limit is incomplete. */
static void test_logprobs(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_responses_stream stream = {
        .key = "k", .model = "m", .body = parse(&arena, "{}"), .logprobs = true};
    const gn_chat_delta deltas[] = {
        {.type = GN_CHAT_START},   DELTA(GN_CHAT_TEXT, "Hi"),
        {.type = GN_CHAT_LOGPROB}, DELTA(GN_CHAT_TEXT, " you"),
        DELTA(GN_CHAT_TEXT, "!"),  {.type = GN_CHAT_LOGPROB},
        {.type = GN_CHAT_LOGPROB}, {.type = GN_CHAT_FINISH, .finish = GN_FINISH_LENGTH},
    };
    gn_buf out = {0};
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        const char *logprob = deltas[i].type == GN_CHAT_LOGPROB ? "{\"token\":\"t\"}" : "";
        assert_int_equal(gn_responses_event(&stream, &deltas[i], &USAGE, logprob, &out), GN_OK);
    }
    char *lines = summary(&out);
    assert_string_equal(lines,
                        "created\nin_progress\noutput_item.added message\ncontent_part.added\n"
                        "output_text.delta Hi\noutput_text.delta  you\noutput_text.delta !\n"
                        "output_text.delta \noutput_text.done\ncontent_part.done\n"
                        "output_item.done message\nincomplete\n");
    gn_release(lines);
    json_t *response = last_response(&out);
    expect_json(json_object_get(response, "incomplete_details"),
                "{\"reason\":\"max_output_tokens\"}");
    expect_json(json_object_get(response, "output"),
                "[{\"id\":\"msg_k_0\",\"type\":\"message\",\"status\":\"incomplete\",\"role\":"
                "\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],"
                "\"logprobs\":[{\"token\":\"t\"},{\"token\":\"t\"},{\"token\":\"t\"}],\"text\":"
                "\"Hi you!\"}]}]");
    json_decref(response);
    gn_buf_fini(&out);
    gn_responses_stream_fini(&stream);
    gn_arena_fini(&arena);
}

static void test_failure(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_responses_stream stream = {.key = "k", .model = "m", .body = parse(&arena, "{}")};
    const gn_chat_delta failed = {.type = GN_CHAT_FAILED, .text = "no pages"};
    gn_buf out = {0};
    assert_int_equal(gn_responses_event(&stream, &failed, NULL, "", &out), GN_OK);
    json_t *response = last_response(&out);
    expect_json(json_object_get(response, "error"),
                "{\"code\":\"server_error\",\"message\":\"no pages\"}");
    expect_json(json_object_get(response, "status"), "\"failed\"");
    json_decref(response);
    gn_buf_fini(&out);
    gn_responses_stream_fini(&stream);
    gn_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input),    cmocka_unit_test(test_tools),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_stream),
        cmocka_unit_test(test_logprobs), cmocka_unit_test(test_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
