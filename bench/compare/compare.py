#!/usr/bin/env python3
"""Ganglion and its peers on the same files with the same threads, in turn.

A round measures every engine once, one after the other, each in a process of its own, in an order that turns
round from one round to the next: a busy machine slows all alike. Medians over the rounds are compared. Of llama.cpp
there are two builds, and of each the best of its configurations (weights repacked or not, flash attention on
or off) for the kind of test, found by one short run of all of them before.

    compare.py [-m MODEL]... [--tests decode,prefill,…] [-r ROUNDS] [--json]
    compare.py --record FILE …     add the rounds to FILE as they are measured, and print nothing; the best
                                   configurations are kept in FILE.best
    compare.py --report FILE       the table of all rounds recorded in FILE
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import peers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
FETCH = ROOT / "tools" / "fetch_models"
DECODERS = ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]

# name: (kind, tokens, sequences, depth, KV type, which configuration search it follows)
TESTS = {
    "decode": ("decode", 64, 1, 0, "f16", "decode"),
    "prefill": ("prefill", 512, 1, 0, "f16", "prefill"),
    "decode8": ("decode", 32, 8, 0, "f16", "decode8"),
    "decode-deep": ("decode", 16, 1, 8192, "q8", "decode"),
    "prefill-long": ("prefill", 8192, 1, 0, "q8", "prefill"),
    "cold": ("first", 0, 1, 0, "f16", "cold"),
    "memory": ("memory", 16, 1, 0, "f16", "memory"),
    "busy": ("decode", 64, 1, 0, "f16", "decode"),
}
WHAT = {
    "decode": "decode, 1 sequence, tok/s", "prefill": "prefill 512, tok/s",
    "decode8": "decode, 8 sequences together, tok/s", "decode-deep": "decode at depth 8192, q8 KV, tok/s",
    "prefill-long": "prefill 8192, q8 KV, tok/s", "cold": "process start to first token, s",
    "memory": "memory of its own, MB", "busy": "decode beside a busy core, tok/s",
}
SMALLER_IS_BETTER = {"cold", "memory"}
CONFIGS = [(repack, flash) for repack in (0, 1) for flash in (0, 1)]


class Failed(Exception):
    """An engine did not run a test, and why."""


def lines_of(command):
    """The JSON lines that a command prints."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                            errors="replace")
    seen = [json.loads(line) for line in result.stdout.splitlines() if line.startswith('{"')]
    if result.returncode != 0 or not seen:
        last = (result.stderr.strip().splitlines() or ["nothing printed"])[-1]
        raise Failed(f"{pathlib.Path(command[0]).name}: {last}")
    return seen


