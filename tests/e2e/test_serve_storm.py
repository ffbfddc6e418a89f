"""Hostile and careless clients ($GANGLION_STORM of them) beside good ones: the good ones get the bytes that they get alone, the server keeps its memory and
its threads, and after `kill -9` it serves again."""
import contextlib
import json
import os
import random
import signal
import socket
import threading

import pytest

from served import Served, model_file

MODEL = model_file("smollm2-135m")
pytestmark = pytest.mark.skipif(MODEL is None, reason="tools/fetch_models smollm2-135m")
GOOD = {"messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 48, "seed": 9, "temperature": 1,
        "logprobs": True}
FIELDS = ["messages", "model", "temperature", "top_p", "n", "stop", "max_tokens", "logit_bias", "logprobs", "seed",
          "stream", "stream_options", "response_format", "tools", "tool_choice", "grammar", "guided_regex", "prompt",
          "input", "echo", "system", "input_prefix", "content", "tokens", "format", "options", "think", "reasoning"]
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/api/chat",
         "/api/generate", "/tokenize", "/detokenize", "/apply-template", "/completion", "/infill",
         "/v1/messages/count_tokens", "/nowhere"]


def value(rng, depth=0):
    kind = rng.randrange(12 if depth < 3 else 8)
    if kind < 8:
        return [None, True, rng.randrange(-10**20, 10**20), rng.uniform(-1e300, 1e300), "", "x" * rng.randrange(200),
                "\ud7ff\u0000\U0001f600", -0.0][kind]
    if kind < 10:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(FIELDS + ["type", "role", "text", "function", "name"]): value(rng, depth + 1)
            for _ in range(rng.randrange(4))}


def body(rng):
    kind = rng.randrange(8)
    if kind == 0:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(300)))
    if kind == 1:
        return b'{"messages":' + b"[" * rng.randrange(3000)
    if kind == 2:
        return b'{"messages":[{"role":"user","content":"\xff\xfe"}]}'
    if kind == 3:
        return b'{"n":' + b"9" * rng.randrange(1, 400) + b"}"
    good = {"messages": GOOD["messages"], "prompt": "1 2", "input": "1 2", "max_tokens": 2, "max_output_tokens": 2,
            "options": {"num_predict": 2}, "n_predict": 2, "stream": False}
    for _ in range(rng.randrange(1, 3)):
        good[rng.choice(FIELDS)] = value(rng)
    if isinstance(good["max_tokens"], int) and not 0 < good["max_tokens"] < 20:
        good["max_tokens"] = 2  # wrong all the same, but not long
    return json.dumps(good).encode()


def hostile(server, rng, bad):
    """One careless request; an answer that is no 5xx, or none."""
    data = body(rng)
    head = (f"POST {rng.choice(PATHS)} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\nx-ganglion-deadline-ms: 2000\r\nConnection: close\r\n\r\n").encode()
    cut = rng.randrange(10)
    with contextlib.suppress(ConnectionError, TimeoutError, socket.timeout):
        with socket.create_connection((server.host, server.port), timeout=60) as sock:
            if cut == 0:
                sock.sendall(head[: rng.randrange(len(head))])
                return
            if cut == 1:
                sock.sendall(head + data[: len(data) // 2])
                return
            sock.sendall(head + data)
            if cut == 2:
                return
            answer = b""
            while b"\r\n" not in answer:
                piece = sock.recv(4096)
                if not piece:
                    return
                answer += piece
            if cut != 3:
                while sock.recv(65536):
                    pass
            status = int(answer.split()[1])
            if status >= 500 and status != 503:
                bad.append((status, head[:40], data[:300]))


def good(server):
    status, answer = server.post("/v1/chat/completions", GOOD)
    return status, [(c["message"], c["logprobs"], c["finish_reason"]) for c in answer["choices"]]


def test_storm():
    with Served("-m", MODEL, "--quiet") as server:
        alone = good(server)
        assert alone[0] == 200
        rng = random.Random(4)
        for _ in range(40):
            hostile(server, rng, [])
        memory, threads = server.status_of("VmRSS"), server.status_of("Threads")
        bad, wrong, stop = [], [], threading.Event()

        def be_good():
            while not stop.is_set():
                if good(server) != alone:
                    wrong.append(1)

        def be_bad(seed):
            own = random.Random(seed)
            for _ in range(int(os.environ.get("GANGLION_STORM", "600")) // 4):
                hostile(server, own, bad)

        friends = [threading.Thread(target=be_good) for _ in range(4)]
        foes = [threading.Thread(target=be_bad, args=(seed,)) for seed in range(4)]
        for t in friends + foes:
            t.start()
        for t in foes:
            t.join()
        stop.set()
        for t in friends:
            t.join()
        assert not bad and not wrong
        assert server.process.poll() is None and good(server) == alone
        assert server.status_of("Threads") <= threads + 2
        assert server.status_of("VmRSS") < memory + 200_000  # kB; KV pages that were touched stay
        assert server.stop() == 0


def test_context_sizes_load_nothing():
    with Served("-m", MODEL, "--quiet") as server:
        rng = random.Random(7)
        for i in range(100):
            n_ctx = rng.randrange(64, 8192)
            path, ask = [("/v1/chat/completions", {"messages": GOOD["messages"], "max_tokens": 1, "num_ctx": n_ctx}),
                         ("/api/generate", {"prompt": "1 2 3", "stream": False,
                                            "options": {"num_ctx": n_ctx, "num_predict": 1}})][i % 2]
            assert server.post(path, ask)[0] == 200
        metrics = server.ask("GET", "/metrics")[2].decode()
        assert sum(int(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
                   if line.startswith("ganglion_weight_reloads_total{")) == 1


def test_killed_in_the_middle():
    before = None
    for _ in range(2):
        with Served("-m", MODEL, "--quiet") as server:
            answer = good(server)
            before = before or answer
            assert answer == before
            threads = [threading.Thread(target=quiet, args=(server,))
                       for _ in range(4)]
            for t in threads:
                t.start()
            assert server.stop(signal.SIGKILL) == -9
            for t in threads:
                t.join()


def quiet(server):
    with contextlib.suppress(Exception):
        good(server)
