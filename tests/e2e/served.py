"""A server under test: started on a free port, asked over plain HTTP, stopped at the end. Its output is kept for
the message of a test that fails."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "ganglion" / "models"


def model_file(name):
    """Path of a model that tools/fetch_models brought, or None."""
    folder = pathlib.Path(os.environ.get("GANGLION_MODELS", CACHE)) / name
    files = sorted(folder.glob("*.gguf")) if folder.is_dir() else []
    return files[0] if files else None


class Served:
    """`ganglion serve` with these arguments, ready to be asked."""

    def __init__(self, *args, env=None):
        self.lines = []
        self.url = None
        self.ready = threading.Event()
        self.process = subprocess.Popen([BIN, "serve", "--port", "0", *map(str, args)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, **(env or {})})
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.ready.wait(120) or self.url is None:
            self.process.kill()
            raise RuntimeError(f"the server did not start: {self.output()}")
        self.host, port = re.match(r"https?://(.*):(\d+)", self.url).groups()
        self.port = int(port)

    def read(self):
        for line in self.process.stdout:
            line = line.decode(errors="replace")
            self.lines.append(line)
            found = re.search(r"listening on (https?://\S+:\d+)", line)
            if found and self.url is None:
                self.url = found.group(1)
                self.ready.set()
        self.ready.set()

    def output(self):
        return "".join(self.lines)

    def connect(self, timeout=120):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, timeout=120):
        """Status, headers (lower case) and body. body: bytes, or what becomes JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()

    def get(self, path, **more):
        status, _, body = self.ask("GET", path, **more)
        return status, json.loads(body)

    def post(self, path, body, **more):
        status, _, data = self.ask("POST", path, body, **more)
        return status, json.loads(data)

    def events(self, path, body, **more):
        """The JSON values of a stream of server-sent events, "[DONE]" as None."""
        status, headers, data = self.ask("POST", path, body, **more)
        assert status == 200, data
        assert headers["content-type"].startswith("text/event-stream")
        return [None if line[6:] == b"[DONE]" else json.loads(line[6:])
                for line in data.splitlines() if line.startswith(b"data: ")]

    def status_of(self, key):
        """A number of /proc/PID/status: VmRSS (kB), Threads …"""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.M).group(1))

    def stop(self, sig=signal.SIGTERM, timeout=60):
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(timeout)
        finally:
            self.process.kill()
            self.reader.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
