"""What agents and editors send to chat completions, in the form in which they send it: each is answered with status
200 and chunks in order. Claude Code, Codex and Continue's use of Ollama are in the tests of those APIs."""
import concurrent.futures
import json
import socket
import time

import pytest

from served import Served, model_file

MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="the model smollm2-135m is not there")


@pytest.fixture(scope="module")
def server():
    with Served("-m", MODEL, "--cache", "off") as running:
        yield running


def check_chunks(chunks, usage):
    assert chunks[-1] is None
    chunks = chunks[:-1]
    assert {c["object"] for c in chunks} == {"chat.completion.chunk"}
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    deltas = [choice["delta"] for c in chunks for choice in c["choices"]]
    assert [d["role"] for d in deltas if d.get("role")] == ["assistant"]
    reasons = [choice["finish_reason"] for c in chunks for choice in c["choices"] if choice["finish_reason"]]
    assert len(reasons) == 1
    assert (chunks[-1]["choices"] == [] and chunks[-1]["usage"]["prompt_tokens"] > 0) == usage


def test_cline(server):
    """Through @ai-sdk/openai-compatible: tools, parts of text, usage in the stream."""
    tool = {"type": "function", "function": {"name": "execute_command", "description": "Runs a command.",
                                             "strict": False, "parameters": {
                                                 "$schema": "http://json-schema.org/draft-07/schema#",
                                                 "type": "object", "additionalProperties": False,
                                                 "required": ["command", "requires_approval"],
                                                 "properties": {"command": {"type": "string"},
                                                                "requires_approval": {"type": "boolean"}}}}}
    body = {"model": "smollm2-135m", "temperature": 0, "max_tokens": 16, "stream": True,
            "stream_options": {"include_usage": True}, "tools": [tool], "tool_choice": "auto",
            "parallel_tool_calls": False,
            "messages": [{"role": "system", "content": "You are Cline."},
                         {"role": "user", "content": [{"type": "text", "text": "<task>list files</task>"},
                                                      {"type": "text", "text": "<environment_details/>"}]},
                         {"role": "assistant", "content": None, "tool_calls": [
                             {"id": "call_1", "type": "function", "function": {
                                 "name": "execute_command",
                                 "arguments": json.dumps({"command": "ls", "requires_approval": False})}}]},
                         {"role": "tool", "tool_call_id": "call_1", "content": "a.c"}]}
    headers = {"Authorization": "Bearer none", "HTTP-Referer": "https://cline.bot", "X-Title": "Cline",
               "User-Agent": "ai-sdk/openai-compatible"}
    check_chunks(server.events("/v1/chat/completions", body, headers=headers), usage=True)
    body["max_completion_tokens"] = body.pop("max_tokens")
    check_chunks(server.events("/v1/chat/completions", body, headers=headers), usage=True)


