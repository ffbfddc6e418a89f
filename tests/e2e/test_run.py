"""`ganglion run`: one answer, and the chat, on a pipe and on a pseudo-terminal.

Nothing here depends on what the model says, only on what the program does with it."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build/release/ganglion"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
MODEL = CACHE / "ganglion/models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"

pytestmark = pytest.mark.skipif(not MODEL.exists(),
                                reason="needs smollm2-135m: tools/fetch_models smollm2-135m")


@pytest.fixture(autouse=True)
def private_history(tmp_path, monkeypatch):
    monkeypatch.setenv("GANGLION_HISTORY", str(tmp_path / "state/history"))


def run(*args, stdin="", code=0):
    done = subprocess.run([BIN, "run", "-m", str(MODEL), *args], input=stdin.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == code, done.stderr.decode(errors="replace")
    return done.stdout.decode(), done.stderr.decode()


def run_json(*args, **more):
    out, err = run("--json", *args, **more)
    assert out.count("\n") == 1 and out.endswith("\n")
    return json.loads(out)


# ---- one answer ----

def test_plain_answer_is_the_json_text():
    args = ("-p", "Name three colours.", "--temp", "0", "-n", "24")
    out, err = run(*args)
    assert err == ""
    answer = run_json(*args)
    assert out == answer["text"] + ("" if answer["text"].endswith("\n") else "\n")
    assert answer["n_tokens"] == len(answer["tokens"]) <= 24
    assert answer["n_prompt"] > 10
    assert answer["finish"] in ("stop", "length")
    assert answer["stop"] is None
    assert "logprobs" not in answer
    assert set(answer["timings"]) == {"load_s", "prompt_s", "prompt_tok_s", "generate_s",
                                      "generate_tok_s"}


def test_an_answer_ends_by_itself():
    answer = run_json("-p", "Say only: yes", "--temp", "0", "-n", "200")
    assert answer["finish"] == "stop"
    assert "<|im_end|>" not in answer["text"]


def test_length():
    answer = run_json("-p", "Tell a long story.", "-n", "7", "--ignore-eos", "--temp", "0")
    assert answer["finish"] == "length" and answer["n_tokens"] == 7
    answer = run_json("-p", "Tell a long story.", "-n", "0")
    assert answer["finish"] == "length" and answer["tokens"] == [] and answer["text"] == ""


def test_same_seed_same_text():
    args = ("-p", "Write a poem.", "-n", "24", "--temp", "1.2", "--ignore-eos")
    first = run_json(*args, "--seed", "5")
    assert first["seed"] == 5
    assert run_json(*args, "--seed", "5", "-t", "1")["tokens"] == first["tokens"]
    assert run_json(*args, "--seed", "6")["tokens"] != first["tokens"]
    fresh = run_json(*args)
    again = run_json(*args, "--seed", str(fresh["seed"]))
    assert again["tokens"] == fresh["tokens"]


def test_file_and_standard_input(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Name three colours.")
    expected = run_json("-p", "Name three colours.", "--temp", "0", "-n", "12")["tokens"]
    assert run_json("-f", str(path), "--temp", "0", "-n", "12")["tokens"] == expected
    assert run_json("-f", "-", "--temp", "0", "-n", "12",
                    stdin="Name three colours.")["tokens"] == expected


def test_raw_has_no_template():
    raw = run_json("--raw", "-p", "Once upon a time", "--temp", "0", "-n", "12")
    chat = run_json("-p", "Once upon a time", "--temp", "0", "-n", "12")
    assert raw["n_prompt"] < chat["n_prompt"]
    assert raw["tokens"] != chat["tokens"]


def test_system_message_is_in_the_prompt():
    short = run_json("-p", "Hi", "--system", "A", "-n", "1")
    long = run_json("-p", "Hi", "--system", "A much longer system message than that", "-n", "1")
    assert long["n_prompt"] > short["n_prompt"]


def test_stop_string_is_never_shown():
    args = ("--raw", "-p", "1, 2, 3, 4,", "--temp", "0", "-n", "30", "--ignore-eos")
    text = run_json(*args)["text"]
    assert len(text) > 12
    stop = text[5:9]
    answer = run_json(*args, "--stop", "never there", "--stop", stop)
    assert answer["finish"] == "stop" and answer["stop"] == stop
    assert answer["text"] == text[:text.index(stop)]
    out, _ = run(*args, "--stop", stop)
    assert out == answer["text"] + "\n"


def test_logprobs():
    answer = run_json("-p", "Name three colours.", "--temp", "0", "-n", "8", "--logprobs")
    entries = answer["logprobs"]
    assert [e["id"] for e in entries] == answer["tokens"]
    assert all(-20 < e["logprob"] <= 0 for e in entries)
    shown = [e["token"] for e in entries if e["token"] != "<|im_end|>"]
    assert "".join(shown).strip() == answer["text"].strip()
    _, err = run("-p", "Name three colours.", "--temp", "0", "-n", "8", "--logprobs")
    assert [int(line.split()[1]) for line in err.splitlines()] == answer["tokens"]


def test_logit_bias_and_min_tokens():
    answer = run_json("-p", "Hi", "--temp", "0", "-n", "6")
    first = answer["tokens"][0]
    banned = run_json("-p", "Hi", "--temp", "0", "-n", "6", "--logit-bias", f"{first}:-inf")
    assert first not in banned["tokens"]
    forced = run_json("-p", "Hi", "--temp", "0", "-n", "6", "--logit-bias", "77:1000")
    assert forced["tokens"] == [77] * 6
    ends = run_json("-p", "Hi", "--temp", "0", "-n", "6", "--logit-bias", "2:1000")
    assert ends["tokens"] == [2] and ends["finish"] == "stop"
    later = run_json("-p", "Hi", "--temp", "0", "-n", "6", "--logit-bias", "2:1000",
                     "--min-tokens", "3")
    assert len(later["tokens"]) == 4 and later["tokens"][3] == 2


def test_every_sampling_option_is_taken():
    answer = run_json("-p", "Write a poem.", "-n", "16", "--seed", "3", "--ignore-eos",
                      "--top-k", "0", "--top-p", "0.99", "--min-p", "0.001", "--typical-p", "0.99",
                      "--top-n-sigma", "3", "--xtc-probability", "0.5", "--xtc-threshold", "0.05",
                      "--repeat-penalty", "1.1", "--presence-penalty", "0.1",
                      "--frequency-penalty", "0.1", "--repeat-last-n", "-1",
                      "--dry-multiplier", "0.8", "--dry-base", "1.5", "--dry-allowed-length", "3",
                      "--dry-last-n", "200", "--dry-breaker", "\n", "--min-tokens", "2")
    assert answer["n_tokens"] == 16
    answer = run_json("-p", "Write a poem.", "-n", "16", "--seed", "3", "--ignore-eos",
                      "--mirostat-tau", "4", "--mirostat-eta", "0.2")
    assert answer["n_tokens"] == 16


def test_stats():
    _, err = run("-p", "Hi", "-n", "3", "--stats", "--seed", "4")
    assert re.fullmatch(r"prompt \d+ tokens \(0 known\) in [\d.]+ s, [\d.]+ tok/s; answer \d+ tokens "
                        r"in [\d.]+ s, [\d.]+ tok/s; (stop|length); seed 4\n", err)


@pytest.mark.parametrize("args, message", [
    (("-p", "x", "--top-p", "0"), "top_p: found 0, expected a number above 0, up to 1"),
    (("-p", "x", "--min-p", "2"), "min_p: found 2, expected a number from 0 to 1"),
    (("-p", "x", "--temp", "hot"), '--temp: found "hot", expected a number'),
    (("-p", "x", "-f", "y"), "found both -p and -f, expected one of them"),
    (("-p", "x", "--stop", ""), "--stop: found an empty text"),
    (("-p", "x", "--logit-bias", "5"), '--logit-bias: found "5", expected ID:BIAS'),
    (("-p", "x", "--logit-bias", "999999999:1"), "--logit-bias: found"),
    (("-p", "x", "--raw", "--system", "y"), "--system: found --raw"),
    (("--json",), "--json: found no prompt"),
])
def test_usage_errors(args, message):
    out, err = run(*args, code=2)
    assert out == "" and err.startswith("ganglion run: " + message) and err.count("\n") == 1


def test_prompt_longer_than_the_context():
    out, err = run("-p", "word " * 100, "--ctx", "64", code=3)
    assert out == ""
    assert re.fullmatch(r"ganglion run: the prompt has \d+ tokens and needs room for an answer, "
                        r"the context holds 64\n", err)


def test_answer_cut_by_the_context_is_said():
    args = ("-p", "Tell a story.", "--ctx", "64", "--ignore-eos", "--temp", "0")
    answer = run_json(*args)
    assert answer["finish"] == "length"
    assert answer["n_prompt"] + answer["n_tokens"] >= 64
    _, err = run(*args)
    assert err == "(the answer is cut: the context of 64 tokens is full)\n"


def test_a_larger_context_than_the_model_s_is_said():
    _, err = run("-p", "Hi", "-n", "2", "--ctx", "100000")
    assert re.fullmatch(r"\(the model was made for \d+ tokens of context, less than --ctx 100000\)\n",
                        err)


def test_an_encoder_is_refused_by_name():
    encoder = CACHE / "ganglion/models/all-minilm-l6-v2"
    if not encoder.exists():
        pytest.skip("needs all-minilm-l6-v2: tools/fetch_models all-minilm-l6-v2")
    _, err = run("-m", str(encoder), "-p", "Hi", code=3)
    assert err.startswith(f"ganglion run: {encoder}: ") and err.count("\n") == 1


def test_bad_utf8_prompt(tmp_path):
    path = tmp_path / "prompt"
    path.write_bytes(b"caf\xe9")
    _, err = run("-f", str(path), code=3)
    assert err == f"ganglion run: {path}: the message is not valid UTF-8\n"
    run("-f", str(path), "--raw", "-n", "2")


def test_full_disk():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN, "run", "-m", str(MODEL), "-p", "Hi", "-n", "20"], stdout=full,
                              stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 5
    assert done.stderr.startswith(b"ganglion run: standard output: cannot write")


# ---- a chat on a pipe ----

CHAT = ("-n", "8", "--temp", "0")


def messages_of(path):
    return json.loads(path.read_text())["messages"]


def test_piped_chat_keeps_the_conversation(tmp_path):
    saved = tmp_path / "chat.json"
    out, err = run(*CHAT, "--stats", stdin=f"My name is Ada.\nWhat is my name?\n/save {saved}\n")
    messages = messages_of(saved)
    assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant"]
    assert messages[2]["content"] == "What is my name?"
    assert out == messages[1]["content"] + "\n" + messages[3]["content"] + "\n"
    known = [tuple(map(int, found)) for found in re.findall(r"prompt (\d+) tokens \((\d+) known\)",
                                                            err)]
    assert known[0][1] == 0
    assert known[1][1] >= known[0][0] - 4, "the second turn evaluates only what is new"


def test_reused_cache_gives_the_same_answer(tmp_path):
    first = tmp_path / "a.json"
    second = tmp_path / "b.json"
    run(*CHAT, stdin=f"My name is Ada.\nWhat is my name?\n/save {first}\n")
    saved = json.loads(first.read_text())
    answer = saved["messages"].pop()
    saved["messages"].append({"role": "assistant", "content": "to be generated again"})
    second.write_text(json.dumps(saved))
    run(*CHAT, stdin=f"/load {second}\n/regen\n/save {second}\n")
    assert messages_of(second)[3] == answer


def test_multi_line_messages(tmp_path):
    saved = tmp_path / "chat.json"
    run(*CHAT, stdin='one \\\ntwo\n"""\nthree\n\nfour\\\n"""\n"""five"""\n/save %s\n' % saved)
    assert [m["content"] for m in messages_of(saved) if m["role"] == "user"] == [
        "one \ntwo", "three\n\nfour\\", "five"]


def test_end_inside_a_block(tmp_path):
    saved = tmp_path / "chat.json"
    run(*CHAT, stdin='/save %s\n"""\nunfinished' % saved)
    out, _ = run(*CHAT, stdin='"""\nunfinished')
    assert len(out) > 1


