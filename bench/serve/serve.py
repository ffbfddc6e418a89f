#!/usr/bin/env python3
"""Ganglion's server and a peer's on the same file with the same threads, in turn, over HTTP.

    serve.py [-m MODEL] [-t THREADS] [-r ROUNDS] [--tests streams,prefix,gap] [--long N] [--json]

streams  8 chats at a time, 128 tokens each: tokens a second, all together
prefix   time to the first token of a prompt of 2,000 tokens whose first 90 % another request has brought
         before it: that one is still running (busy), or has ended (idle)
gap      4 chats run; then a prompt of --long tokens comes: the 99th percentile of the time between two tokens of
         the running chats while it is read, over their median without it

Each server is a process of its own, started anew for each round; medians over the rounds are compared. The client
speaks HTTP/1.1 over plain sockets and asks each server in the same words."""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
FETCH = ROOT / "tools" / "fetch_models"
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))
import peers  # noqa: E402

WORDS = ("river stone lamp garden window paper bridge engine forest island market silver winter letter carbon "
         "signal harbor meadow copper desert").split()
TESTS = {
    "streams": ("8 streams together, tok/s", False),
    "prefix_idle": ("first token, 90 % of 2,000 shared, s", True),
    "prefix_busy": ("the same, the other still running, s", True),
    "gap": ("p99 gap beside a long prompt / idle gap", True),
}


def text(n_words, seed):
    """Words that tokenizers take for one or two tokens each, the same for the same seed."""
    out = []
    state = seed * 2654435761 + 12345
    for _ in range(n_words):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(WORDS[(state >> 33) % len(WORDS)])
    return " ".join(out)


class Stream(threading.Thread):
    """One streamed completion. times: when each piece of text came."""

    def __init__(self, address, prompt, n):
        super().__init__(daemon=True)
        self.address, self.prompt, self.n = address, prompt, n
        self.times = []
        self.usage = None
        self.failure = None
        self.stopped = False
        self.begin = 0.0
        self.first = threading.Event()

    def run(self):
        try:
            self.ask()
        except Exception as e:  # told to whoever joins
            self.failure = e
        self.first.set()

    def ask(self):
        url = urllib.parse.urlparse(self.address)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
        body = {"prompt": self.prompt, "max_tokens": self.n, "temperature": 0, "stream": True, "ignore_eos": True,
                "stream_options": {"include_usage": True}, "cache_prompt": True}
        self.begin = time.perf_counter()
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {response.read(300)!r}")
        for line in response:
            if self.stopped:
                break
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if event.get("choices") and event["choices"][0].get("finish_reason") is None:
                self.times.append(time.perf_counter())
                self.first.set()
            if event.get("usage"):
                self.usage = event["usage"]
        connection.close()

    def gaps(self, start=0.0, end=float("inf")):
        return [b - a for a, b in zip(self.times, self.times[1:]) if a >= start and b <= end]

    def join(self, timeout=None):
        super().join(timeout)
        if self.failure is not None:
            raise self.failure


class Server:
    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, **more)
        self.address = None
        for line in self.process.stdout:
            if "http://" in line:
                self.address = "http://" + line.split("http://")[1].split()[0].rstrip("/")
                break
        if self.address is None:
            raise RuntimeError(f"{command[0]} did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def run_streams(server):
    streams = [Stream(server.address, f"Story {i} about the {WORDS[i]}:", 128) for i in range(8)]
    start = time.perf_counter()
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.join()
    seconds = time.perf_counter() - start
    return {"streams": sum(stream.usage["completion_tokens"] for stream in streams) / seconds}


def first_token(server, prompt):
    stream = Stream(server.address, prompt, 4)
    stream.start()
    stream.join()
    return stream.times[0] - stream.begin


def run_prefix(server):
    out = {}
    for name, seed in (("prefix_idle", 1), ("prefix_busy", 2)):
        shared = text(1350, seed)
        other = Stream(server.address, shared + " " + text(150, seed + 10), 4 if name == "prefix_idle" else 400)
        other.start()
        if name == "prefix_idle":
            other.join()
        else:
            other.first.wait()
        out[name] = first_token(server, shared + " " + text(150, seed + 20))
        other.stopped = True
        other.join()
    return out


def run_gap(server, n_long):
    streams = [Stream(server.address, f"Tale {i} of the {WORDS[i]}:", 4000) for i in range(4)]
    for stream in streams:
        stream.start()
    for stream in streams:
        stream.first.wait()
    time.sleep(3)
    idle = [gap for stream in streams for gap in stream.gaps()]
    long = Stream(server.address, text(n_long * 3 // 4, 7), 1)
    start = time.perf_counter()
    long.start()
    long.join()
    end = long.times[0] if long.times else time.perf_counter()
    for stream in streams:
        stream.stopped = True
    beside = sorted(gap for stream in streams for gap in stream.gaps(start, end))
    for stream in streams:
        stream.join()
    if not beside:  # nothing came from any stream until the prompt was read
        beside = [end - start]
    p99 = beside[min(len(beside) - 1, int(len(beside) * 0.99))]
    return {"gap": p99 / statistics.median(idle), "gap_idle_ms": statistics.median(idle) * 1e3,
            "gap_p99_ms": p99 * 1e3, "prompt_s": end - start}


def model_path(name):
    done = subprocess.run([FETCH, "--path", name], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def open_ganglion(model, options):
    return Server([BIN, "serve", "-m", model, "-t", str(options.threads), "--port", "0"])


def open_peer(model, options):
    python = peers.environment("xllamacpp", ["xllamacpp"])
    return Server([python, str(HERE / "peer_server.py"), model, str(options.threads), "32768", "8"])


SERVERS = {"ganglion": open_ganglion, "xllamacpp": open_peer}


def measure(name, model, options):
    out = {}
    runs = {"streams": run_streams, "prefix": run_prefix, "gap": lambda s: run_gap(s, options.long)}
    for test in options.tests.split(","):
        with SERVERS[name](model, options) as server:
            warm = Stream(server.address, "Hello", 4)
            warm.start()
            warm.join()
            out.update(runs[test](server))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--tests", default="streams,prefix,gap")
    parser.add_argument("--long", type=int, default=16384, help="tokens of the long prompt")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = model_path(options.model)
    seen = {name: [] for name in SERVERS}
    for i in range(options.rounds):
        for name in sorted(SERVERS, reverse=i % 2 == 1):
            print(f"bench/serve: round {i + 1} of {options.rounds}, {name}", file=sys.stderr, flush=True)
            seen[name].append(measure(name, model, options))
            if options.json:
                print(json.dumps({"engine": name, "round": i, **seen[name][-1]}), flush=True)
    if options.json:
        return
    print(f"{options.model}, {options.threads} threads, medians of {options.rounds} rounds (least to most)")
    for test, (what, smaller) in TESTS.items():
        cells = []
        for name in SERVERS:
            values = sorted(run[test] for run in seen[name] if test in run)
            if values:
                cells.append((name, statistics.median(values), values))
        if len(cells) == 2:
            ours, theirs = cells[0][1], cells[1][1]
            ratio = theirs / ours if smaller else ours / theirs
            shown = "; ".join(f"{name} {m:.3g} ({v[0]:.3g} to {v[-1]:.3g})" for name, m, v in cells)
            print(f"{what}: {shown}: {ratio:.2f}x")


if __name__ == "__main__":
    main()