def test_aider(server):
    """Through litellm to openai/NAME, and to ollama_chat/NAME with another num_ctx each time."""
    messages = [{"role": "system", "content": "Act as an expert software developer."},
                {"role": "user", "content": "I have *added these files to the chat*."},
                {"role": "assistant", "content": "Ok."}, {"role": "user", "content": "rename f"}]
    headers = {"Authorization": "Bearer none", "X-Stainless-Lang": "python", "X-Stainless-Retry-Count": "0"}
    check_chunks(server.events("/v1/chat/completions", {
        "model": "smollm2-135m", "messages": messages, "temperature": 0, "stream": True, "max_tokens": 8,
        "extra_body": {}, "stream_options": {"include_usage": True}}, headers=headers), usage=True)
    function = {"name": "replace_lines", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    status, answer = server.post("/v1/chat/completions", {
        "model": "smollm2-135m", "messages": messages, "temperature": 0, "max_tokens": 8,
        "tools": [{"type": "function", "function": function}], "tool_choice": "none"})
    assert status == 200 and answer["choices"][0]["message"]["role"] == "assistant"
    for num_ctx in (8192 + 57, 8192 + 1390):
        status, _, body = server.ask("POST", "/api/chat", {
            "model": "smollm2-135m", "messages": messages, "stream": True,
            "options": {"temperature": 0, "num_ctx": num_ctx, "num_predict": 8}})
        assert status == 200 and json.loads(body.splitlines()[-1])["done"]


def test_continue(server):
    """Both kinds of key, stop strings, and what it sends for completions in the editor."""
    headers = {"Authorization": "Bearer none", "api-key": "none", "x-api-key": "none"}
    check_chunks(server.events("/v1/chat/completions", {
        "model": "smollm2-135m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "max_tokens": 8, "temperature": 0.5, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0,
        "stop": ["<|im_end|>"], "stream": True, "stream_options": {"include_usage": True}},
        headers=headers), usage=True)
    events = server.events("/v1/completions", {
        "model": "smollm2-135m", "prompt": "int main(", "max_tokens": 4, "temperature": 0.01, "stream": True,
        "stop": ["\n\n", "/src/"]}, headers=headers)
    assert events[-1] is None and events[0]["object"] == "text_completion"
    status, models = server.get("/v1/models", headers=headers)
    assert status == 200 and models["data"][0]["id"] and models["models"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/api/chat"])
def test_a_client_that_leaves_ends_its_request(server, path):
    say = [{"role": "user", "content": "Write a long story about a lighthouse."}]
    body = {"/v1/messages": {"messages": say, "max_tokens": 4000, "temperature": 0, "stream": True},
            "/v1/responses": {"input": say, "max_output_tokens": 4000, "temperature": 0, "stream": True},
            "/api/chat": {"messages": say, "options": {"num_predict": 4000, "temperature": 0}}}[path]

    def cancelled():
        _, _, text = server.ask("GET", "/metrics")
        return int(next(line.split()[1] for line in text.decode().splitlines()
                        if line.startswith("ganglion_requests_cancelled_total ")))

    before = cancelled()
    connection = server.connect()
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    assert connection.getresponse().read(200)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    end = time.monotonic() + 60
    while server.get("/slots")[1] and time.monotonic() < end:
        time.sleep(0.05)
    assert cancelled() == before + 1


def test_fields_that_nobody_knows_are_counted(server):
    def count():
        _, _, text = server.ask("GET", "/metrics")
        return int(next(line.split()[1] for line in text.decode().splitlines()
                        if line.startswith("ganglion_unknown_fields_total ")))

    say = [{"role": "user", "content": "hi"}]
    for path, body in (("/v1/messages", {"max_tokens": 1, "messages": say, "metadata": {"user_id": "x"}}),
                       ("/v1/responses", {"max_output_tokens": 1, "input": "hi", "store": False}),
                       ("/api/chat", {"messages": say, "stream": False, "options": {"num_predict": 1, "num_gpu": 1}})):
        before = count()
        assert server.post(path, body)[0] == 200
        assert count() == before, path
        assert server.post(path, {**body, "wobble": 1, "wabble": {}})[0] == 200
        assert count() == before + 2, path
    before = count()
    assert server.post("/api/chat", {"messages": say, "stream": False,
                                     "options": {"num_predict": 1, "wobble": 1}})[0] == 200
    assert count() == before + 1


def test_all_apis_say_the_same_together(server):
    """The same words through every API, asked at the same time, are answered as when asked alone."""
    say = [{"role": "user", "content": "Name a colour and say why you like it."}]
    asks = {
        "openai": ("/v1/chat/completions", {"messages": say, "max_tokens": 24, "temperature": 0},
                   lambda a: a["choices"][0]["message"]["content"]),
        "anthropic": ("/v1/messages", {"messages": say, "max_tokens": 24, "temperature": 0},
                      lambda a: a["content"][0]["text"]),
        "responses": ("/v1/responses", {"input": say, "max_output_tokens": 24, "temperature": 0},
                      lambda a: a["output"][0]["content"][0]["text"]),
        "ollama": ("/api/chat", {"messages": say, "stream": False, "options": {"num_predict": 24, "temperature": 0}},
                   lambda a: a["message"]["content"]),
        "generate": ("/api/generate", {"prompt": say[0]["content"], "stream": False,
                                       "options": {"num_predict": 24, "temperature": 0}}, lambda a: a["response"]),
    }
    alone = asks["openai"][2](server.post(*asks["openai"][:2])[1])
    with concurrent.futures.ThreadPoolExecutor(len(asks) * 2) as pool:
        running = {pool.submit(server.post, path, body): (name, text) for _ in range(2)
                   for name, (path, body, text) in asks.items()}
        for done in concurrent.futures.as_completed(running):
            name, text = running[done]
            status, answer = done.result()
            assert status == 200 and text(answer) == alone, name
