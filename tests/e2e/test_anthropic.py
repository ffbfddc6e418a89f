"""The Messages API, asked by its official client and by plain requests."""
import json

import pytest

from served import Served, model_file

anthropic = pytest.importorskip("anthropic")
MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="the model smollm2-135m is not there")
BASE = {"model": "smollm2-135m", "max_tokens": 12, "messages": [{"role": "user", "content": "Say hello."}]}
GREEDY = {**BASE, "extra_body": {"temperature": 0}}


@pytest.fixture(scope="module")
def server():
    with Served("-m", MODEL, "--cache", "off") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


def test_the_client_gets_a_message(server, client):
    message = client.messages.create(**GREEDY)
    assert message.id.startswith("msg_") and message.type == "message" and message.role == "assistant"
    assert message.content[0].type == "text" and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message.usage.output_tokens <= 12
    assert message._request_id


def test_a_stream_says_the_same_as_a_message(client):
    whole = client.messages.create(**GREEDY)
    with client.messages.stream(**GREEDY) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_events_come_in_order(server):
    events = server.events("/v1/messages", {**BASE, "stream": True})
    types = [e["type"] for e in events if e["type"] != "ping"]
    assert types[:2] == ["message_start", "content_block_start"]
    assert types[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(types[2:-3]) == {"content_block_delta"}


def test_tokens_are_counted_as_they_are_used(server, client):
    counted = client.messages.count_tokens(model="x", messages=BASE["messages"], system="Be brief.").input_tokens
    used = client.messages.create(**GREEDY, system="Be brief.").usage
    assert counted == used.input_tokens + (used.cache_read_input_tokens or 0)
    long = "word " * 20000
    assert client.messages.count_tokens(model="x", messages=[{"role": "user", "content": long}]).input_tokens > 20000


def test_stop_sequences_and_a_begun_answer(client):
    begun = client.messages.create(**{**GREEDY, "messages": BASE["messages"] + [
        {"role": "assistant", "content": "One, two, three,"}], "stop_sequences": ["five"], "max_tokens": 24})
    assert "four" in begun.content[0].text and "five" not in begun.content[0].text
    assert begun.stop_reason == "stop_sequence" and begun.stop_sequence == "five"


def test_output_under_a_schema(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
              "additionalProperties": False}
    message = client.messages.create(**BASE, extra_body={
        "temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": schema}}})
    assert set(json.loads(message.content[0].text)) == {"n"}


WEATHER = {"name": "get_weather", "description": "The weather of a city.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"],
    "additionalProperties": False}}


def test_a_tool_is_called_and_its_result_read(client):
    asked = {**GREEDY, "max_tokens": 80, "tools": [WEATHER], "messages": [
        {"role": "user", "content": "How is the weather in Paris?"}],
        "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}}
    message = client.messages.create(**asked)
    calls = [block for block in message.content if block.type == "tool_use"]
    assert len(calls) == 1 and message.stop_reason == "tool_use"
    assert calls[0].name == "get_weather" and set(calls[0].input) == {"city"} and calls[0].id
    with client.messages.stream(**asked) as stream:
        final = stream.get_final_message()
    assert [b.input for b in final.content if b.type == "tool_use"] == [calls[0].input]
    history = asked["messages"] + [
        {"role": "assistant", "content": [block.model_dump() for block in message.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": calls[0].id, "content": "Sunny."}]}]
    answer = client.messages.create(**{**asked, "messages": history, "tool_choice": {"type": "none"}})
    assert answer.content[0].type == "text"


def test_errors_have_the_form_of_the_api(server, client):
    with pytest.raises(anthropic.BadRequestError) as error:
        client.messages.create(**{**GREEDY, "messages": [{"role": "user", "content": "long " * 20000}]})
    assert error.value.body["error"]["type"] == "invalid_request_error"
    assert "maximum context length" in error.value.body["error"]["message"]
    status, body = server.post("/v1/messages", {"messages": []})
    assert (status, body["type"]) == (400, "error")
    assert body["error"]["message"].startswith("max_tokens: not there")


CLAUDE_CODE = {  # the form of what Claude Code sends
    "model": "claude-sonnet-4-5", "max_tokens": 16, "stream": True, "temperature": 1,
    "system": [{"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}},
               {"type": "text", "text": "Working directory: /src", "cache_control": {"type": "ephemeral"}}],
    "metadata": {"user_id": "user_0_account__session_1"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "Bash", "description": "Run a command.", "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}}, "required": ["command"],
        "additionalProperties": False}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"},
                                     {"type": "text", "text": "list files", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I list them.", "signature": "unsigned"},
            {"type": "text", "text": "Listing."},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.c\nb.c",
                                      "is_error": False, "cache_control": {"type": "ephemeral"}}]}]}


def test_an_agents_request_is_answered(server):
    headers = {"x-api-key": "none", "anthropic-version": "2023-06-01",
               "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
               "anthropic-dangerous-direct-browser-access": "true", "x-app": "cli"}
    events = server.events("/v1/messages?beta=true", CLAUDE_CODE, headers=headers)
    types = [e["type"] for e in events if e["type"] != "ping"]
    assert types[0] == "message_start" and types[-2:] == ["message_delta", "message_stop"]
    assert types.count("content_block_start") == types.count("content_block_stop")
    status, counted = server.post("/v1/messages/count_tokens?beta=true",
                                  {k: CLAUDE_CODE[k] for k in ("model", "messages", "system", "tools", "thinking")})
    assert status == 200 and counted["input_tokens"] > 20
