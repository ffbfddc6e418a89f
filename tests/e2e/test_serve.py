"""The server over plain HTTP: who may ask, what is refused and how, limits, start and end."""
import json
import shutil
import signal
import socket
import subprocess
import time

import pytest

from served import BIN, Served, model_file

MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="tools/fetch_models smollm2-135m")
HI = [{"role": "user", "content": "Say hi."}]


@pytest.fixture(scope="module")
def server():
    with Served("-m", f"small={MODEL}") as s:
        yield s


def test_health(server):
    assert server.get("/health") == (200, {"status": "ok"})
    assert server.get("/health/live")[0] == 200
    assert server.get("/health/ready")[0] == 200


def test_unknown_addresses(server):
    status, headers, body = server.ask("GET", "/nowhere")
    assert status == 404 and headers["x-request-id"]
    error = json.loads(body)["error"]
    assert error["type"] == "not_found_error" and error["code"] == "not_found" and error["param"] is None
    status, _, body = server.ask("GET", "/api/nowhere")
    assert status == 404 and isinstance(json.loads(body)["error"], str)
    status, _, body = server.ask("GET", "/v1/messages/nowhere")
    assert status == 404 and json.loads(body)["type"] == "error"
    status, headers, _ = server.ask("GET", "/v1/chat/completions")
    assert status == 405 and headers["allow"] == "POST"


def test_hosts_and_origins(server):
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert server.ask("GET", "/v1/models", headers={"Host": host})[0] == 403
    for host in ("localhost", f"127.0.0.1:{server.port}", "[::1]:1"):
        assert server.ask("GET", "/v1/models", headers={"Host": host})[0] == 200
    status, headers, _ = server.ask("GET", "/v1/models", headers={"Origin": "https://evil.example"})
    assert status == 403 and "access-control-allow-origin" not in headers
    assert server.ask("GET", "/v1/models", headers={"Origin": "null"})[0] == 403
    same = f"http://127.0.0.1:{server.port}"
    assert server.ask("GET", "/v1/models", headers={"Origin": same, "Host": same[7:]})[0] == 200
    assert server.ask("OPTIONS", "/v1/models", headers={"Origin": "https://evil.example"})[0] in (403, 405)


def test_bodies_that_are_no_request(server):
    for body in (b"", b"{", b"[]", b"\xff\xfe", b'{"a":1,"a":2}', b'"x"', b"[" * 100000):
        status, _, answer = server.ask("POST", "/v1/chat/completions", body)
        assert status == 400, body[:20]
        assert json.loads(answer)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("field,value,param", [
    ("messages", [], "messages"),
    ("messages", "hi", "messages"),
    ("messages", [{"role": "robot", "content": "x"}], "messages[0].role"),
    ("messages", [{"role": "user"}], "messages[0].content"),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
     "messages[0].content[0].type"),
    ("temperature", "hot", "temperature"),
    ("temperature", -1, "temperature"),
    ("top_p", 2, "top_p"),
    ("n", 0, "n"),
    ("n", 17, "n"),
    ("stop", [1], "stop[0]"),
    ("max_tokens", "many", "max_tokens"),
    ("logit_bias", {"x": 1}, "logit_bias.x"),
    ("logit_bias", {"1": 101}, "logit_bias.1"),
    ("top_logprobs", 3, "top_logprobs"),
    ("stream", "yes", "stream"),
    ("tools", [{"type": "function"}], "tools[0].function"),
    ("tool_choice", "perhaps", "tool_choice"),
    ("response_format", {"type": "xml"}, "response_format.type"),
    ("response_format", {"type": "json_schema"}, "response_format.schema"),
    ("response_format", {"type": "json_schema", "json_schema": {"schema": {"type": "whole"}}},
     "response_format.json_schema.schema"),
    ("guided_regex", "(", "guided_regex"),
    ("grammar", "root ::= nothing", "grammar"),
])
def test_refused_fields(server, field, value, param):
    status, answer = server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 2, field: value})
    assert status == 400, answer
    assert answer["error"]["param"] == param
    assert answer["error"]["message"].startswith(param)


