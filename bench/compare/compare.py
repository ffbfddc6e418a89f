#!/usr/bin/env python3
"""Prefill and decode of ganglion and llama.cpp, in turn, on the same file with the same threads.

A round measures one engine after the other, each in a fresh process, in an order that alternates; the
medians over the rounds are compared. Both are warmed up in each process before the clock starts, and
llama.cpp gets the better of flash attention on and off, per test. So a busy machine slows both alike.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
FETCH = ROOT / "tools" / "fetch_models"
DECODERS = ["smollm2-135m", "gemma3-270m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]


# ---- llama.cpp, in a process of its own ------------------------------------------------------------

def llamacpp_rates(options):
    """{"prefill": tokens/s, "decode": tokens/s, ...} through the C interface of the package."""
    import llama_cpp as ll
    # Held here, because the library keeps only the bare pointer.
    quiet = ll.llama_log_callback(lambda level, text, data: None)
    ll.llama_log_set(quiet, None)
    ll.llama_backend_init()
    start = time.perf_counter()
    model = ll.llama_model_load_from_file(options.model.encode(), ll.llama_model_default_params())
    if not model:
        sys.exit(f"llama.cpp can't load {options.model}")
    load = time.perf_counter() - start
    vocab = ll.llama_vocab_n_tokens(ll.llama_model_get_vocab(model))
    ids = [(7919 * i + 13) % (vocab - 1000) + 500 for i in range(max(options.prompt, options.n))]
    best = {"prefill": 0.0, "decode": 0.0, "load_seconds": load}
    for flash in (0, 1):
        params = ll.llama_context_default_params()
        params.n_ctx = max(options.prompt, options.n) + 64
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = options.threads
        params.flash_attn_type = flash
        context = ll.llama_init_from_model(model, params)
        if not context:
            continue

        def decode(part):
            array = (ll.llama_token * len(part))(*part)
            if ll.llama_decode(context, ll.llama_batch_get_one(array, len(part))) != 0:
                sys.exit("llama_decode failed")

        def clear():
            ll.llama_memory_clear(ll.llama_get_memory(context), True)

        def seconds(parts):
            clear()
            begin = time.perf_counter()
            for part in parts:
                decode(part)
            return time.perf_counter() - begin

        prompt = [ids[i:min(i + 512, options.prompt)] for i in range(0, options.prompt, 512)]
        decode(ids[:min(64, options.prompt)])
        clear()
        best["prefill"] = max(best["prefill"], options.prompt / seconds(prompt))
        best["decode"] = max(best["decode"],
                             options.n / seconds([[token] for token in ids[:options.n]]))
        ll.llama_free(context)
    return best


def llamacpp(path, options):
    command = [sys.executable, __file__, "--peer", "-m", path, "-t", str(options.threads), "-p",
               str(options.prompt), "-n", str(options.n)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


# ---- ganglion --------------------------------------------------------------------------------------

def ganglion(path, options):
    command = [BIN, "bench", "-m", path, "-p", str(options.prompt), "-n", str(options.n), "-b", "1",
               "-t", str(options.threads), "-r", "1", "--json"]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    rates = {"level": out.get("level"), "commit": out.get("commit")}
    for result in out["results"]:
        if result["test"] in ("prefill", "decode") and result.get("depth", 0) == 0:
            rates[result["test"]] = result["tok_s"]["median"]
        if result["test"] == "cold_start":
            rates["load_seconds"] = result["seconds"]
    return rates


# ---- both ------------------------------------------------------------------------------------------

def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(name, path, options):
    engines = [("ganglion", ganglion), ("llamacpp", llamacpp)]
    seen = {engine: [] for engine, _ in engines}
    for number in range(options.rounds):
        for engine, measure in engines[::-1 if number % 2 else 1]:
            seen[engine].append(measure(path, options))
            rates = seen[engine][-1]
            print(f"{name}, round {number + 1} of {options.rounds}: {engine} prefill "
                  f"{rates['prefill']:.1f}, decode {rates['decode']:.1f} tokens/s", file=sys.stderr,
                  flush=True)
    result = {"model": name, "threads": options.threads, "rounds": options.rounds, "tests": {}}
    for test, n in (("prefill", options.prompt), ("decode", options.n)):
        figures = {engine: spread([rates[test] for rates in seen[engine]]) for engine in seen}
        figures["n"] = n
        figures["ratio"] = figures["ganglion"]["median"] / figures["llamacpp"]["median"]
        result["tests"][test] = figures
    result["load_seconds"] = {engine: statistics.median([rates["load_seconds"] for rates in seen[engine]])
                              for engine in seen if all("load_seconds" in r for r in seen[engine])}
    result["level"] = seen["ganglion"][0]["level"]
    result["commit"] = seen["ganglion"][0]["commit"]
    return result


def show(result):
    print(f"{result['model']}, {result['threads']} threads, {result['level']}, medians of "
          f"{result['rounds']} rounds in tokens/s (lowest to highest)")
    for test, figures in result["tests"].items():
        columns = "   ".join(
            f"{engine} {figures[engine]['median']:9.1f} ({figures[engine]['min']:.1f} to "
            f"{figures[engine]['max']:.1f})" for engine in ("ganglion", "llamacpp"))
        print(f"  {test:8}{figures['n']:5}   {columns}   ratio {figures['ratio']:.2f}")


def system_info():
    import llama_cpp
    return f"llama-cpp-python {llama_cpp.__version__}: " + llama_cpp.llama_print_system_info().decode()


def find(name):
    """(name to show, path) of a fetched model or a file."""
    if os.path.exists(name):
        return pathlib.Path(name).stem, name
    result = subprocess.run([sys.executable, FETCH, "--path", name], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL, check=False)
    return name, result.stdout.strip() if result.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description="Compare the speed of ganglion and llama.cpp.")
    parser.add_argument("-m", "--model", action="append",
                        help="name of tools/fetch_models or a GGUF file; default: all that are there")
    parser.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-p", "--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("-n", type=int, default=128, help="tokens to decode")
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON on standard output")
    parser.add_argument("--at-least", type=float, metavar="RATIO",
                        help="exit 1 if a ratio to llama.cpp is below")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        options.model = options.model[0]
        print(json.dumps(llamacpp_rates(options)))
        return 0
    if not os.access(BIN, os.X_OK):
        sys.exit(f"{BIN} is not there: make")
    models = [find(name) for name in options.model or DECODERS]
    missing = [name for name, path in models if not path]
    if options.model and missing:
        sys.exit(f"not there: {', '.join(missing)} (tools/fetch_models)")
    for name in missing:
        print(f"{name}: not fetched, left out", file=sys.stderr)
    print(system_info(), file=sys.stderr)
    results = [compare(name, path, options) for name, path in models if path]
    if options.json:
        json.dump({"peer": system_info(), "results": results}, sys.stdout, indent=1)
        print()
    else:
        for result in results:
            show(result)
    ratios = [figures["ratio"] for result in results for figures in result["tests"].values()]
    return 1 if options.at_least and min(ratios, default=0) < options.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
