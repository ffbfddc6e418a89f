"""The C API in Python's ctypes: structs written from the headers, and the shared library with its results' types."""
import ctypes as c
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GANGLION_BUILD", ROOT / "build" / "release"))

OK, E_ARG, E_NOT_FOUND, E_LIMIT = 0, -1, -6, -8


class ModelOptions(c.Structure):
    _fields_ = [("threads", c.c_int32), ("activations", c.c_int), ("kv_bytes", c.c_uint64),
                ("prefill_threads", c.c_int32), ("kv_format", c.c_int), ("cache", c.c_int),
                ("cache_folder", c.c_char_p), ("cache_bytes", c.c_uint64)]


class ModelInfo(c.Structure):
    _fields_ = [("architecture", c.c_char_p), ("name", c.c_char_p), ("cpu_level", c.c_char_p),
                ("threads", c.c_int32), ("n_vocab", c.c_int32), ("n_embd", c.c_int32),
                ("n_layer", c.c_int32), ("n_ctx_train", c.c_int32), ("n_params", c.c_uint64),
                ("weight_bytes", c.c_uint64), ("read_bytes_per_tok", c.c_uint64),
                ("kv_bytes_per_tok", c.c_uint64), ("cache_bytes", c.c_uint64),
                ("is_encoder", c.c_bool), ("has_chat_template", c.c_bool), ("bos", c.c_int32),
                ("eos", c.c_int32)]


class SessionOptions(c.Structure):
    _fields_ = [("n_ctx", c.c_int32), ("n_batch", c.c_int32)]


class SampleParams(c.Structure):
    _fields_ = [("temperature", c.c_float), ("top_k", c.c_int32), ("top_p", c.c_float),
                ("min_p", c.c_float), ("typical_p", c.c_float), ("top_n_sigma", c.c_float),
                ("xtc_probability", c.c_float), ("xtc_threshold", c.c_float),
                ("repetition_penalty", c.c_float), ("presence_penalty", c.c_float),
                ("frequency_penalty", c.c_float), ("penalty_last_n", c.c_int32),
                ("dry_multiplier", c.c_float), ("dry_base", c.c_float),
                ("dry_allowed_length", c.c_int32), ("dry_last_n", c.c_int32),
                ("dry_breakers", c.POINTER(c.c_int32)), ("n_dry_breakers", c.c_size_t),
                ("mirostat_tau", c.c_float), ("mirostat_eta", c.c_float),
                ("logit_bias", c.c_void_p), ("n_logit_bias", c.c_size_t),
                ("end_ids", c.POINTER(c.c_int32)), ("n_end_ids", c.c_size_t),
                ("min_tokens", c.c_int32), ("ignore_eos", c.c_bool), ("seed", c.c_uint64)]


ON_TEXT = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(c.c_char), c.c_size_t)
ON_TOKEN = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.c_int32, c.c_float)


class GenerateOptions(c.Structure):
    _fields_ = [("max_tokens", c.c_int32), ("stop", c.POINTER(c.c_char_p)), ("n_stop", c.c_size_t),
                ("stop_ids", c.POINTER(c.c_int32)), ("n_stop_ids", c.c_size_t),
                ("special", c.c_bool), ("on_text", ON_TEXT), ("on_token", ON_TOKEN),
                ("ctx", c.c_void_p), ("grammar", c.c_void_p)]


class GenerateResult(c.Structure):
    _fields_ = [("finish", c.c_int), ("n_tokens", c.c_int32), ("stop_index", c.c_int32),
                ("grammar_closed", c.c_bool)]


def load():
    library = c.CDLL(str(BUILD / "libganglion.so"))
    library.gn_error_message.restype = c.c_char_p
    library.gn_status_name.restype = c.c_char_p
    library.gn_version.restype = c.c_char_p
    library.gn_model_get_info.restype = ModelInfo
    library.gn_sample_defaults.restype = SampleParams
    library.gn_session_length.restype = c.c_size_t
    library.gn_session_tokens.restype = c.POINTER(c.c_int32)
    library.gn_sample_logsumexp.restype = c.c_double
    library.gn_model_is_end.restype = c.c_bool
    for name in ("gn_model_close", "gn_session_destroy", "gn_sampler_destroy", "gn_grammar_release",
                 "gn_release"):
        getattr(library, name).restype = None
        getattr(library, name).argtypes = [c.c_void_p]
    return library
