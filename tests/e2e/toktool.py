"""Talks to the test program tok_tool: strings in, ids out."""
import os
import pathlib
import struct
import subprocess
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
VOCABS = pathlib.Path(os.environ.get("GANGLION_VOCAB_DIR") or CACHE / "ganglion/vocabs")
MODELS = pathlib.Path(os.environ.get("GANGLION_MODEL_DIR") or CACHE / "ganglion/models")
ERROR = 0xFFFFFFFF
DECODE = 0x80000000
STREAM = 0x40000000


def tool_path():
    given = os.environ.get("GANGLION_TOK_TOOL")
    if given:
        return pathlib.Path(given)
    program = os.environ.get("GANGLION_BIN") or ROOT / "build/release/ganglion"
    return pathlib.Path(program).resolve().parent / "tests/tok_tool"


class TokTool:
    """One tokenizer. `with TokTool(path) as t: t.encode(["a", "b"])`."""

    def __init__(self, model, *flags):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([tool_path(), model, *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=60)
        self.errors.close()

    def messages(self):
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace")

    def _read(self, n):
        data = self.process.stdout.read(n)
        assert len(data) == n, f"tok_tool ended: {self.messages()}"
        return data

    def _ask(self, requests):
        def feed():
            try:
                for request in requests:
                    self.process.stdin.write(request)
                self.process.stdin.flush()
            except BrokenPipeError:
                pass

        writer = threading.Thread(target=feed)
        writer.start()
        try:
            for _ in requests:
                yield struct.unpack("<I", self._read(4))[0]
        finally:
            writer.join()

    def encode(self, texts):
        """Ids of each text (str or bytes); None where encoding failed."""
        raw = [t.encode("utf-8", "surrogatepass") if isinstance(t, str) else t for t in texts]
        out = []
        for n in self._ask([struct.pack("<I", len(r)) + r for r in raw]):
            if n == ERROR:
                out.append(None)
            else:
                out.append(list(struct.unpack(f"<{n}i", self._read(4 * n))))
        return out

    def decode(self, lists, stream=False):
        """Bytes of each list of ids."""
        mark = DECODE | (STREAM if stream else 0)
        out = []
        for n in self._ask([struct.pack(f"<I{len(x)}i", len(x) | mark, *x) for x in lists]):
            out.append(None if n == ERROR else self._read(n))
        return out