def test_regen_undo_system(tmp_path):
    saved = tmp_path / "chat.json"
    run(*CHAT, "--system", "Old.",
        stdin=f"Hello\nMore\n/undo\n/system Be brief.\n/regen\n/save {saved}\n")
    messages = messages_of(saved)
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    assert messages[0]["content"] == "Be brief." and messages[1]["content"] == "Hello"
    run(*CHAT, stdin=f"/load {saved}\n/system -\n/undo\n/save {saved}\n")
    assert messages_of(saved) == []


def test_set_and_settings_travel_with_a_chat(tmp_path):
    saved = tmp_path / "chat.json"
    _, err = run(*CHAT, stdin=f"/set top-p 0.5\n/set seed 7\n/set ignore-eos true\n/save {saved}\n")
    settings = json.loads(saved.read_text())["settings"]
    assert settings["top-p"] == 0.5 and settings["seed"] == 7 and settings["ignore-eos"] is True
    assert settings["max-tokens"] == 8 and settings["temp"] == 0
    _, err = run(stdin=f"/load {saved}\n/set\n")
    assert re.search(r"^  top-p +0\.5$", err, re.M) and re.search(r"^  seed +7$", err, re.M)
    assert re.search(r"^  ignore-eos +true$", err, re.M)


@pytest.mark.parametrize("line, message", [
    ("/set top-p 2", "top_p: found 2, expected a number above 0, up to 1"),
    ("/set temp", "expected: /set NAME VALUE"),
    ("/set tmep 1", 'unknown setting "tmep", did you mean temp?'),
    ("/set ignore-eos maybe", 'ignore-eos: found "maybe", expected true or false'),
    ("/sav x", "unknown command /sav, did you mean /save (/help lists them)"),
    ("/regen", "there is no answer to generate again"),
    ("/undo", "there is nothing to undo"),
    ("/save", "expected: /save FILE"),
    ("/undo now", "/undo takes nothing"),
    ("/save /nowhere/at/all", "/nowhere/at/all"),
    ("/load /nowhere/at/all", "/nowhere/at/all: cannot open"),
])
def test_a_bad_command_is_one_line_and_the_chat_goes_on(line, message):
    out, err = run(*CHAT, stdin=f"{line}\nHello\n", code={
        "/regen": 5, "/undo": 5, "/save /nowhere/at/all": 3, "/load /nowhere/at/all": 3}.get(line, 2))
    assert err.startswith("error: " + message) and err.count("error") == 1
    assert len(out) > 1


