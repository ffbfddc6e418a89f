"""Tool calls through the server: whatever the temperature, calls are of the tools that may be called, with arguments that
fulfil their schema; streamed and whole they are the same; histories are taken as they come."""
import json
import os

import jsonschema
import pytest

from served import Served, model_file

MODEL = model_file("qwen2.5-coder-0.5b" if os.environ.get("GANGLION_TEST_FULL") == "1" else "smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="tools/fetch_models")

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city now.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"], "additionalProperties": False}}},
    {"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "parameters": {
        "type": "object", "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n"}},
        "required": ["a", "b"], "additionalProperties": False, "$defs": {"n": {"type": "integer", "maximum": 9999}}}}},
]
SCHEMAS = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
ASK = [{"role": "user", "content": "What is the weather in Paris, and what is 2 + 3?"}]


@pytest.fixture(scope="module")
def server():
    with Served("-m", MODEL) as s:
        yield s


def ask(server, **more):
    status, answer = server.post("/v1/chat/completions",
                                 {"messages": ASK, "tools": TOOLS, "max_tokens": 96, **more})
    assert status == 200, answer
    return answer["choices"][0]


def check(choice, names):
    calls = choice["message"].get("tool_calls", [])
    for call in calls:
        assert call["type"] == "function" and call["id"].startswith("call_")
        assert call["function"]["name"] in names
        jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[call["function"]["name"]])
    assert len({c["id"] for c in calls}) == len(calls)
    assert choice["finish_reason"] in (("tool_calls", "length") if calls else ("stop", "length"))
    return calls


@pytest.mark.parametrize("temperature", [0, 1, 2])
def test_choices_are_obeyed(server, temperature):
    for seed in range(2):
        common = {"temperature": temperature, "seed": seed}
        for name in SCHEMAS:
            named = {"type": "function", "function": {"name": name}}
            calls = check(ask(server, tool_choice=named, parallel_tool_calls=False, **common), [name])
            assert len(calls) == 1
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [
            {"type": "function", "function": {"name": "add"}}]}}
        assert check(ask(server, tool_choice=allowed, parallel_tool_calls=False, **common), ["add"])
        assert check(ask(server, tool_choice="required", parallel_tool_calls=False, **common), list(SCHEMAS))
        assert not check(ask(server, tool_choice="none", **common), [])
        check(ask(server, **common), list(SCHEMAS))


def test_streamed_calls_are_the_same(server):
    body = {"tool_choice": "required", "temperature": 1, "seed": 11}
    whole = ask(server, **body)["message"]["tool_calls"]
    events = server.events("/v1/chat/completions",
                           {"messages": ASK, "tools": TOOLS, "max_tokens": 160, "stream": True, **body})
    calls = []
    for event in events[:-1]:
        for delta in event["choices"][0]["delta"].get("tool_calls", []):
            if delta["index"] == len(calls):
                assert delta["id"] and delta["type"] == "function" and delta["function"]["arguments"] == ""
                calls.append({"name": delta["function"]["name"], "arguments": ""})
            else:
                assert set(delta) == {"index", "function"} and delta["index"] == len(calls) - 1
                calls[-1]["arguments"] += delta["function"]["arguments"]
    assert calls == [c["function"] for c in whole]


def test_legacy_functions(server):
    status, answer = server.post("/v1/chat/completions", {
        "messages": ASK, "functions": [t["function"] for t in TOOLS], "function_call": {"name": "add"},
        "max_tokens": 160})
    call = answer["choices"][0]["message"]["function_call"]
    assert status == 200 and call["name"] == "add"
    jsonschema.validate(json.loads(call["arguments"]), SCHEMAS["add"])
    assert answer["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.parametrize("history", [
    [{"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}]},
     {"role": "tool", "tool_call_id": "1", "content": "3"}],
    [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": "{broken"}}]},
     {"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "3"}]}],
    [{"role": "assistant", "content": "x", "tool_calls": [{}, {"function": 7}, {"id": 5, "function": {"name": 1}}]}],
    [{"role": "tool", "content": "an answer to nothing"}],
    [{"role": "function", "name": "add", "content": "3"}],
])
def test_histories_are_taken(server, history):
    check(ask(server, messages=ASK + history + ASK, max_tokens=8), list(SCHEMAS))


def test_refusals(server):
    def refused(**more):
        status, answer = server.post("/v1/chat/completions", {"messages": ASK, "max_tokens": 8, **more})
        assert status == 400, answer
        return answer["error"]["param"]
    assert refused(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "nothing"}}) == \
        "tool_choice.function.name"
    assert refused(tool_choice="required") == "tool_choice"
    bad = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
        "a": {"type": "thing"}}}}}]
    assert refused(tools=bad) == "tools"
    assert refused(tools=TOOLS, response_format={"type": "json_object"}) == "response_format"
