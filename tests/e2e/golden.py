"""Readers of tests/golden and the figures that are compared; standard library only.

A row is the prediction at one position: {token id: natural log-probability}, the most probable
tokens only. Divergences are over K + 1 classes: the K tokens that the golden lists, and all others
as one. That is a lower bound of the divergence over the whole vocabulary (0.84 to 0.88 of it at
K = 64, as the golden's own figures for llama.cpp show), and the same measure for every engine."""
import array
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
BIN = os.environ.get("GANGLION_BIN", str(ROOT / "build" / "release" / "ganglion"))
TOP = 512
# Below the resolution of six printed decimals a mass is noise.
LEAST_MASS = 1e-6


def floats(path):
    values = array.array("f")
    values.frombytes(pathlib.Path(path).read_bytes())
    if sys.byteorder == "big":
        values.byteswap()
    return values


def run(*arguments, data=None, timeout=1800):
    """Run ganglion; returns its standard output, raises AssertionError with its message otherwise."""
    result = subprocess.run([BIN, *map(str, arguments)], input=data, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=timeout, check=False)
    assert result.returncode == 0, (
        f"exit {result.returncode}: ganglion {' '.join(map(str, arguments))}\n"
        f"{result.stderr.decode(errors='replace')[-2000:]}")
    return result.stdout


def logits(model, ids, top, *options):
    """A list of rows, one per token of `ids`."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(list(ids), file)
        file.flush()
        out = json.loads(run("logits", "-m", model, "--tokens", file.name, "--top", top, "--all",
                             "--json", *options))
    positions = out["positions"]
    assert [p["pos"] for p in positions] == list(range(len(ids)))
    for p in positions:
        assert len(p["top"]) == top, f"position {p['pos']}: {len(p['top'])} of {top} tokens"
    return [dict(map(tuple, p["top"])) for p in positions]


def model_path(name):
    """Path of a model of tools/fetch_models, or None where it was not fetched."""
    result = subprocess.run([sys.executable, ROOT / "tools" / "fetch_models", "--path", name],
                            stdout=subprocess.PIPE, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else None


class Kld:
    """tests/golden/kld/NAME: what float32 says of a real model, and how far llama.cpp is from it."""

    FIELDS = [("ids", "I"), ("top_id", "I"), ("top_lp", "i"), ("next_lp", "f"), ("next_rank", "I"),
              ("ll_kld", "f"), ("ll_kld_top", "f"), ("ll_next_lp", "f")]

    def __init__(self, name):
        self.info = json.loads((GOLDEN / "kld" / f"{name}.json").read_text())
        self.n_ctx, self.k, self.n = self.info["n_ctx"], self.info["k"], self.info["rows"]
        blob = zlib.decompress((GOLDEN / "kld" / f"{name}.bin").read_bytes())
        at = 0
        for field, code in self.FIELDS:
            values = array.array(code)
            assert values.itemsize == 4
            size = 4 * self.n * (self.k if field in ("top_id", "top_lp") else 1)
            values.frombytes(blob[at:at + size])
            if sys.byteorder == "big":
                values.byteswap()
            setattr(self, field, values)
            at += size
        assert at == len(blob)

    def windows(self):
        return [self.ids[i:i + self.n_ctx] for i in range(0, self.n, self.n_ctx)]

    def top(self, row):
        """[(id, log-probability)] of the truth, best first."""
        steps, total, out = self.top_lp[row * self.k:(row + 1) * self.k], 0, []
        for token, step in zip(self.top_id[row * self.k:(row + 1) * self.k], steps):
            total += step
            out.append((token, total * self.info["lp_unit"]))
        return out

    def divergence(self, row, ours):
        """KL divergence of `ours` from the truth over the classes above. A token that `ours` does not
        list counts with the others, on both sides."""
        p_sum = q_sum = total = 0.0
        for token, p in self.top(row):
            q = ours.get(token)
            if q is not None:
                total += math.exp(p) * (p - q)
                p_sum += math.exp(p)
                q_sum += math.exp(q)
        p_rest, q_rest = max(1 - p_sum, LEAST_MASS), max(1 - q_sum, LEAST_MASS)
        return total + p_rest * math.log(p_rest / q_rest)

    def next_tokens(self, most_rank):
        """Rows whose next token is among the truth's `most_rank` best, as (row, token)."""
        for row in range(self.n):
            if (row + 1) % self.n_ctx and self.next_rank[row] < most_rank:
                yield row, self.ids[row + 1]


class Figures:
    """What one engine makes of a golden: per row and in sum."""

    def __init__(self, golden, rows):
        self.kld = [golden.divergence(i, row) for i, row in enumerate(rows)]
        best = [max(row, key=row.get) for row in rows]
        self.same_top = sum(best[i] == golden.top(i)[0][0] for i in range(golden.n)) / golden.n
        chosen = list(golden.next_tokens(TOP // 2))
        found = [(row, rows[row][token]) for row, token in chosen if token in rows[row]]
        self.n_next, self.n_missing = len(found), len(chosen) - len(found)
        self.ppl = math.exp(-sum(lp for _, lp in found) / len(found))
        self.ppl_f32 = math.exp(-sum(golden.next_lp[row] for row, _ in found) / len(found))
        self.ppl_llamacpp = math.exp(-sum(golden.ll_next_lp[row] for row, _ in found) / len(found))
        # Over n tokens, an engine's perplexity is off by its divergence and by luck: the standard error
        # below, either way. Two of it on top of llama.cpp's own distance tell worse from unlucky.
        square = sum((golden.ll_next_lp[row] - golden.next_lp[row]) ** 2 for row, _ in found)
        self.off = abs(math.log(self.ppl / self.ppl_f32))
        self.off_llamacpp = abs(math.log(self.ppl_llamacpp / self.ppl_f32))
        self.off_allowed = self.off_llamacpp + 2 * math.sqrt(square) / len(found)
        self.mean = sum(self.kld) / golden.n
        self.worst = max(self.kld)
        self.worst_row = self.kld.index(self.worst)
        self.mean_llamacpp = sum(golden.ll_kld_top) / golden.n
        late = [i for i in range(golden.n) if i % golden.n_ctx >= 16]
        self.late = sum(self.kld[i] for i in late) / len(late)
        self.late_llamacpp = sum(golden.ll_kld_top[i] for i in late) / len(late)
        ordered = sorted(self.kld)
        self.p999 = ordered[min(len(ordered) - 1, math.ceil(0.999 * len(ordered)) - 1)]

    def __str__(self):
        return (f"KLD mean {self.mean:.6g} (llama.cpp {self.mean_llamacpp:.6g}, ratio "
                f"{self.mean / self.mean_llamacpp:.3f}; from position 16 {self.late:.6g}, "
                f"{self.late_llamacpp:.6g}, {self.late / self.late_llamacpp:.3f}), p99.9 "
                f"{self.p999:.4g}, worst {self.worst:.4g} at row {self.worst_row}, same top "
                f"{self.same_top:.4f}, perplexity {self.ppl:.4f} (f32 {self.ppl_f32:.4f}, llama.cpp "
                f"{self.ppl_llamacpp:.4f}; logarithm off by {self.off:.5f}, llama.cpp's "
                f"{self.off_llamacpp:.5f}, allowed {self.off_allowed:.5f})")


def measure(golden, path, *options):
    rows = []
    for ids in golden.windows():
        rows += logits(path, ids, TOP, *options)
    return Figures(golden, rows)