@pytest.mark.parametrize("text, message", [
    ("", "line 1, column 0"),
    ("{", "line 1"),
    ("[]", "expected a saved chat"),
    ('{"ganglion_chat": 2}', "found version 2 of saved chats, expected 1"),
    ('{"ganglion_chat": 1, "settings": {}}', '"messages": expected an array'),
    ('{"ganglion_chat": 1, "messages": []}', "settings: expected an object"),
    ('{"ganglion_chat": 1, "messages": [3], "settings": {}}', "message 0: expected an object"),
    ('{"ganglion_chat": 1, "messages": [{"role": "robot", "content": ""}], "settings": {}}',
     'message 0: "role": expected system, user, assistant or tool'),
    ('{"ganglion_chat": 1, "messages": [{"role": "user"}], "settings": {}}',
     'message 0: "content": expected a string'),
    ('{"ganglion_chat": 1, "messages": [], "settings": {"temp": "hot"}}',
     'settings: "temp": expected a number, true or false'),
    ('{"ganglion_chat": 1, "messages": [], "settings": {"top-p": 7}}', "settings: top_p: found 7"),
    ('{"ganglion_chat": 1, "messages": [], "settings": {"heat": 7}}',
     'settings: unknown setting "heat"'),
])
def test_a_bad_file_is_one_line_and_changes_nothing(tmp_path, text, message):
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    saved = tmp_path / "chat.json"
    _, err = run(*CHAT, stdin=f"Hello\n/load {bad}\n/save {saved}\n", code=3)
    lines = [line for line in err.splitlines() if "is cut at" not in line]
    assert lines[0].startswith(f"error: {bad}: {message}")
    assert lines[1:] == ["(saved 2 messages)"]
    assert json.loads(saved.read_text())["settings"]["max-tokens"] == 8


