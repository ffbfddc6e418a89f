# The front door for everyday work; CMakePresets.json holds the configurations.
PRESET ?= release
PREFIX ?= /usr/local

.PHONY: all release check check-full bench bench-kernels bench-serve fuzz format install clean

all: $(PRESET)

release dev tsan clang fuzz-build arm64:
	cmake --preset $(@:fuzz-build=fuzz) >/dev/null
	cmake --build build/$(@:fuzz-build=fuzz)

check:
	./check

check-full:
	./check full

bench: release
	bench/compare/run

bench-serve: release
	bench/serve/run

bench-kernels: release
	build/release/bench/kernels/bench_kernels

fuzz: fuzz-build
	tools/fuzz_run

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

install: release
	cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