def first_output(command):
    """Seconds from the start of a process to its first output."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL) as process:
        process.stdout.read(1)
        seconds = time.perf_counter() - start
        process.stdout.read()
    if process.returncode != 0:
        raise Failed(f"{pathlib.Path(command[0]).name}: exit {process.returncode}")
    return seconds


class Ganglion:
    name = "ganglion"

    def __init__(self, path, threads):
        self.base = ["-m", path, "-t", str(threads)]
        self.has_kv = "--kv " in subprocess.run([BIN, "bench", "--help"], stdout=subprocess.PIPE, text=True,
                                                check=False).stdout

    def measure(self, test):
        kind, n, batch, depth, kv, _ = TESTS[test]
        if kind == "first":
            return first_output([BIN, "run", *self.base, "--raw", "-p", "The quick brown fox", "-n", "1", "--temp",
                                 "0"])
        sizes = ["-p", str(n), "-n", "0"] if kind == "prefill" else ["-p", "0", "-n", str(n), "-b", str(batch)]
        if kv != "f16":
            if not self.has_kv:
                raise Failed("no --kv in this build")
            sizes += ["--kv", kv]
        out = lines_of([BIN, "bench", *self.base, *sizes, "-d", str(depth), "-r", "1", "--no-extras", "--json"])[0]
        if kind == "memory":
            return next(r["private_bytes"] for r in out["results"] if r["test"] == "memory") / 1e6
        return out["results"][0]["tok_s"]["median"]


class Llama:
    def __init__(self, path, threads, variant):
        self.name = "llama.cpp" if variant == "plain" else "llama.cpp amx"
        self.driver = peers.llama_build(variant)
        self.path = path
        self.threads = threads
        self.best = {}  # kind of test: (repack, flash attention)

    def command(self, config, kv, tests):
        return [self.driver, self.path, str(self.threads), str(config[0]), str(config[1]), kv,
                peers.states_folder(), *tests]

    def run(self, test, config):
        kind, n, batch, depth, kv, _ = TESTS[test]
        if kind == "first":
            return first_output(self.command(config, kv, ["first"]))
        spec = f"prefill:{n}:{depth}" if kind == "prefill" else f"decode:{n}:{batch}:{depth}"
        out = lines_of(self.command(config, kv, [spec]))[0]
        return out["private_bytes"] / 1e6 if kind == "memory" else out["tok_s"]

    def search(self, kind):
        """The best configuration for a kind of test, from short runs of all."""
        if kind not in self.best:
            short = {"decode": ["decode:16:1:0"], "prefill": ["prefill:256:0"], "decode8": ["decode:8:8:0"]}
            seen = {}
            for config in CONFIGS:
                try:
                    if kind in short:
                        seen[config] = lines_of(self.command(config, "f16", short[kind]))[0]["tok_s"]
                    else:
                        seen[config] = -self.run(kind, config)
                except Failed as why:
                    peers.say(f"{self.name}, repack {config[0]}, flash attention {config[1]}: {why}")
            if not seen:
                raise Failed(f"{self.name}: no configuration runs")
            self.best[kind] = max(seen, key=seen.get)
            peers.say(f"{self.name}, {kind}: best with repack {self.best[kind][0]}, flash attention "
                      f"{self.best[kind][1]}")
        return self.best[kind]

    def measure(self, test):
        config = self.search(TESTS[test][5])
        # A KV cache of 8 bits wants flash attention.
        return self.run(test, (config[0], 1) if TESTS[test][4] == "q8" else config)


class Wheel:
    def __init__(self, name, python, path, threads):
        self.name = name
        self.start = [python, str(peers.HERE / "wheel_peers.py"), name, path, str(threads)]

    def measure(self, test):
        kind, n, batch, depth, kv, _ = TESTS[test]
        if kind == "first" or depth != 0 or kv != "f16":
            raise Failed("not measured")
        spec = f"prefill:{n}:0" if kind == "prefill" else f"decode:{n}:{batch}:0"
        out = lines_of([*self.start, spec])[0]
        return out["private_bytes"] / 1e6 if kind == "memory" else out["tok_s"]


def engines_for(path, options):
    engines = [Ganglion(path, options.threads)]
    makers = {f"llama-{variant}": lambda v=variant: Llama(path, options.threads, v)
              for variant in peers.llama_variants()}
    makers["xllamacpp"] = lambda: Wheel("xllamacpp", peers.xllamacpp(), path, options.threads)
    makers["openvino"] = lambda: Wheel("openvino", peers.openvino(), path, options.threads)
    for name, make in makers.items():
        if options.peers and name not in options.peers.split(","):
            continue
        try:
            engines.append(make())
        except (peers.Missing, OSError, subprocess.CalledProcessError) as why:
            peers.say(f"{name} is left out: {why}")
    return engines


class BusyCore:
    """Another process that keeps the last of our processors busy."""

    def __enter__(self):
        last = max(os.sched_getaffinity(0))
        self.process = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{last}])\n"
                                         "while True: pass"])
        time.sleep(0.2)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def best_file(options):
    return pathlib.Path(options.record + ".best") if options.record else None


def load_best(name, engines, options):
    file = best_file(options)
    kept = json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else {}
    for engine in engines:
        if isinstance(engine, Llama):
            engine.best = {kind: tuple(config) for kind, config in kept.get(f"{name} {engine.name}", {}).items()}


def save_best(name, engines, options):
    file = best_file(options)
    if file:
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        kept.update({f"{name} {e.name}": e.best for e in engines if isinstance(e, Llama)})
        file.write_text(json.dumps(kept), encoding="utf-8")


def rounds_of(name, path, options):
    """One record for each measurement: {"model", "test", "engine", "config", "value"}."""
    engines = engines_for(path, options)
    load_best(name, engines, options)
    dead = set()
    for test in options.tests.split(","):
        for engine in engines:  # not within a round, nor beside a busy core
            try:
                if isinstance(engine, Llama):
                    engine.search(TESTS[test][5])
            except Failed as why:
                dead.add((engine.name, test))
                peers.say(f"{name}, {test}: {why}")
        save_best(name, engines, options)
        for number in range(options.rounds):
            turn = number % len(engines)
            for engine in engines[turn:] + engines[:turn]:
                if (engine.name, test) in dead:
                    continue
                try:
                    if test == "busy":
                        with BusyCore():
                            value = engine.measure(test)
                    else:
                        value = engine.measure(test)
                except Failed as why:
                    dead.add((engine.name, test))
                    peers.say(f"{name}, {test}: {engine.name}: {why}")
                    continue
                peers.say(f"{name}, {test}, round {number + 1}: {engine.name} {value:.4g}")
                yield {"model": name, "test": test, "engine": engine.name, "value": value,
                       "config": engine.best.get(TESTS[test][5]) if isinstance(engine, Llama) else None}


def summary(records):
    """[{"model", "test", "engines": {engine: {"median", "min", "max", "rounds", "ratio"}}}], where a ratio says how
    many times ganglion is better."""
    rows = {}
    for r in records:
        rows.setdefault((r["model"], r["test"]), {}).setdefault(r["engine"], []).append(r["value"])
    out = []
    for (model, test), engines in rows.items():
        row = {"model": model, "test": test, "what": WHAT[test], "engines": {}}
        for engine, values in engines.items():
            row["engines"][engine] = {"median": statistics.median(values), "min": min(values),
                                      "max": max(values), "rounds": len(values)}
        ours = row["engines"].get("ganglion")
        for engine, figures in row["engines"].items():
            if ours and engine != "ganglion":
                ratio = ours["median"] / figures["median"]
                figures["ratio"] = 1 / ratio if test in SMALLER_IS_BETTER else ratio
        out.append(row)
    order = {name: i for i, name in enumerate(TESTS)}
    return sorted(out, key=lambda row: (row["model"], order[row["test"]]))


def show(rows, file=sys.stdout):
    model = None
    for row in rows:
        if row["model"] != model:
            model = row["model"]
            print(f"\n{model}: medians (lowest to highest), and how many times better ganglion is", file=file)
        print(f"  {row['what']}", file=file)
        for engine, f in row["engines"].items():
            ratio = f"   {f['ratio']:6.2f}x" if "ratio" in f else ""
            print(f"    {engine:14} {f['median']:10.4g}  ({f['min']:.4g} to {f['max']:.4g}, {f['rounds']}){ratio}",
                  file=file)


def find(name):
    """(name to show, path) of a fetched model or a file."""
    if os.path.exists(name):
        return pathlib.Path(name).stem, name
    result = subprocess.run([sys.executable, FETCH, "--path", name], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, check=False)
    return name, result.stdout.strip() if result.returncode == 0 else None


def read_records(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def arguments():
    parser = argparse.ArgumentParser(description="Compare the speed of ganglion and its peers.")
    parser.add_argument("-m", "--model", action="append",
                        help="name of tools/fetch_models or a GGUF file; default: all that are there")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tests", default=",".join(TESTS), help=f"of {','.join(TESTS)}; default: all")
    parser.add_argument("--peers", help="of llama-plain,llama-amx,xllamacpp,openvino; default: all")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="0: only find the best configurations")
    parser.add_argument("--json", action="store_true", help="print JSON on standard output")
    parser.add_argument("--record", metavar="FILE", help="add the rounds to FILE instead of printing a table")
    parser.add_argument("--report", metavar="FILE", help="measure nothing: the table of FILE")
    return parser.parse_args()


def main():
    options = arguments()
    if options.report:
        records = read_records(options.report)
    else:
        unknown = set(options.tests.split(",")) - set(TESTS)
        if unknown:
            sys.exit(f"unknown tests: {', '.join(sorted(unknown))} (there are {', '.join(TESTS)})")
        if not os.access(BIN, os.X_OK):
            sys.exit(f"{BIN} is not there: make")
        models = [find(name) for name in options.model or DECODERS]
        missing = [name for name, path in models if not path]
        if options.model and missing:
            sys.exit(f"not there: {', '.join(missing)} (tools/fetch_models)")
        for name in missing:
            peers.say(f"{name}: not fetched, left out")
        records = []
        for name, path in models:
            for record in rounds_of(name, path, options) if path else ():
                records.append(record)
                if options.record:
                    with open(options.record, "a", encoding="utf-8") as f:
                        f.write(json.dumps(record) + "\n")
        if options.record:
            return
    rows = summary(records)
    if options.json:
        json.dump({"threads": options.threads, "results": rows}, sys.stdout, indent=1)
        print()
    else:
        show(rows)


if __name__ == "__main__":
    main()
