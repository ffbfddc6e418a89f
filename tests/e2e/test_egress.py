"""Nothing leaves: in a network namespace whose only way out is an interface that counts, the server is asked for everything that it
does, and the count stays 0. The same count notices one packet that this test sends, so it can see."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

from served import Served, model_file

MODEL = model_file("smollm2-135m")


def sent():
    """Packets that left through the interface d0."""
    lines = pathlib.Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    return next(int(line.split(":")[1].split()[9]) for line in lines if line.strip().startswith("d0:"))


def inside():
    """Runs in the namespace; the last line says what was counted."""
    for command in ("ip link set lo up", "ip link add d0 type veth peer name d1",
                    "ip link set d0 addrgenmode none", "ip link set d1 addrgenmode none", "ip link set d1 up",
                    "ip addr add 192.0.2.1/24 dev d0", "ip link set d0 arp off", "ip link set d0 up", "ip route add default dev d0"):
        subprocess.run(command.split(), check=True)
    before = sent()
    statuses = []
    with Served("-m", MODEL, "--quiet", "--max-loaded", 1, "-m", f"second={MODEL}") as s:
        name = s.get("/v1/models")[1]["data"][0]["id"]
        hi = [{"role": "user", "content": "See https://example.com/ and say hi."}]
        tool = {"type": "function", "function": {"name": "fetch", "parameters": {
            "type": "object", "properties": {"url": {"type": "string", "format": "uri", "maxLength": 30}}}}}
        for path, ask in (
                ("/v1/chat/completions", {"model": name, "messages": hi, "max_tokens": 4}),
                ("/v1/chat/completions", {"model": name, "messages": hi, "max_tokens": 60, "tools": [tool],
                                          "tool_choice": "required", "parallel_tool_calls": False}),
                ("/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]}),
                ("/v1/completions", {"model": "second", "prompt": "1 2", "max_tokens": 2}),
                ("/v1/embeddings", {"model": name, "input": "x"}),
                ("/v1/responses", {"model": name, "input": "hi", "max_output_tokens": 4}),
                ("/v1/messages", {"model": name, "messages": hi, "max_tokens": 4}),
                ("/api/chat", {"model": name, "messages": hi, "stream": False, "options": {"num_predict": 4}}),
                ("/api/pull", {"model": "llama3"}),
                ("/tokenize", {"model": name, "content": "x"})):
            statuses.append(s.ask("POST", path, ask)[0])
        for path in ("/", "/metrics", "/slots", "/props", "/api/tags", "/openapi.json", "/health"):
            statuses.append(s.ask("GET", path)[0])
    after = sent()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.sendto(b"x", ("198.51.100.1", 9))
    print(json.dumps({"left": after - before, "seen": sent() - after, "statuses": statuses}))


@pytest.mark.skipif(MODEL is None, reason="tools/fetch_models smollm2-135m")
def test_nothing_leaves():
    if shutil.which("unshare") is None or shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("needs root, unshare and ip")
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no network namespace can be made here")
    made = subprocess.run(["unshare", "-n", sys.executable, __file__], capture_output=True, text=True, timeout=240, check=False)
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout.splitlines()[-1])
    assert found["seen"] >= 1 and found["left"] == 0
    assert found["statuses"][:2] == [200, 200] and found["statuses"][2] == 400
    assert found["statuses"][3:8] == [200] * 5 and found["statuses"][10:] == [200] * 7


if __name__ == "__main__":
    inside()