def test_context_overflow_is_said_and_nothing_is_dropped(tmp_path):
    saved = tmp_path / "chat.json"
    _, err = run("--ctx", "96", *CHAT, code=3,
                 stdin=f"Hello\n{'word ' * 90}\n/save {saved}\nHi again\n")
    assert re.search(r"^error: the prompt has \d+ tokens and needs room for an answer, "
                     r"the context holds 96$", err, re.M)
    assert [m["role"] for m in messages_of(saved)] == ["user", "assistant"]


def test_quit_ends_the_chat():
    out, err = run(*CHAT, stdin="/quit\nHello\n")
    assert out == "" and err == ""


# ---- a chat on a terminal ----

class Terminal:
    def __init__(self, *args, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(BIN, [BIN, "run", "-m", str(MODEL), *args],
                      {**os.environ, "TERM": "xterm", **env})
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, what, seconds=60):
        """Read until `what` was seen; returns the text up to its end."""
        end = time.monotonic() + seconds
        while what not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:
                data = b""
            assert data, f"found {self.seen!r}, expected {what!r}"
            self.seen += data.decode(errors="replace")
        at = self.seen.index(what) + len(what)
        text, self.seen = self.seen[:at], self.seen[at:]
        return text

    def close(self):
        """Wait for the program to end; returns its exit code."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid != 0:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        pytest.fail(f"the program did not end; it showed {self.seen!r}")


def test_terminal_chat(tmp_path):
    saved = tmp_path / "chat.json"
    terminal = Terminal(*CHAT, LC_ALL="C")
    assert "tokens of context" in terminal.wait_for(">>> ")
    terminal.type("naïve “q” 東\r")
    terminal.wait_for("東")
    terminal.wait_for(">>> ")
    terminal.type("one\\\r")
    terminal.wait_for("... ")
    terminal.type("two\r")
    terminal.wait_for(">>> ")
    terminal.type(f"/save {saved}\r")
    terminal.wait_for("(saved 4 messages)")
    terminal.wait_for(">>> ")
    terminal.type("\x04")
    assert terminal.close() == 0
    assert [m["content"] for m in messages_of(saved) if m["role"] == "user"] == [
        "naïve “q” 東", "one\ntwo"]


def test_interrupt_stops_the_answer_only(tmp_path):
    saved = tmp_path / "chat.json"
    terminal = Terminal("--ignore-eos", "--temp", "0")
    terminal.wait_for(">>> ")
    terminal.type("Count to one thousand.\r")
    terminal.wait_for("\n")
    time.sleep(1.0)
    terminal.type("\x03")
    terminal.wait_for("stopped by Ctrl-C")
    terminal.wait_for(">>> ")
    terminal.type(f"/save {saved}\r")
    terminal.wait_for("(saved 2 messages)")
    assert len(messages_of(saved)[1]["content"]) > 0
    terminal.wait_for(">>> ")
    terminal.type("dropped text\x03")
    terminal.wait_for("leaves the chat)")
    terminal.wait_for(">>> ")
    terminal.type('"""\r')
    terminal.wait_for("... ")
    terminal.type("dropped too\x03")
    terminal.wait_for("leaves the chat)")
    terminal.wait_for(">>> ")
    terminal.type("/stats\r")
    assert ": 2 messages;" in terminal.wait_for("seed")
    terminal.wait_for(">>> ")
    terminal.type("/quit\r")
    assert terminal.close() == 0