def test_overflow(server):
    status, answer = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 9000}]})
    error = answer["error"]
    assert status == 400 and error["code"] == "context_length_exceeded" and error["param"] == "messages"
    assert "This model's maximum context length is 8192 tokens. However, your request has " in error["message"]
    assert "It exceeds the available context size. Please reduce the length of the messages." in error["message"]
    assert error["n_ctx"] == 8192 and error["n_prompt_tokens"] > 9000
    status, answer = server.post("/v1/completions", {"prompt": "word " * 90, "num_ctx": 64})
    assert status == 400 and answer["error"]["n_ctx"] == 64 and answer["error"]["param"] == "prompt"


def test_one_answer_streamed_and_whole(server):
    ask = {"messages": HI, "max_tokens": 12, "seed": 5, "temperature": 0.9, "logprobs": True, "top_logprobs": 2, "n": 2}
    status, whole = server.post("/v1/chat/completions", ask)
    assert status == 200
    events = server.events("/v1/chat/completions",
                           {**ask, "stream": True, "stream_options": {"include_usage": True}})
    assert events[-1] is None
    chunks = events[:-1]
    assert len({(c["id"], c["created"], c["model"]) for c in chunks}) == 1
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"] == whole["usage"]
    for i in range(2):
        own = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == i]
        assert own[0]["delta"] == {"role": "assistant", "content": ""}
        assert own[-1]["delta"] == {} and own[-1]["finish_reason"] == whole["choices"][i]["finish_reason"]
        assert all(c["finish_reason"] is None and "role" not in c["delta"] for c in own[1:-1])
        text = "".join(c["delta"].get("content", "") for c in own)
        assert text == whole["choices"][i]["message"]["content"]
        logprobs = [t for c in own if c["logprobs"] for t in c["logprobs"]["content"]]
        assert logprobs == whole["choices"][i]["logprobs"]["content"]
    firsts = [c["choices"][0]["index"] for c in chunks[:-1] if c["choices"][0]["delta"].get("role")]
    assert firsts == [0, 1]


def test_stop_strings(server):
    ask = {"prompt": "1 2 3 4 5 6 7", "max_tokens": 24, "temperature": 0}
    _, free = server.post("/v1/completions", ask)
    text = free["choices"][0]["text"]
    stop = text[6:9]
    _, cut = server.post("/v1/completions", {**ask, "stop": stop})
    assert cut["choices"][0]["text"] == text[: text.index(stop)]
    assert cut["choices"][0]["finish_reason"] == "stop"


def test_formats(server):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
              "required": ["a", "b"], "additionalProperties": False}
    for extra in ({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}},
                  {"response_format": {"type": "json_object", "schema": schema}},
                  {"guided_json": schema}, {"json_schema": schema}, {"structured_outputs": {"json": schema}}):
        _, answer = server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 60, "temperature": 1.5, **extra})
        value = json.loads(answer["choices"][0]["message"]["content"])
        assert set(value) == {"a", "b"} and value["a"] == int(value["a"]) and value["b"] in "xy"
    for extra in ({"guided_choice": ["yes", "no"]}, {"guided_regex": "yes|no"}, {"grammar": 'root ::= "yes" | "no"'},
                  {"structured_outputs": {"choice": ["yes", "no"]}}):
        _, answer = server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 60, **extra})
        assert answer["choices"][0]["message"]["content"] in ("yes", "no")
    _, answer = server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 24, "temperature": 1,
                                                     "response_format": {"type": "json_object"}})
    assert isinstance(json.loads(answer["choices"][0]["message"]["content"]), dict)
    status, answer = server.post("/v1/chat/completions", {"messages": HI, "guided_regex": "a", "grammar": "b"})
    assert status == 400


