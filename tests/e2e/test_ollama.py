"""Ollama's API, asked by its official client and as Continue asks it."""
import json
import random

import pytest

from served import CACHE, Served, model_file

ollama = pytest.importorskip("ollama")
CODER = model_file("qwen2.5-coder-0.5b")
SMALL = model_file("smollm2-135m")
ENCODER = CACHE / "all-minilm-l6-v2"
pytestmark = pytest.mark.skipif(SMALL is None, reason="the model smollm2-135m is not there")
SAY = [{"role": "user", "content": "Say hello."}]
GREEDY = {"temperature": 0, "num_predict": 12}


@pytest.fixture(scope="module")
def server():
    models = ["-m", f"small={SMALL}"]
    models += ["-m", f"coder={CODER}"] if CODER else []
    models += ["-m", f"encoder={ENCODER}"] if ENCODER.is_dir() else []
    with Served(*models, "--cache", "off") as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


def test_chat_streamed_and_whole(client):
    whole = client.chat("small", messages=SAY, options=GREEDY)
    assert whole.done and whole.done_reason in ("stop", "length") and whole.message.content
    assert whole.eval_count <= 12 and whole.prompt_eval_count > 3
    assert 0 < whole.eval_duration <= whole.total_duration
    lines = list(client.chat("small", messages=SAY, options=GREEDY, stream=True))
    assert "".join(line.message.content for line in lines) == whole.message.content
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[-1].eval_count == whole.eval_count


def test_generate_goes_through_the_template_unless_raw(client):
    said = client.generate("small", "Say hello.", options=GREEDY)
    assert said.response == client.chat("small", messages=SAY, options=GREEDY).message.content
    raw = client.generate("small", "One, two, three,", raw=True, options=GREEDY)
    assert "four" in raw.response and raw.prompt_eval_count < said.prompt_eval_count
    cut = client.generate("small", "One, two, three,", raw=True, options={**GREEDY, "stop": ["five"]})
    assert "five" not in cut.response and cut.done_reason == "stop"


def test_formats(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
              "additionalProperties": False}
    options = {"temperature": 0, "num_predict": 60}
    assert set(json.loads(client.chat("small", messages=SAY, format=schema, options=options).message.content)) == {"n"}
    assert isinstance(json.loads(client.generate("small", "Hi", format="json", options=options).response), dict)


def test_log_probabilities(client):
    whole = client.generate("small", "Hi", options=GREEDY, logprobs=True, top_logprobs=2)
    assert all(len(entry.top_logprobs) == 2 and entry.logprob <= 0 for entry in whole.logprobs)
    lines = list(client.generate("small", "Hi", options=GREEDY, logprobs=True, top_logprobs=2, stream=True))
    assert [e.logprob for line in lines for e in line.logprobs or []] == [e.logprob for e in whole.logprobs]


