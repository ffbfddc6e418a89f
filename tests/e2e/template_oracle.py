"""Shared by the template tests: jinja2 set up as transformers sets it up, and the program that renders
with ours."""
import datetime
import json
import os
import pathlib
import subprocess

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOW = 1_700_000_000


class Generation(jinja2.ext.Extension):
    """{% generation %}: its body, rendered as a call block renders its caller."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    """transformers' namespace: it refuses names that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            Namespace._check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        Namespace._check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


class RaisedException(jinja2.exceptions.TemplateError):
    """What raise_exception() of a template raises."""


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise RaisedException(message)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW).strftime(format)

    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    env.globals["namespace"] = Namespace
    return env


class Oracle:
    def __init__(self):
        self.env = environment()
        self.compiled = {}

    def render(self, source, context):
        """("text", what it renders), ("raised", message) or ("error", kind)."""
        try:
            if source not in self.compiled:
                self.compiled[source] = self.env.from_string(source)
            text = self.compiled[source].render(**context)
            text.encode("utf-8")
            return ("text", text)
        except RaisedException as error:
            return ("raised", str(error))
        except Exception as error:  # every other way to fail counts as one
            return ("error", f"{type(error).__name__}: {error}")


def find_tool():
    """The program beside the one under test (GANGLION_BIN), or None."""
    program = os.environ.get("GANGLION_BIN", ROOT / "build" / "release" / "ganglion")
    tool = os.environ.get("GANGLION_TEMPLATE_TOOL",
                          pathlib.Path(program).resolve().parent / "tests" / "template_tool")
    return str(tool) if pathlib.Path(tool).is_file() else None


class Tool:
    """Our renderer, one process for many templates."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, source, context, **limits):
        request = {"template": source, "context": context, "now": NOW, **limits}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the program died on {source!r} with {context!r}"
        reply = json.loads(line)
        if reply["ok"]:
            return ("text", reply["text"])
        return ("raised" if reply["code"] == "GN_E_REFUSED" else "error", reply["message"])

    def close(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


def one_line(message):
    """A message as gn_error_message() shows it: control characters escaped, cut at 1,000 bytes."""
    raw = message.encode("utf-8")[:1000]
    out = b"".join(b"\\x%02x" % b if b < 32 or b == 127 else bytes([b]) for b in raw)
    return out.decode("utf-8", "replace")


def same(ours, reference):
    """Equal text, or both fail; what raise_exception() says is equal too (up to the cut)."""
    if ours[0] != reference[0]:
        return False
    if ours[0] == "text":
        return ours[1] == reference[1]
    if ours[0] == "raised":
        return ours[1][:400] == one_line(reference[1])[:400]
    return "\n" not in ours[1] and ours[1] != ""