def test_echo_scores_a_prompt(server):
    ask = {"prompt": "The capital of France is", "echo": True, "logprobs": 1, "max_tokens": 0}
    _, answer = server.post("/v1/completions", ask)
    choice = answer["choices"][0]
    lists = choice["logprobs"]
    assert choice["text"] == ask["prompt"] == "".join(lists["tokens"])
    assert lists["token_logprobs"][0] is None and all(p < 0 for p in lists["token_logprobs"][1:])
    assert [ask["prompt"][o:].startswith(t) for o, t in zip(lists["text_offset"], lists["tokens"])]
    ids = server.post("/tokenize", {"content": ask["prompt"]})[1]["tokens"]
    _, again = server.post("/v1/completions", {**ask, "prompt": [ids, ids]})
    assert [c["logprobs"] for c in again["choices"]] == [lists, lists]


def test_tokens_and_templates(server):
    ids = server.post("/tokenize", {"content": "Hello <|im_end|>"})[1]["tokens"]
    assert server.post("/detokenize", {"tokens": ids})[1]["content"] == "Hello <|im_end|>"
    pieces = server.post("/tokenize", {"content": "Hello", "with_pieces": True})[1]["tokens"]
    assert "".join(p["piece"] for p in pieces) == "Hello"
    prompt = server.post("/apply-template", {"messages": HI})[1]["prompt"]
    assert prompt.endswith("<|im_start|>assistant\n") and "Say hi." in prompt
    assert server.post("/detokenize", {"tokens": [10**9]})[0] == 400


def test_native_completion(server):
    status, answer = server.post("/completion", {"prompt": "1 2 3 4", "n_predict": 6, "temperature": 0})
    assert status == 200 and answer["stop"] and answer["stop_type"] == "limit" and answer["tokens_predicted"] == 6
    events = server.events("/completion", {"prompt": "1 2 3 4", "n_predict": 6, "temperature": 0, "stream": True})
    assert "".join(e["content"] for e in events) == answer["content"] and events[-1]["stop"]
    assert server.post("/infill", {"input_prefix": "a", "input_suffix": "b"})[0] in (200, 400)
    assert server.get("/props")[1]["model_alias"] == "small"
    assert "json_schema" in server.get("/v1/capabilities")[1]["response_formats"]
    assert server.post("/v1/rerank", {"query": "a", "documents": ["b"]})[0] == 400
    assert server.get("/lora-adapters") == (200, [])


def test_models(server):
    listed = server.get("/v1/models")[1]
    assert [m["id"] for m in listed["data"]] == ["small"] == [m["id"] for m in listed["models"]]
    assert server.get("/v1/models/small")[1]["max_model_len"] == 8192
    status, answer = server.get("/v1/models/large")
    assert status == 404 and answer["error"]["code"] == "model_not_found"


def test_classes_and_deadlines(server):
    ask = {"messages": HI, "max_tokens": 4}
    for name in ("realtime", "interactive", "batch"):
        assert server.post("/v1/chat/completions", ask, headers={"x-ganglion-priority": name})[0] == 200
    assert server.post("/v1/chat/completions", ask, headers={"x-ganglion-priority": "first"})[0] == 400
    status, answer = server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 8000, "ignore_eos": True},
                                 headers={"x-ganglion-deadline-ms": "300"})
    assert status == 200 and answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] < 8000
    assert server.post("/v1/chat/completions", ask, headers={"x-ganglion-deadline-ms": "soon"})[0] == 400


def metric(server, name):
    text = server.ask("GET", "/metrics")[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith(name + " ") or line.startswith(name + "{"))


def wait_for(check, seconds=60):
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_client_that_leaves_is_noticed(server):
    before = metric(server, "ganglion_requests_cancelled_total")
    for stream in (True, False):
        connection = server.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": HI, "max_tokens": 8000, "ignore_eos": True, "stream": stream}))
        wait_for(lambda: metric(server, "ganglion_num_requests_running") == 1)
        connection.sock.close()
        connection.close()
        wait_for(lambda: metric(server, "ganglion_num_requests_running") == 0)
    assert metric(server, "ganglion_requests_cancelled_total") == before + 2


def test_cancel_by_id(server):
    connection = server.connect()
    connection.request("POST", "/v1/chat/completions", json.dumps(
        {"messages": HI, "max_tokens": 8000, "ignore_eos": True}))
    wait_for(lambda: server.get("/slots")[1])
    slot = server.get("/slots")[1][0]
    assert slot["model"] == "small" and slot["class"] == "interactive"
    assert server.ask("DELETE", f"/slots/{slot['id']}")[0] == 200
    assert connection.getresponse().status == 503
    connection.close()
    assert server.ask("DELETE", "/slots/999999")[0] == 404
    assert server.ask("DELETE", "/slots/x")[0] == 400


