"""Serve MODEL over HTTP with xllamacpp (llama.cpp's server in a library), until standard input ends:

    python peer_server.py MODEL THREADS CONTEXT SLOTS

Prints the address when it can be used. One KV pool is shared by all slots, prompts are kept."""
import sys

import xllamacpp


def main():
    model, threads, context, slots = sys.argv[1], *map(int, sys.argv[2:])
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = context
    params.n_parallel = slots
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.port = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