def test_no_interrupt_at_the_prompt_is_lost():
    """The signal may land on a worker thread, and keys may come before the prompt is ready."""
    terminal = Terminal("-n", "2")
    terminal.wait_for(">>> ")
    terminal.type("Hi\r")
    terminal.wait_for("\n")
    terminal.wait_for(">>> ")
    for keys in ("\x03", "abc\x03", "x\x04\x03", '"""\rabc\x03') * 8:
        terminal.type(keys)
        terminal.wait_for("leaves the chat)", 20)
        terminal.wait_for(">>> ", 20)
    terminal.type("\x04")
    assert terminal.close() == 0


def test_history_is_kept_and_private(tmp_path):
    history = tmp_path / "state/history"
    for _ in range(2):
        terminal = Terminal(*CHAT)
        terminal.wait_for(">>> ")
        terminal.type("/set top-k 3\r")
        terminal.wait_for(">>> ")
        terminal.type("\x04")
        assert terminal.close() == 0
    assert history.stat().st_mode & 0o077 == 0
    assert history.parent.stat().st_mode & 0o077 == 0
    terminal = Terminal(*CHAT)
    terminal.wait_for(">>> ")
    terminal.type("\x1b[A")
    terminal.wait_for("/set top-k 3")
    terminal.type("\x04\x03")
    terminal.wait_for(">>> ")
    terminal.type("\x04")
    assert terminal.close() == 0


def test_streams_to_a_terminal():
    """The first words come long before the last."""
    terminal = Terminal("-p", "Count to one thousand.", "-n", "60", "--ignore-eos", "--temp", "0")
    start = time.monotonic()
    while not terminal.seen.strip():
        ready, _, _ = select.select([terminal.fd], [], [], 60)
        assert ready
        terminal.seen += os.read(terminal.fd, 65536).decode(errors="replace")
    first = time.monotonic() - start
    shown = len(terminal.seen)
    assert terminal.close() == 0
    assert len(terminal.seen) > shown and first < time.monotonic() - start