def test_metrics(server):
    server.post("/v1/chat/completions", {"messages": HI, "max_tokens": 3})
    text = server.ask("GET", "/metrics")[2].decode()
    for name in ("prompt_tokens_total", "generation_tokens_total", "num_requests_running", "num_requests_waiting",
                 "kv_cache_usage_perc", "prefix_cache_queries_total", "prefix_cache_hits_total",
                 "num_preemptions_total", "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_count",
                 "e2e_request_latency_seconds_sum", "request_queue_time_seconds_bucket", "weight_reloads_total",
                 "truncations_total", "kernel_fallbacks_total", "egress_bytes_total", "process_cpu_seconds_total"):
        assert f"\nganglion_{name}" in text, name
    assert metric(server, "ganglion_weight_reloads_total") == 1
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rsplit(" ", 1)[1]) >= 0


def test_openapi(server):
    document = server.get("/openapi.json")[1]
    assert document["openapi"].startswith("3.1")
    assert "post" in document["paths"]["/v1/chat/completions"]


def test_keys(tmp_path):
    made = [json.loads(subprocess.run([BIN, "serve", "--new-key", name, "--json"], capture_output=True, check=True).stdout)
            for name in ("alice", "bob", "root")]
    alice, bob, root = (m["key"] for m in made)
    keys = tmp_path / "keys"
    keys.write_text("# who may ask\n" + made[0]["line"] + " models=small class=batch\n" +
                    made[1]["line"] + " requests=2 models=other\n" + made[2]["line"] + " admin class=realtime\n")
    assert alice not in keys.read_text()

    def bearer(key):
        return {"Authorization": f"Bearer {key}"}
    with Served("-m", f"small={MODEL}", "-m", f"other={MODEL}", "--keys", keys) as s:
        assert s.ask("GET", "/health")[0] == 200
        status, headers, body = s.ask("GET", "/v1/models")
        assert status == 401 and headers["www-authenticate"] == "Bearer"
        assert json.loads(body)["error"]["code"] == "invalid_api_key"
        assert s.ask("GET", "/metrics", headers=bearer("gn-" + "0" * 48))[0] == 401
        assert [m["id"] for m in s.get("/v1/models", headers=bearer(alice))[1]["data"]] == ["small"]
        assert [m["id"] for m in s.get("/v1/models", headers={"x-api-key": bob})[1]["data"]] == ["other"]
        ask = {"model": "other", "messages": HI, "max_tokens": 2}
        assert s.post("/v1/chat/completions", ask, headers=bearer(alice))[0] == 403
        assert s.post("/v1/chat/completions", {**ask, "model": "small"},
                      headers={**bearer(alice), "x-ganglion-priority": "interactive"})[0] == 403
        codes = [s.ask("POST", "/v1/chat/completions", ask, headers=bearer(bob)) for _ in range(3)]
        assert [c[0] for c in codes] == [200, 200, 429]
        assert int(codes[2][1]["retry-after"]) >= 1 and int(codes[2][1]["retry-after-ms"]) >= 1
        assert json.loads(codes[2][2])["error"]["code"] == "rate_limit_exceeded"
        assert s.ask("DELETE", "/slots/1", headers=bearer(alice))[0] == 403
        assert s.ask("DELETE", "/slots/1", headers=bearer(root))[0] == 404
        keys.write_text(made[2]["line"] + " admin\n")
        s.process.send_signal(signal.SIGHUP)
        wait_for(lambda: s.ask("GET", "/v1/models", headers=bearer(alice))[0] == 401)
        keys.write_text("nonsense\n")
        s.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "line 1" in s.output())
        assert s.ask("GET", "/v1/models", headers=bearer(root))[0] == 200


def run(*args):
    return subprocess.run([BIN, "serve", *map(str, args)], capture_output=True, text=True, timeout=120, check=False)


