"""The Responses API, asked by its official client and as Codex asks it."""
import json

import pytest

from served import Served, model_file

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic")
MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="the model smollm2-135m is not there")
BASE = {"model": "smollm2-135m", "input": "Say hello.", "max_output_tokens": 12, "temperature": 0}


@pytest.fixture(scope="module")
def server():
    with Served("-m", MODEL, "--cache", "off") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_the_client_gets_a_response(client):
    response = client.responses.create(**BASE, instructions="Be brief.", metadata={"a": "b"})
    assert response.id.startswith("resp_") and response.object == "response"
    assert response.output_text
    assert response.status in ("completed", "incomplete")
    assert response.instructions == "Be brief." and response.metadata == {"a": "b"}
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_a_stream_says_the_same_as_a_response(client):
    more = {**BASE, "max_output_tokens": 200, "input": "Say only the word yes."}
    whole = client.responses.create(**more)
    assert whole.status == "completed"
    with client.responses.stream(**more) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == whole.output_text == final.output_text
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_an_answer_cut_at_the_limit_is_incomplete(server):
    events = server.events("/v1/responses", {**BASE, "max_output_tokens": 2, "stream": True})
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    types = [e["type"] for e in events]
    assert types[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"]
    assert types[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response.incomplete"]
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_parsed_output(client):
    class Answer(pydantic.BaseModel):
        n: int

    response = client.responses.parse(**{**BASE, "max_output_tokens": 40}, text_format=Answer)
    assert isinstance(response.output_parsed, Answer)


def test_log_probabilities(client):
    response = client.responses.create(**BASE, include=["message.output_text.logprobs"], top_logprobs=2)
    part = response.output[0].content[0]
    assert part.logprobs and all(len(entry.top_logprobs) == 2 for entry in part.logprobs)
    text = b"".join(bytes(entry.bytes) for entry in part.logprobs)
    assert text.decode().startswith(part.text)
    events = client.responses.create(**BASE, include=["message.output_text.logprobs"], top_logprobs=2, stream=True)
    streamed = [entry.logprob for e in events if e.type == "response.output_text.delta" for entry in e.logprobs]
    assert streamed == [entry.logprob for entry in part.logprobs]


def test_tokens_are_counted_as_they_are_used(client):
    counted = client.responses.input_tokens.count(model="x", input=BASE["input"]).input_tokens
    assert counted == client.responses.create(**BASE).usage.input_tokens


WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "strict": True,
           "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}},
                          "required": ["city"], "additionalProperties": False}}
NOTE = {"type": "custom", "name": "note", "description": "Writes a note."}


def test_a_function_is_called_and_its_result_read(client):
    asked = {**BASE, "max_output_tokens": 80, "tools": [WEATHER, NOTE], "parallel_tool_calls": False,
             "input": [{"role": "user", "content": "How is the weather in Paris?"}]}
    forced = {**asked, "tool_choice": {"type": "function", "name": "get_weather"}}
    response = client.responses.create(**forced)
    calls = [item for item in response.output if item.type == "function_call"]
    assert len(calls) == 1 and calls[0].name == "get_weather" and calls[0].call_id
    assert set(json.loads(calls[0].arguments)) == {"city"}
    with client.responses.stream(**forced) as stream:
        deltas = "".join(e.delta for e in stream if e.type == "response.function_call_arguments.delta")
        final = stream.get_final_response()
    assert deltas == calls[0].arguments == final.output[-1].arguments
    answer = client.responses.create(**{**asked, "tool_choice": "none", "input": asked["input"] + [
        item.model_dump(exclude_none=True) for item in response.output] + [
        {"type": "function_call_output", "call_id": calls[0].call_id, "output": "Sunny."}]})
    assert answer.output[0].type == "message"


def test_a_custom_tool_gets_text(server):
    events = server.events("/v1/responses", {
        **BASE, "max_output_tokens": 40, "stream": True, "tools": [WEATHER, NOTE], "parallel_tool_calls": False,
        "tool_choice": {"type": "custom", "name": "note"}})
    item = events[-1]["response"]["output"][-1]
    assert item["type"] == "custom_tool_call" and item["name"] == "note" and isinstance(item["input"], str)
    done = [e for e in events if e["type"] == "response.custom_tool_call_input.done"]
    assert [e["input"] for e in done] == [item["input"]]


def test_what_would_need_a_store_is_refused(client, server):
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(**BASE, previous_response_id="resp_1")
    assert error.value.param == "previous_response_id"
    status, body = server.post("/v1/responses", {"input": "long " * 20000})
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_1")


CODEX = {  # the form of what Codex sends
    "model": "gpt-5.2-codex", "instructions": "You are a coding agent.", "stream": True, "store": False,
    "parallel_tool_calls": False, "tool_choice": "auto", "prompt_cache_key": "0199-aa",
    "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "medium", "summary": "auto"},
    "text": {"verbosity": "medium"}, "client_metadata": {"originator": "codex_cli_rs"}, "max_output_tokens": 16,
    "tools": [{"type": "function", "name": "shell", "description": "Runs a command.", "strict": False,
               "parameters": {"type": "object", "properties": {
                   "command": {"type": "array", "items": {"type": "string"}},
                   "timeout_ms": {"type": "number"}}, "required": ["command"], "additionalProperties": False}},
              {"type": "custom", "name": "apply_patch", "description": "Edits files.",
               "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.*/"}},
              {"type": "web_search", "external_web_access": False},
              {"type": "local_shell"}],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list files"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "List."}], "content": None,
         "encrypted_content": "x"},
        {"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "a.c\nb.c"},
        {"type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch",
         "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Success."},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "thanks"}]}]}


def test_an_agents_request_is_answered(server):
    headers = {"originator": "codex_cli_rs", "session_id": "0199", "Accept": "text/event-stream",
               "Authorization": "Bearer none"}
    events = server.events("/v1/responses", CODEX, headers=headers)
    types = [e["type"] for e in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] in ("response.completed", "response.incomplete")
    assert types.count("response.output_item.added") == types.count("response.output_item.done")
    final = events[-1]["response"]
    assert final["usage"]["input_tokens"] > 0 and final["tools"] == CODEX["tools"]
