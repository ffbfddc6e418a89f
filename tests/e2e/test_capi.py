"""The C API from outside: Python's ctypes on the shared library, with structs written from the headers.

A wrong layout, a missing export or a changed signature shows here and nowhere else."""
import ctypes as c
import math

import pytest

import capi
from capi import (E_ARG, E_NOT_FOUND, OK, ON_TEXT, ON_TOKEN, GenerateOptions, GenerateResult,
                  ModelOptions, SessionOptions)

TINY = capi.ROOT / "tests" / "golden" / "tiny" / "gguf_llama" / "model.gguf"


@pytest.fixture(scope="module")
def lib():
    return capi.load()


@pytest.fixture
def model(lib):
    handle = c.c_void_p()
    options = ModelOptions(threads=2)
    status = lib.gn_model_open(str(TINY).encode(), c.byref(options), c.byref(handle))
    assert status == OK, lib.gn_error_message()
    assert lib.gn_error_message() == b""
    yield handle
    lib.gn_model_close(handle)


@pytest.fixture
def session(lib, model):
    handle = c.c_void_p()
    options = SessionOptions(n_ctx=64)
    assert lib.gn_session_create(model, c.byref(options), c.byref(handle)) == OK, \
        lib.gn_error_message()
    yield handle
    lib.gn_session_destroy(handle)


def ids_of(values):
    return (c.c_int32 * len(values))(*values)


def evaluate(lib, session, n_vocab, ids):
    logits = (c.c_float * (n_vocab * len(ids)))()
    status = lib.gn_session_eval(session, ids_of(ids), c.c_size_t(len(ids)), logits,
                                 c.c_size_t(len(ids)))
    assert status == OK, lib.gn_error_message()
    return [list(logits[i * n_vocab:(i + 1) * n_vocab]) for i in range(len(ids))]


def test_version_and_codes(lib):
    assert lib.gn_version().count(b".") == 2
    assert lib.gn_status_name(-2) == b"GN_E_NOMEM"
    assert lib.gn_status_name(12345) == b"GN_E_?"


def test_info(lib, model):
    info = lib.gn_model_get_info(model)
    assert info.architecture == b"llama"
    assert info.cpu_level
    assert info.n_vocab > 0 and info.n_embd > 0 and info.n_layer > 0
    assert info.n_params > 0 and info.weight_bytes > 0 and info.kv_bytes_per_tok > 0
    assert not info.is_encoder
    assert info.threads == 2


def test_missing_file(lib):
    handle = c.c_void_p()
    assert lib.gn_model_open(b"/nowhere/x.gguf", None, c.byref(handle)) == E_NOT_FOUND
    assert b"/nowhere/x.gguf" in lib.gn_error_message()
    assert handle.value is None


def test_tokenize_and_back(lib, model):
    ids, n = c.POINTER(c.c_int32)(), c.c_size_t()
    text = b"abba"
    status = lib.gn_model_tokenize(model, text, c.c_size_t(len(text)), 0, c.byref(ids), c.byref(n))
    assert status == OK, lib.gn_error_message()
    assert n.value > 0
    out, out_len = c.POINTER(c.c_char)(), c.c_size_t()
    status = lib.gn_model_detokenize(model, ids, n, c.c_bool(False), c.byref(out), c.byref(out_len))
    assert status == OK, lib.gn_error_message()
    assert out[:out_len.value] == text
    lib.gn_release(ids)
    lib.gn_release(out)
    lib.gn_release(None)


def test_session_eval_truncate_set(lib, model, session):
    n_vocab = lib.gn_model_get_info(model).n_vocab
    rows = evaluate(lib, session, n_vocab, [1, 5, 9, 7])
    assert all(math.isfinite(v) for row in rows for v in row)
    assert lib.gn_session_length(session) == 4
    assert lib.gn_session_tokens(session)[:4] == [1, 5, 9, 7]
    assert lib.gn_session_truncate(session, c.c_size_t(2)) == OK
    again = evaluate(lib, session, n_vocab, [9])
    assert again[0] == rows[2], "the same prefix gives the same bits"
    reused = c.c_size_t()
    ids = ids_of([1, 5, 9, 8])
    assert lib.gn_session_set(session, ids, c.c_size_t(4), c.byref(reused)) == OK
    assert reused.value == 3


def test_an_id_out_of_range(lib, model, session):
    n_vocab = lib.gn_model_get_info(model).n_vocab
    status = lib.gn_session_eval(session, ids_of([n_vocab]), c.c_size_t(1), None, c.c_size_t(0))
    assert status == E_ARG
    assert lib.gn_session_length(session) == 0


def test_sample_step_and_generate(lib, model, session):
    n_vocab = lib.gn_model_get_info(model).n_vocab
    params = lib.gn_sample_defaults()
    assert params.temperature == 1.0 and params.top_p == 1.0 and params.seed == 0
    params.temperature = 0.0
    sampler = c.c_void_p()
    status = lib.gn_sampler_create(c.byref(params), c.c_int32(n_vocab), c.byref(sampler))
    assert status == OK, lib.gn_error_message()
    row = evaluate(lib, session, n_vocab, [1, 5])[1]
    chosen, logprob = c.c_int32(), c.c_float()
    status = lib.gn_session_next(session, sampler, c.byref(chosen), c.byref(logprob))
    assert status == OK, lib.gn_error_message()
    best = max(range(n_vocab), key=lambda i: (row[i], -i))
    assert chosen.value == best
    total = math.log(sum(math.exp(v - row[best]) for v in row))
    assert abs(logprob.value + total) < 1e-4

    tokens, text = [], []
    options = GenerateOptions(max_tokens=5)
    options.on_text = ON_TEXT(lambda _ctx, data, n: text.append(data[:n]) or True)
    options.on_token = ON_TOKEN(lambda _ctx, i, _lp: tokens.append(i) or True)
    result = GenerateResult()
    status = lib.gn_generate(session, sampler, c.byref(options), c.byref(result))
    assert status == OK, lib.gn_error_message()
    assert result.n_tokens == len(tokens) and 1 <= len(tokens) <= 5
    assert b"".join(text).decode("utf-8", "strict") is not None
    lib.gn_sampler_destroy(sampler)


def test_bad_parameters_are_named(lib, model):
    params = lib.gn_sample_defaults()
    params.top_p = math.nan
    sampler = c.c_void_p()
    assert lib.gn_sampler_create(c.byref(params), c.c_int32(10), c.byref(sampler)) == E_ARG
    assert b"top_p" in lib.gn_error_message()