def test_start_that_is_refused(tmp_path):
    result = run("-m", MODEL, "--host", "0.0.0.0", "--port", "0")
    assert result.returncode == 2 and "needs an API key" in result.stderr.splitlines()[-1]
    assert run("--port", "0").returncode == 2
    missing = run("-m", tmp_path / "none.gguf", "--port", "0", "--quiet")
    assert missing.returncode == 3 and len(missing.stderr.splitlines()) == 1
    (tmp_path / "keys").write_text("a b c\n")
    bad = run("-m", MODEL, "--keys", tmp_path / "keys", "--port", "0")
    assert bad.returncode == 3 and "line 1" in bad.stderr
    assert run("-m", MODEL, "--tls-cert", "x", "--port", "0").returncode == 2
    with Served("-m", MODEL) as s:
        taken = run("-m", MODEL, "--port", s.port, "--quiet")
        assert taken.returncode == 5 and "cannot listen" in taken.stderr


def test_a_request_ends_before_the_server_does():
    with Served("-m", MODEL, "--drain", 300) as s:
        connection = s.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": HI, "max_tokens": 500, "ignore_eos": True}))
        wait_for(lambda: s.get("/slots")[1])
        s.process.send_signal(signal.SIGTERM)
        wait_for(lambda: s.ask("GET", "/health/ready")[0] == 503)
        assert s.post("/v1/chat/completions", {"messages": HI})[0] == 503
        answer = connection.getresponse()
        assert answer.status == 200 and json.loads(answer.read())["usage"]["completion_tokens"] == 500
        connection.close()
        assert s.stop(timeout=400) == 0


def test_slow_and_large(tmp_path):
    with Served("-m", MODEL, "--idle-ms", 4000, "--upload-ms", 4000, "--max-body", "64K", "--max-connections", 40) as s:
        slow = [socket.create_connection((s.host, s.port)) for _ in range(5)]
        for i, sock in enumerate(slow):
            sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" +
                         (b"Content-Length: 100\r\n\r\n{" if i % 2 else b"X-A: "))
        assert s.get("/health")[0] == 200
        for sock in slow:
            sock.settimeout(60)
            try:
                while sock.recv(4096):
                    pass
            except ConnectionError:
                pass
            sock.close()
        assert metric(s, "ganglion_connections_dropped_total") >= 5
        status, answer = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 70000}]})
        assert status == 413 and answer["error"]["code"] == "body_too_large"
        with socket.create_connection((s.host, s.port)) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"a" * 100000 + b"\r\n\r\n")
            sock.settimeout(60)
            assert sock.recv(100).split()[1] in (b"431", b"413", b"400")
        assert s.get("/health")[0] == 200


def test_several_models_take_turns():
    with Served("-m", f"a={MODEL}", "-m", f"b={MODEL}", "--max-loaded", 1) as s:
        for i in range(4):
            status, answer = s.post("/v1/completions", {"model": "ab"[i % 2], "prompt": "1 2 3", "max_tokens": 2})
            assert status == 200 and answer["model"] == "ab"[i % 2]
        assert metric(s, "ganglion_models_loaded") == 1
        assert metric(s, "ganglion_weight_reloads_total") == 4
        assert s.post("/v1/completions", {"model": "c", "prompt": "1"})[0] == 404


def test_tls(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                           "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                          capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    import ssl
    import urllib.request
    with Served("-m", MODEL, "--tls-cert", cert, "--tls-key", key) as s:
        assert s.url.startswith("https://")
        context = ssl.create_default_context(cafile=cert)
        with urllib.request.urlopen(f"{s.url}/health", context=context, timeout=60) as reply:
            assert json.load(reply) == {"status": "ok"}


def test_the_log_has_no_prompts():
    with Served("-m", MODEL) as s:
        s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "wombat"}], "max_tokens": 2})
        s.stop()
        lines = [json.loads(line) for line in s.lines if line.startswith("{")]
        call = next(line for line in lines if line["event"] == "call")
        assert call["status"] == 200 and call["id"].startswith("req_") and call["completion_tokens"] == 2
        assert "wombat" not in s.output()
