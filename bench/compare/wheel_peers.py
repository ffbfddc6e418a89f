"""Speed of a peer that comes as a wheel, run by that peer's own python:

    python wheel_peers.py xllamacpp|openvino MODEL THREADS TEST...

TEST and the lines of JSON printed are those of llama_driver.c; a test that the peer has no way to run is
left out. Start-up is that of the library without the interpreter's and the imports'."""
import json
import sys
import time


def private_bytes():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))


def tell(test, tok_s):
    print(json.dumps({"test": test, "tok_s": tok_s, "private_bytes": private_bytes()}), flush=True)


def ids(n, first=500):
    return [(7919 * i + 13) % 20000 + first for i in range(n)]


def run_xllamacpp(model, threads, tests):
    import concurrent.futures
    import xllamacpp as x
    sizes = [[int(part) for part in test.split(":")[1:]] for test in tests]
    parallel = max((size[1] for test, size in zip(tests, sizes) if test.startswith("decode")), default=1)
    params = x.CommonParams()
    params.model.path = model
    params.n_ctx = (max(size[0] for size in sizes) + 256) * parallel
    params.n_batch = params.n_ubatch = 512
    params.n_parallel = parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = True
    params.port = 0
    server = x.Server(params)

    def ask(prompt, n):
        return server.handle_completions({"prompt": prompt, "n_predict": n, "max_tokens": n, "temperature": 0,
                                          "cache_prompt": False, "ignore_eos": True})["timings"]

    ask(ids(64), 4)
    for test, size in zip(tests, sizes):
        if size[-1] != 0:
            continue  # at depth: would compute the whole context again
        if test.startswith("prefill"):
            tell(test, ask(ids(size[0]), 1)["prompt_per_second"])
        elif size[1] == 1:
            tell(test, ask(ids(1), size[0])["predicted_per_second"])
        else:
            with concurrent.futures.ThreadPoolExecutor(size[1]) as pool:
                seen = list(pool.map(lambda i: ask(ids(1, 500 + i), size[0]), range(size[1])))
            tell(test, sum(timing["predicted_per_second"] for timing in seen))


def run_openvino(model, threads, tests):
    import numpy
    import openvino
    import openvino_genai as genai
    # The scheduler of many requests is left off: it is slower for one.
    pipe = genai.LLMPipeline(model, "CPU", INFERENCE_NUM_THREADS=threads, ATTENTION_BACKEND="SDPA")

    def ask(n_prompt, n):
        config = genai.GenerationConfig()
        config.max_new_tokens = n
        config.min_new_tokens = n
        config.ignore_eos = True
        config.do_sample = False
        config.apply_chat_template = False
        prompt = openvino.Tensor(numpy.array([ids(n_prompt)], dtype=numpy.int64))
        mask = openvino.Tensor(numpy.ones((1, n_prompt), dtype=numpy.int64))
        start = time.perf_counter()
        metrics = pipe.generate(genai.TokenizedInputs(prompt, mask), config).perf_metrics
        return metrics, time.perf_counter() - start

    ask(64, 4)
    for test in tests:
        size = [int(part) for part in test.split(":")[1:]]
        if test.startswith("prefill") and size[1] == 0:
            metrics, seconds = ask(size[0], 1)
            tell(test, size[0] / seconds)
        elif test.startswith("decode") and size[1:] == [1, 0]:
            metrics, seconds = ask(4, size[0])
            tell(test, 1000.0 / metrics.get_tpot().mean)


if __name__ == "__main__":
    {"xllamacpp": run_xllamacpp, "openvino": run_openvino}[sys.argv[1]](
        sys.argv[2], int(sys.argv[3]), sys.argv[4:])
