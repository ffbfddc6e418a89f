"""Answers under a grammar: schemas drawn at random, temperatures up to 2, limits down to 16 tokens. Every answer is JSON
that another implementation (jsonschema) finds valid.

GANGLION_CONSTRAINED="SEED:COUNT" chooses how many (default 0:70), GANGLION_CONSTRAINED_MODELS which models."""
import ctypes as c
import datetime
import json
import os
import pathlib
import random
import re
import subprocess

import jsonschema
import pytest

import capi
from capi import E_LIMIT, OK, ON_TEXT, ON_TOKEN

BIN = os.environ.get("GANGLION_BIN", str(capi.ROOT / "build/release/ganglion"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
MODELS = CACHE / "ganglion/models"
SMALL = "smollm2-135m"
SEED, COUNT = map(int, os.environ.get("GANGLION_CONSTRAINED", "0:70").split(":"))
NAMES = os.environ.get("GANGLION_CONSTRAINED_MODELS", SMALL).split(",")
PROMPTS = ["Describe a person as JSON.", "List three cities.", "What is the weather like today?", "{\"", "Invent a robot."]

pytestmark = pytest.mark.skipif(not (MODELS / SMALL).exists(),
                                reason="needs smollm2-135m: tools/fetch_models smollm2-135m")


# ---- schemas ----

class Schemas:
    """Draws schemas of what docs/JSON_SCHEMA.md says is enforced."""
    WORDS = ["name", "age", "city", "tags", "id", "größe", "a b", "x\"y", "unit", "value", "next", "日本"]
    PATTERNS = ["^[a-z]{2,5}$", "^[A-Z][a-z]+( [A-Z][a-z]+)?$", "^(red|green|blue)$", "[0-9]{3}", "^\\d{4}-\\d{2}$"]
    FORMATS = ["date", "ipv4", "ipv6", "uuid", "email"]

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def string(self):
        kind = self.rng.randrange(5)
        if kind == 0:
            low = self.rng.randrange(6)
            return {"type": "string", "minLength": low, "maxLength": low + self.rng.randrange(12)}
        if kind == 1:
            return {"type": "string", "pattern": self.rng.choice(self.PATTERNS)}
        if kind == 2:
            return {"type": "string", "format": self.rng.choice(self.FORMATS)}
        return {"type": "string"}

    def number(self):
        out = {"type": self.rng.choice(["integer", "number"])}
        if self.rng.random() < 0.5:
            out[self.rng.choice(["minimum", "exclusiveMinimum"])] = self.rng.randrange(-50, 50)
        if self.rng.random() < 0.5:
            out[self.rng.choice(["maximum", "exclusiveMaximum"])] = self.rng.randrange(60, 5000)
        if out["type"] == "integer" and self.rng.random() < 0.2:
            out["multipleOf"] = self.rng.choice([2, 5, 7])
        return out

    def choice(self):
        values = ["red", "green", 1, 2.5, None, True, [1, 2], {"k": "v"}, "", "ä\n\""]
        if self.rng.random() < 0.3:
            return {"const": self.rng.choice(values)}
        return {"enum": self.rng.sample(values, self.rng.randint(1, 5))}

    def array(self, depth):
        out = {"type": "array"}
        kind = self.rng.randrange(4)
        if kind == 0:
            out["prefixItems"] = [self.any(depth - 1) for _ in range(self.rng.randint(1, 3))]
            out["items"] = False
            out["minItems"] = self.rng.randint(0, len(out["prefixItems"]))
            return out
        if kind == 1:
            out["items"] = {"enum": ["a", "b", "c", 1, 2]}
            out["uniqueItems"] = True
        else:
            out["items"] = self.any(depth - 1)
        if self.rng.random() < 0.6:
            out["minItems"] = self.rng.randrange(3)
            out["maxItems"] = out["minItems"] + self.rng.randrange(4)
        return out

    def object(self, depth):
        names = self.rng.sample(self.WORDS, self.rng.randint(0, 4))
        out = {"type": "object", "properties": {n: self.any(depth - 1) for n in names}}
        out["required"] = [n for n in names if self.rng.random() < 0.6]
        kind = self.rng.randrange(4)
        if kind < 2:
            out["additionalProperties"] = False
        elif kind == 2:
            out["additionalProperties"] = self.any(depth - 1)
        else:
            out["patternProperties"] = {"^x_[a-z]+$": self.any(depth - 1)}
            out["additionalProperties"] = False
        if len(names) > 1 and self.rng.random() < 0.3:
            out["dependentRequired"] = {names[0]: [names[1]]}
        return out

    def any(self, depth):
        simple = [self.string, self.number, self.choice, lambda: {"type": "boolean"}, lambda: {"type": "null"}]
        if depth <= 0 or self.rng.random() < 0.35:
            return self.rng.choice(simple)()
        kind = self.rng.randrange(8)
        if kind < 4:
            return self.object(depth)
        if kind < 6:
            return self.array(depth)
        if kind == 6:
            return {"anyOf": [self.any(depth - 1) for _ in range(self.rng.randint(2, 3))]}
        return {"type": ["object", "array", "string"], "maxLength": 20, "maxItems": 2, "maxProperties": 2}

    def top(self):
        schema = self.object(3) if self.rng.random() < 0.7 else self.any(3)
        if self.rng.random() < 0.2:
            tree = {"type": "object", "properties": {"v": schema, "left": {"$ref": "#/$defs/tree"},
                                                     "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                    "required": ["v"], "additionalProperties": False}
            schema = {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}
        return schema


FORMATS = jsonschema.FormatChecker(["ipv4", "ipv6", "uuid", "email"])


@FORMATS.checks("date", raises=ValueError)
def is_date(value):
    """RFC 3339 has a year 0000, a leap year, and datetime has none."""
    if isinstance(value, str):
        datetime.date.fromisoformat(re.sub("^0000", "2000", value))
    return True


def check(schema, text):
    jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(json.loads(text))


# ---- one model ----

class Model:
    def __init__(self, lib, name):
        self.lib = lib
        path = next(p for p in sorted((MODELS / name).iterdir()) if p.suffix == ".gguf")
        self.handle, self.session = c.c_void_p(), c.c_void_p()
        options = capi.ModelOptions(threads=2)
        self.ok(lib.gn_model_open(str(path).encode(), c.byref(options), c.byref(self.handle)))
        self.ok(lib.gn_session_create(self.handle, c.byref(capi.SessionOptions(n_ctx=512)), c.byref(self.session)))
        self.n_vocab = lib.gn_model_get_info(self.handle).n_vocab

    def close(self):
        self.lib.gn_session_destroy(self.session)
        self.lib.gn_model_close(self.handle)

    def ok(self, status):
        assert status == OK, self.lib.gn_error_message().decode()

    def prompt(self, text):
        ids, n = c.POINTER(c.c_int32)(), c.c_size_t()
        self.ok(self.lib.gn_model_tokenize(self.handle, text.encode(), c.c_size_t(len(text.encode())), 2,
                                           c.byref(ids), c.byref(n)))
        self.ok(self.lib.gn_session_set(self.session, ids, n, None))
        self.lib.gn_release(ids)
        return n.value

    def grammar(self, schema):
        text = json.dumps(schema).encode()
        grammar, pointer = c.c_void_p(), c.c_void_p()
        self.ok(self.lib.gn_grammar_from_schema(text, c.c_size_t(len(text)), None, c.byref(grammar),
                                                c.byref(pointer)))
        return grammar

    def answer(self, grammar, limit, temperature, seed, forced_apart=False):
        """status, text, ids, result. With on_token the tokens' log-probabilities are wanted, which is another way
        through the engine."""
        params = self.lib.gn_sample_defaults()
        params.temperature, params.seed = temperature, seed
        sampler = c.c_void_p()
        self.ok(self.lib.gn_sampler_create(c.byref(params), c.c_int32(self.n_vocab), c.byref(sampler)))
        text, ids = [], []
        options = capi.GenerateOptions(max_tokens=limit, grammar=grammar)
        options.on_text = ON_TEXT(lambda _ctx, data, n: text.append(data[:n]) or True)
        if forced_apart:
            options.on_token = ON_TOKEN(lambda _ctx, i, _lp: ids.append(i) or True)
        result = capi.GenerateResult()
        status = self.lib.gn_generate(self.session, sampler, c.byref(options), c.byref(result))
        self.lib.gn_sampler_destroy(sampler)
        return status, b"".join(text), ids, result


@pytest.fixture(scope="module")
def lib():
    return capi.load()


@pytest.fixture(scope="module", params=NAMES)
def model(lib, request):
    if not (MODELS / request.param).exists():
        pytest.skip(f"needs {request.param}")
    one = Model(lib, request.param)
    yield one
    one.close()


def test_every_answer_fulfils_its_schema(model):
    n_closed, n_raised = 0, 0
    for seed in range(SEED, SEED + COUNT):
        schemas = Schemas(seed)
        schema = schemas.top()
        limit = schemas.rng.choice([16, 16, 24, 32, 64, 128])
        temperature = schemas.rng.choice([0.0, 0.7, 1.0, 1.5, 2.0])
        what = f"seed {seed}: {json.dumps(schema)}, limit {limit}, temperature {temperature}"
        grammar = model.grammar(schema)
        n_prompt = model.prompt(schemas.rng.choice(PROMPTS))
        status, text, _, result = model.answer(grammar, limit, temperature, seed)
        if status == E_LIMIT:  # the shortest text is longer: with what it needs there is an answer
            needed = int(re.search(r"needs (\d+) tokens", model.lib.gn_error_message().decode())[1])
            assert needed > limit, what
            limit, n_raised = needed, n_raised + 1
            status, text, _, result = model.answer(grammar, limit, temperature, seed)
        assert status == OK, f"{what}: {model.lib.gn_error_message().decode()}"
        try:
            check(schema, text.decode())
        except Exception as fault:
            raise AssertionError(f"{what}: {text!r}: {fault}") from fault
        assert result.n_tokens <= limit, what
        assert model.lib.gn_session_length(model.session) == n_prompt + result.n_tokens, what
        assert result.finish == (1 if result.grammar_closed else 0), what
        n_closed += result.grammar_closed
        model.lib.gn_grammar_release(grammar)
    print(f"{COUNT} answers, {n_closed} closed at their limit, {n_raised} limits raised to the least")
    assert COUNT < 50 or (n_closed > 5 and n_closed < COUNT)


def test_the_way_through_the_engine_does_not_matter(model):
    """Forced tokens evaluated together or not, with log-probabilities or not: the same answer."""
    schema = {"type": "object", "properties": {"first_name": {"type": "string", "maxLength": 8},
                                               "kind": {"enum": ["organisation", "person"]}},
              "required": ["first_name", "kind"], "additionalProperties": False}
    for seed in range(4):
        grammar = model.grammar(schema)
        got = []
        for apart in (False, True, False):
            model.prompt(PROMPTS[0])
            status, text, ids, result = model.answer(grammar, 60, 1.0, seed, apart)
            assert status == OK
            n = model.lib.gn_session_length(model.session)
            got.append((text, result.n_tokens, result.finish, model.lib.gn_session_tokens(model.session)[:n]))
            assert not apart or ids == got[-1][3][n - result.n_tokens:]
        assert got[0] == got[1] == got[2]
        model.lib.gn_grammar_release(grammar)


def test_the_context_is_a_limit_too(lib, model):
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 2}
    session = model.session
    n_prompt = model.prompt(PROMPTS[1])
    model.session = c.c_void_p()
    try:
        for room in (16, 24):
            model.ok(lib.gn_session_create(model.handle, c.byref(capi.SessionOptions(n_ctx=n_prompt + room)),
                                           c.byref(model.session)))
            grammar = model.grammar(schema)
            model.prompt(PROMPTS[1])
            status, text, _, result = model.answer(grammar, -1, 1.5, room)
            assert status == OK, lib.gn_error_message()
            check(schema, text.decode())
            assert result.n_tokens <= room
            lib.gn_grammar_release(grammar)
            lib.gn_session_destroy(model.session)
        model.ok(lib.gn_session_create(model.handle, c.byref(capi.SessionOptions(n_ctx=n_prompt + 1)),
                                       c.byref(model.session)))
        grammar = model.grammar(schema)
        model.prompt(PROMPTS[1])
        assert model.answer(grammar, -1, 1.0, 1)[0] == E_LIMIT
        lib.gn_grammar_release(grammar)
        lib.gn_session_destroy(model.session)
    finally:
        model.session = session


# ---- the program ----

def run(*args, code=0):
    done = subprocess.run([BIN, "run", "-m", SMALL, "-p", "Is water wet?", *args], capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_run_with_a_regex_and_gbnf(tmp_path):
    assert run("--regex", "yes|no")[0] in ("yes\n", "no\n")
    path = tmp_path / "a.gbnf"
    path.write_text('root ::= "It " ("is" | "is not") " wet" [.!]')
    assert re.fullmatch(r"It is( not)? wet[.!]\n", run("--gbnf", str(path), "--temp", "2")[0])


def test_run_with_a_schema(tmp_path):
    schema = {"type": "object", "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}},
              "required": ["answer", "sure"], "additionalProperties": False}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(schema))
    for limit in ("16", "60"):
        answer = json.loads(run("--schema", str(path), "-n", limit, "--json", "--temp", "2", "--logprobs")[0])
        check(schema, answer["text"])
        assert answer["grammar_closed"] == (answer["finish"] == "length")
        assert [e["id"] for e in answer["logprobs"]] == answer["tokens"]
        assert all(e["logprob"] <= 0 for e in answer["logprobs"])
    out, err = run("--schema", str(path), "-n", "3", code=3)
    assert out == "" and re.search(r"needs \d+ tokens, the answer may have 3\n$", err)


def test_run_refuses_what_cannot_be_enforced(tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{"properties": {"a": {"unevaluatedProperties": 3}}}')
    out, err = run("--schema", str(path), code=3)
    assert out == "" and err.count("\n") == 1 and str(path) in err and "/properties/a" in err
    assert "expected one at most" in run("--schema", str(path), "--regex", "a", code=2)[1]
    assert "--regex: " in run("--regex", "a(", code=3)[1]
