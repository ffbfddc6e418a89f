"""The engines that ganglion is compared with, built or installed once into the user's cache.

llama.cpp comes as the source package of llama-cpp-python and is built twice for this machine: without AMX, and
with AMX where the processor has it. Ours is only the driver of its C interface (llama_driver.c), so that no
Python is in the way. xllamacpp and openvino-genai are installed as wheels, each into an environment of its own.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

LLAMA_VERSION = "0.3.36"
HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "ganglion" / "peers"
LLAMA = CACHE / f"llama.cpp-{LLAMA_VERSION}"

# gcc 12's _tile_loadconfig takes 8 bytes of the 64 of its operand, so that stores to the others may be left out and the
# instruction faults. This one takes them all.
TILE_CONFIG = """#include <immintrin.h>
#define _tile_loadconfig(config) \\
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])(config)))
"""
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
SWITCHED_OFF = ["LLAMA_BUILD_COMMON", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_TOOLS", "LLAMA_BUILD_EXAMPLES",
                "LLAMA_BUILD_SERVER"]


class Missing(Exception):
    """A peer that can't be had here, and why."""


def say(text):
    print(f"bench/compare: {text}", file=sys.stderr, flush=True)


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("flags"):
                return set(line.split())
    return set()


def environment(name, packages):
    """Path of the python of a virtual environment with these packages."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    stamp = folder / "packages"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != " ".join(packages):
        say(f"installing {' '.join(packages)} into {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        result = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                                 *packages], check=False, stdout=sys.stderr)
        if result.returncode != 0:
            raise Missing("its packages can't be installed")
        stamp.write_text(" ".join(packages), encoding="utf-8")
    return str(python)


# ---- llama.cpp -------------------------------------------------------------------------------------


def llama_source():
    source = LLAMA / "src"
    if not source.exists():
        LLAMA.mkdir(parents=True, exist_ok=True)
        say(f"fetching llama-cpp-python {LLAMA_VERSION}")
        with tempfile.TemporaryDirectory(dir=LLAMA) as folder:
            python = environment("tools", ["pip"])
            subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                            "--dest", folder, f"llama-cpp-python=={LLAMA_VERSION}"], check=True,
                           stdout=sys.stderr)
            archive = next(pathlib.Path(folder).glob("*.tar.gz"))
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            next(path for path in pathlib.Path(folder).iterdir() if path.is_dir()).rename(source)
    return source / "vendor" / "llama.cpp"


def llama_build(variant):
    """Path of the driver built against llama.cpp `plain` or `amx`. Goes on where it was interrupted."""
    build = LLAMA / f"build-{variant}"
    driver = build / "bin" / "llama_driver"
    ours = HERE / "llama_driver.c"
    if driver.exists() and driver.stat().st_mtime >= ours.stat().st_mtime:
        return str(driver)
    for tool in ("cmake", "c++", "cc"):
        if shutil.which(tool) is None:
            raise Missing(f"{tool} is not there (apt install build-essential cmake ninja-build)")
    source = llama_source()
    if not (build / "bin" / "libllama.so").exists():
        say(f"building llama.cpp ({variant}) into {build}: some minutes")
        flags = NO_AMX if cpu_flags() & {"amx_int8"} else ""
        if variant == "amx":
            header = LLAMA / "ldtilecfg.h"
            header.write_text(TILE_CONFIG, encoding="utf-8")
            flags = f"-include {header}"
        c_flags = flags if variant == "plain" else ""
        subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON",
                        f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_C_FLAGS={c_flags}",
                        *(["-G", "Ninja"] if shutil.which("ninja") else []),
                        *[f"-D{name}=OFF" for name in SWITCHED_OFF]], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build, "--target", "llama", "-j",
                        str(len(os.sched_getaffinity(0)))], check=True, stdout=sys.stderr)
    subprocess.run(["cc", "-O2", "-o", driver, ours, f"-I{source}/include", f"-I{source}/ggml/include",
                    f"-L{build}/bin", "-lllama", "-lggml", "-lggml-base", "-Wl,-rpath,$ORIGIN"], check=True)
    return str(driver)


def llama_variants():
    return ["plain", "amx"] if {"amx_int8", "avx512_vnni"} <= cpu_flags() else ["plain"]


def states_folder():
    folder = LLAMA / "states"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


# ---- wheels ----------------------------------------------------------------------------------------


def xllamacpp():
    return environment("xllamacpp", ["xllamacpp==2026.10.11549"])


def openvino():
    return environment("openvino", ["openvino-genai==2026.4.1.0", "numpy"])
