# Verbs only; what is built and how is CMakeLists.txt and CMakePresets.json. `make help` lists the verbs.
.PHONY: help setup build demo test asan bench fuzz format clean
MAKEFLAGS += --no-print-directory

# ccache, when there, gives the same objects in every clone and worktree.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
# A fresh machine has nothing cached: six files are compiled as one (251 s instead of 510 s on two idle cores), with precompiled headers.
UNITY = -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=6
CONFIGURE = $$(command -v ccache >/dev/null && echo -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

help:     ## this list
	@sed -n 's/^\([a-z]*\): *[a-z]* *## /  make \1\t/p' Makefile

setup:    ## install what is missing (apt; NVRTC from PyPI where there is no CUDA toolkit)
	@sh cmake/setup/packages.sh
	@sh cmake/setup/nvrtc.sh

build: setup ## set up, configure, build with all cores: build/fusor
	@echo "build: release, with g++, into build/"
	@mkdir -p build
	@cmake --preset release -DFUSOR_PCH=ON $(UNITY) $(CONFIGURE) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@cmake --build --preset release

demo: build ## train a small MiniGPT on the machine at hand, in bf16 and FP8, generate, look at the fused kernels
	@build/fusor demo

test: build ## every test that this machine can run
	@sh cmake/setup/nvrtc.sh --tests
	@sh cmake/setup/onnx.sh
	@sh cmake/setup/chromium.sh
	@ctest --preset release --parallel 2

asan: setup ## build with clang's AddressSanitizer and UBSan into build-asan/, run the tests
	@cmake --preset asan $(UNITY) $(CONFIGURE)
	@cmake --build --preset asan
	@ctest --preset asan --parallel 2

bench: build ## time one training step of the small configuration
	@build/fusor bench train --config small

SECONDS ?= 60
fuzz: build ## random graphs, fused against reference, then libFuzzer on each reader of files: SECONDS=60 each
	@build/fusor fuzz --seconds $(SECONDS)
	@cmake --preset fuzz $(CONFIGURE)
	@cmake --build --preset fuzz
	@for target in build-fuzz/tests/fuzz/fuzz_*; do \
	  name=$${target##*/fuzz_}; mkdir -p build-fuzz/found/$$name; echo "fuzz: $$name, $(SECONDS) s"; \
	  $$target -max_total_time=$(SECONDS) -print_final_stats=1 -verbosity=0 -artifact_prefix=build-fuzz/found/ build-fuzz/found/$$name tests/fuzz/corpus/$$name || exit 1; \
	done

format:   ## clang-format every C++ and CUDA file
	@sh cmake/setup/packages.sh clang-format-14
	@git ls-files -z -- '*.cpp' '*.h' '*.cuh' | xargs -0 -r clang-format-14 -i

clean:    ## remove the build folders (.deps/ with fetched libraries stays)
	@rm -rf build build-asan build-fuzz
