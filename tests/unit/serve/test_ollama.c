/* Ollama's API without a server: what requests become, and the lines that scripted deltas become. */
#include "serve/ollama.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef gn_status (*reader)(gn_arena *arena, const gn_json *body, gn_ollama_ask *ask);

static gn_ollama_ask read(gn_arena *arena, reader how, const char *text, gn_status expected)
{
    const gn_json *body = NULL;
    gn_ollama_ask ask = {.options.request = gn_request_defaults()};
    assert_int_equal(gn_base_json_parse(arena, text, strlen(text), &body, NULL), GN_OK);
    const gn_status status = how(arena, body, &ask);
    if (status != expected) {
        fail_msg("%s", gn_error_message());
    }
    return ask;
}

static void refuse(reader how, const char *text, const char *message)
{
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_ollama_ask ask = read(&arena, how, text, GN_E_ARG);
    assert_string_equal(gn_error_message(), message);
    gn_ollama_ask_fini(&ask);
    gn_arena_fini(&arena);
}

static void expect_json(json_t *value, const char *expected)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
}

static void test_chat(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_ollama_ask ask =
        read(&arena, gn_ollama_read_chat,
             "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},"
             "{\"role\":\"user\",\"content\":\"List\",\"images\":[]},"
             "{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\",\"tool_calls\":[{"
             "\"function\":{\"index\":0,\"name\":\"ls\",\"arguments\":{\"a\": 1}}}]},"
             "{\"role\":\"tool\",\"tool_name\":\"ls\",\"content\":\"a.c\"}],"
             "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"ls\",\"parameters\":{}}}],"
             "\"format\":{\"type\":\"object\"},\"think\":\"low\",\"keep_alive\":\"5m\","
             "\"logprobs\":true,"
             "\"top_logprobs\":3,\"options\":{\"num_ctx\":2048,\"num_predict\":5,\"temperature\":0,"
             "\"stop\":[\"END\"],\"top_p\":0,\"seed\":7,\"num_gpu\":1,\"repeat_penalty\":1.1,\"min_"
             "p\":0.1}}",
             GN_OK);
    expect_json(ask.messages,
                "[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                "{\"role\":\"user\",\"content\":\"List\"},"
                "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\","
                "\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"ls\","
                "\"arguments\":\"{\\\"a\\\":1}\"}}]},"
                "{\"role\":\"tool\",\"content\":\"a.c\",\"name\":\"ls\"}]");
    expect_json(ask.tools,
                "[{\"type\":\"function\",\"function\":{\"name\":\"ls\",\"parameters\":{}}}]");
    assert_true(ask.stream && ask.logprobs && !ask.load_only);
    assert_int_equal(ask.options.tool_mode, GN_TOOLS_AUTO);
    assert_int_equal(ask.options.format, GN_FORMAT_SCHEMA);
    assert_string_equal(ask.options.template_kwargs->raw,
                        "{\"enable_thinking\":true,\"reasoning_effort\":\"low\"}");
    const gn_request_options *request = &ask.options.request;
    assert_int_equal(request->n_ctx, 2048);
    assert_int_equal(request->max_tokens, 5);
    assert_int_equal(request->n_top, 3);
    assert_int_equal(request->n_stop, 1);
    assert_int_equal(request->sample.seed, 7);
    assert_int_equal(request->sample.top_k, 40);
    assert_true(request->sample.top_p > 0 && request->sample.top_p < 0.001F);
    gn_ollama_ask_fini(&ask);
    ask = read(&arena, gn_ollama_read_chat, "{\"model\":\"m\",\"keep_alive\":0}", GN_OK);
    assert_true(ask.load_only);
    gn_ollama_ask_fini(&ask);
    ask = read(&arena, gn_ollama_read_chat,
               "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
               "\"content\":\"So\"}],\"stream\":false,\"think\":false,\"options\":{\"seed\":-1}}",
               GN_OK);
    assert_true(ask.options.continue_last && !ask.stream);
    assert_string_equal(ask.options.template_kwargs->raw, "{\"enable_thinking\":false}");
    gn_ollama_ask_fini(&ask);
    gn_arena_fini(&arena);
}

static void test_generate(void **state)
{
    (void)state;
    gn_arena arena;
    gn_arena_init(&arena, 0);
    gn_ollama_ask ask =
        read(&arena, gn_ollama_read_generate,
             "{\"prompt\":\"Hi\",\"system\":\"Be brief.\",\"format\":\"json\"}", GN_OK);
    expect_json(ask.messages, "[{\"role\":\"system\",\"content\":\"Be brief.\"},"
                              "{\"role\":\"user\",\"content\":\"Hi\"}]");
    assert_string_equal(ask.options.prompt, "Be brief.\n\nHi");
    assert_int_equal(ask.options.prompt_len, 13);
    assert_int_equal(ask.options.format, GN_FORMAT_JSON);
    gn_ollama_ask_fini(&ask);
    ask =
        read(&arena, gn_ollama_read_generate,
             "{\"prompt\":\"a\",\"suffix\":\"b\",\"context\":[],\"template\":\"\",\"format\":\"\"}",
             GN_OK);
    assert_true(gn_base_json_is(ask.suffix, "b"));
    gn_ollama_ask_fini(&ask);
    ask = read(&arena, gn_ollama_read_generate,
               "{\"prompt\":\"a\",\"suffix\":\"\",\"raw\":true,\"system\":\"s\"}", GN_OK);
    assert_true(ask.raw && ask.suffix == NULL);
    assert_string_equal(ask.options.prompt, "a");
    gn_ollama_ask_fini(&ask);
    ask = read(&arena, gn_ollama_read_generate, "{\"model\":\"m\",\"prompt\":\"\"}", GN_OK);
    assert_true(ask.load_only);
    gn_ollama_ask_fini(&ask);
    gn_arena_fini(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse(gn_ollama_read_chat, "{\"messages\":[{\"role\":\"robot\"}]}",
           "messages[0].role: found \"robot\", expected \"system\", \"user\", \"assistant\" or "
           "\"tool\"");
    refuse(gn_ollama_read_chat,
           "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"images\":[\"aa\"]}]}",
           "messages[0].images: images are not supported");
    refuse(gn_ollama_read_chat, "{\"format\":\"xml\"}",
           "format: found \"xml\", expected \"json\" or a JSON Schema");
    refuse(gn_ollama_read_chat, "{\"think\":1}",
           "think: found 1, expected true, false, \"low\", \"medium\" or \"high\"");
    refuse(gn_ollama_read_chat, "{\"keep_alive\":[]}",
           "keep_alive: found an array, expected a number of seconds or a duration");
    refuse(gn_ollama_read_chat, "{\"options\":{\"num_ctx\":\"big\"}}",
           "options.num_ctx: found \"big\", expected a whole number from 0 to 2147483647");
    refuse(gn_ollama_read_chat, "{\"options\":{\"mirostat\":1}}",
           "options.mirostat: found 1, expected 0 (off) or 2");
    refuse(gn_ollama_read_chat, "{\"tools\":[{\"type\":\"function\"}]}",
           "tools[0].function: not there, expected an object");
    refuse(gn_ollama_read_chat, "{\"tool_choice\":\"required\"}",
           "tool_choice: a tool is asked for, but tools has none");
    refuse(gn_ollama_read_chat,
           "{\"tools\":[{\"function\":{\"name\":\"f\"}}],\"tool_choice\":\"any\"}",
           "tool_choice: found \"any\", expected \"none\", \"auto\", \"required\" or a function");
    refuse(gn_ollama_read_chat,
           "{\"tools\":[{\"function\":{\"name\":\"f\"}}],\"tool_choice\":{\"function\":{\"name\":"
           "\"g\"}}}",
           "tool_choice.function.name: found \"g\", expected the name of one of the tools");
    refuse(gn_ollama_read_generate, "{\"prompt\":\"a\",\"template\":\"{{ .Prompt }}\"}",
           "template: templates of requests are not supported; use raw");
    refuse(gn_ollama_read_generate, "{\"prompt\":\"a\",\"context\":[1]}",
           "context: not supported; send the messages to /api/chat");
}

#define DELTA(kind, s)                                                                             \
    {                                                                                              \
        .type = (kind), .text = (s), .len = sizeof(s) - 1                                          \
    }

static const gn_chat_usage USAGE = {
    .n_prompt = 10, .n_generated = 6, .prompt_ms = 2, .generate_ms = 3, .total_ms = 7};

#define HEAD "{\"model\":\"m\",\"created_at\":\"T\","
#define END                                                                                        \
    "\"total_duration\":7000001,\"load_duration\":1,\"prompt_eval_count\":10,"                     \
    "\"prompt_eval_duration\":2000000,\"eval_count\":6,\"eval_duration\":3000000"
#define CALL(index, name, arguments)                                                               \
    "{\"id\":\"" name "_id\",\"function\":{\"index\":" index ",\"name\":\"" name                   \
    "\",\"arguments\":" arguments "}}"

#define SAID(more, text)                                                                           \
    HEAD "\"message\":{\"role\":\"assistant\",\"content\":\"" text "\"" more "},"
#define LINE(more, text) SAID(more, text) "\"done\":false}\n"
#define CALLS(calls)     ",\"tool_calls\":[" calls "]"
#define LAST_LINE        SAID("", "") "\"done\":true,\"done_reason\":\"length\"," END "}\n"

static const gn_chat_delta DELTAS[] = {
    {.type = GN_CHAT_START},
    DELTA(GN_CHAT_REASONING, "hm"),
    DELTA(GN_CHAT_TEXT, "Hi"),
    {.type = GN_CHAT_PING},
    {.type = GN_CHAT_CALL, .id = "f_id", .name = "f"},
    DELTA(GN_CHAT_ARGUMENTS, "{\"a\":"),
    DELTA(GN_CHAT_ARGUMENTS, " 1}"),
    {.type = GN_CHAT_CALL, .id = "g_id", .name = "g"},
    DELTA(GN_CHAT_ARGUMENTS, "{\"cut"),
    {.type = GN_CHAT_FINISH, .finish = GN_FINISH_LENGTH, .called = true},
};

static void test_lines(void **state)
{
    (void)state;
    gn_ollama_stream stream = {.model = "m", .created = "T", .load_ns = 1};
    gn_buf out = {0};
    for (size_t i = 0; i < GN_COUNTOF(DELTAS); i++) {
        assert_int_equal(gn_ollama_line(&stream, &DELTAS[i], &USAGE, "", &out), GN_OK);
    }
    assert_string_equal(out.data, LINE(",\"thinking\":\"hm\"", "") LINE("", "Hi") LINE("", "")
                                      LINE(CALLS(CALL("0", "f", "{\"a\":1}")), "")
                                          LINE(CALLS(CALL("1", "g", "{}")), "") LAST_LINE);
    gn_buf_fini(&out);
    gn_ollama_stream_fini(&stream);
}

static void test_whole(void **state)
{
    (void)state;
    gn_parts parts = {0};
    for (size_t i = 0; i < GN_COUNTOF(DELTAS); i++) {
        assert_int_equal(gn_parts_add(&parts, &DELTAS[i], NULL), GN_OK);
    }
    const gn_ollama_stream stream = {.model = "m", .created = "T", .load_ns = 1, .generate = true};
    gn_buf out = {0};
    assert_int_equal(gn_ollama_whole(&stream, &parts, &USAGE, &out), GN_OK);
    assert_string_equal(
        out.data,
        HEAD "\"response\":\"Hi\",\"thinking\":\"hm\"" CALLS(CALL("0", "f", "{\"a\":1}") "," CALL(
            "1", "g", "{}")) ",\"done\":true,\"done_reason\":\"length\"," END "}");
    gn_buf_fini(&out);
    gn_parts_fini(&parts);
}

/* With log-probabilities a line has the text of one token and its entry. */
static void test_logprobs(void **state)
{
    (void)state;
    gn_ollama_stream stream = {.model = "m", .created = "T", .generate = true, .logprobs = true};
    const gn_chat_delta text = DELTA(GN_CHAT_TEXT, "Hi");
    const gn_chat_delta logprob = {.type = GN_CHAT_LOGPROB};
    gn_buf out = {0};
    assert_int_equal(gn_ollama_line(&stream, &text, &USAGE, "", &out), GN_OK);
    assert_int_equal(gn_ollama_line(&stream, &logprob, &USAGE, "{\"token\":\"Hi\"}", &out), GN_OK);
    assert_int_equal(gn_ollama_line(&stream, &logprob, &USAGE, "{\"token\":\"\"}", &out), GN_OK);
    assert_string_equal(
        out.data,
        HEAD "\"response\":\"Hi\",\"done\":false,\"logprobs\":[{\"token\":\"Hi\"}]}\n" HEAD
             "\"response\":\"\",\"done\":false,\"logprobs\":[{\"token\":\"\"}]}\n");
    gn_buf_fini(&out);
    gn_ollama_stream_fini(&stream);
}

static void test_time(void **state)
{
    (void)state;
    char text[40];
    gn_ollama_time(1767225599, 5, text);
    assert_string_equal(text, "2025-12-31T23:59:59.000000005Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),     cmocka_unit_test(test_generate),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_whole),    cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