def test_a_tool_is_called(server):
    tool = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.",
                                             "parameters": {"type": "object", "required": ["city"],
                                                            "additionalProperties": False, "properties": {
                                                                "city": {"type": "string", "maxLength": 12}}}}}
    body = {"model": "small", "messages": [{"role": "user", "content": "How is the weather in Paris?"}],
            "tools": [tool], "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            "options": {"temperature": 0, "num_predict": 80}}
    status, whole = server.post("/api/chat", {**body, "stream": False})
    assert status == 200
    calls = whole["message"]["tool_calls"]
    assert all(call["function"]["name"] == "get_weather" and set(call["function"]["arguments"]) == {"city"}
               for call in calls)
    _, _, lines = server.ask("POST", "/api/chat", body)
    streamed = [call for line in lines.splitlines() for call in json.loads(line)["message"].get("tool_calls", [])]
    assert [c["function"] for c in streamed] == [c["function"] for c in calls]


def test_num_ctx_limits_the_request_and_reloads_nothing(client, server):
    for _ in range(20):
        answer = client.chat("small", messages=SAY, keep_alive=random.choice([0, 60.0, "5m", -1]),
                             options={"num_ctx": random.randint(64, 100000), "num_predict": 1, "num_gpu": 1})
        assert answer.done
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("small", messages=[{"role": "user", "content": "word " * 100}], options={"num_ctx": 50})
    assert error.value.status_code == 400 and "maximum context length is 50" in error.value.error
    _, _, metrics = server.ask("GET", "/metrics")
    loads = [line for line in metrics.decode().splitlines() if "weight_reloads_total" in line and "small" in line]
    assert loads and all(line.endswith(" 1") for line in loads), loads


def test_an_empty_request_opens_the_model(client):
    assert client.generate("small").done_reason == "load"
    assert client.chat("small").done_reason == "load"
    assert "small" in [model.model for model in client.ps().models]


@pytest.mark.skipif(CODER is None, reason="the model qwen2.5-coder-0.5b is not there")
def test_filling_in_the_middle(client):
    prompt, suffix = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
    middle = client.generate("coder", prompt, suffix=suffix, options={"temperature": 0, "num_predict": 16})
    assert middle.response.strip().startswith("a + b")
    with pytest.raises(ollama.ResponseError) as error:
        client.generate("small", prompt, suffix=suffix)
    assert error.value.status_code == 400


def test_what_is_said_of_models(client, server):
    names = [model.model for model in client.list().models]
    assert "small" in names and all(model.size is not None for model in client.list().models)
    small = client.show("small:latest")
    assert small.modelinfo["general.architecture"] == "llama" and small.details.format == "gguf"
    assert small.parameters.split() == ["num_ctx", "8192"]
    assert small.capabilities == ["completion", "tools"]
    assert ".Suffix" not in small.template
    if CODER:
        coder = client.show("coder")
        assert {"completion", "tools", "insert"} <= set(coder.capabilities)
        assert ".Suffix" in coder.template and coder.details.quantization_level == "Q4_K_M"
    status, version = server.get("/api/version")
    assert status == 200 and version["version"].count(".") == 2


@pytest.mark.skipif(not ENCODER.is_dir(), reason="the model all-minilm-l6-v2 is not there")
def test_embeddings(client):
    both = client.embed("encoder", ["a cat", "a dog"])
    assert len(both.embeddings) == 2 and both.prompt_eval_count == 8
    assert client.embeddings("encoder", "a cat").embedding == pytest.approx(both.embeddings[0], abs=1e-6)
    short = client.embed("encoder", "a cat", dimensions=16).embeddings[0]
    assert len(short) == 16 and sum(x * x for x in short) == pytest.approx(1, abs=1e-4)
    with pytest.raises(ollama.ResponseError):
        client.embed("encoder", "word " * 5000)
    assert client.embed("encoder", "word " * 5000, truncate=True).prompt_eval_count <= 512
    assert client.show("encoder").capabilities == ["embedding"]


def test_models_are_not_changed(client):
    assert client.pull("small").status == "success"
    for refused in (lambda: client.pull("other"), lambda: client.delete("small"),
                    lambda: client.create("x", from_="small"), lambda: client.copy("small", "x")):
        with pytest.raises(ollama.ResponseError) as error:
            refused()
        assert error.value.status_code == 403 and "ganglion" in error.value.error
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("nothing", messages=SAY)
    assert error.value.status_code == 404


def test_an_editors_requests_are_answered(server):
    """Continue: /api/show by name, then chats with every option that it knows."""
    status, shown = server.post("/api/show", {"name": "small"})
    assert status == 200 and shown["parameters"].startswith("num_ctx ")
    options = {"temperature": 0.1, "num_predict": 8, "stop": ["<|im_end|>"], "num_ctx": 8192, "use_mmap": True}
    tool = {"type": "function", "function": {"name": "read_file", "description": "Reads a file.", "parameters": {
        "type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}}}
    chat = {"model": "small", "options": options, "keep_alive": 1800, "stream": True, "think": False, "tools": [tool],
            "messages": [{"role": "system", "content": "You are a coding agent."},
                         {"role": "user", "content": "Read a.c"},
                         {"role": "assistant", "content": "", "tool_calls": [
                             {"function": {"name": "read_file", "arguments": {"path": "a.c"}}}]},
                         {"role": "tool", "content": "int a;"},
                         {"role": "user", "content": "Go on."}]}
    status, headers, body = server.ask("POST", "/api/chat", chat, headers={"Authorization": "Bearer none"})
    assert status == 200 and headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines[-1]["done"] and all(line["message"]["role"] == "assistant" for line in lines)
    status, _, body = server.ask("POST", "/api/generate", {
        "model": "small", "prompt": "int main(", "raw": True, "options": options, "keep_alive": 1800, "stream": True})
    assert status == 200 and json.loads(body.splitlines()[-1])["done"]
