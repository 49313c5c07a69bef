# The short names of what one does here. Everything is CMake below (CMakePresets.json); packages come through
# tools/setup.sh. Nothing asks a question.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
# Tests at a time. One more than processors was tried, because some wait: MPIs that spin beside two other programs made tests of
# deadlines fail.
TEST_JOBS ?= $(JOBS)
COVERAGE ?= 95
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
SETUP := tools/setup.sh
# auto: GPU libraries are compiled where nvcc or hipcc is found; on: hipcc is installed too where apt has it, and one of
# them must be there; off: none is compiled.
GPU ?= auto
ifeq ($(filter auto on off,$(GPU)),)
  $(error GPU=$(GPU): this says whether the GPU libraries are compiled. Use GPU=auto, GPU=on or GPU=off)
endif
export GPU
GPU_FLAGS = -DHOSTLESS_GPU=$(if $(filter off,$(GPU)),OFF,ON)
# What ctest writes, for tools/count_tests.py: it must hold what passed tests have printed.
REPORT ?= $(CURDIR)/build/tests.xml
REPORT_FLAGS = --output-junit "$(REPORT)" --test-output-size-passed 100000000 --test-output-size-failed 100000000
# ccache where it is there: the second build of a checkout takes seconds.
export CMAKE_C_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CTEST_OUTPUT_ON_FAILURE := 1
# The Python package is built for the tests where tools/setup.sh has made .venv.
PYTHON_FLAGS = $$(if [ -x .venv/bin/python ]; then echo -DHOSTLESS_PYTHON=ON "-DPython_EXECUTABLE=$$PWD/.venv/bin/python"; \
  else echo -DHOSTLESS_PYTHON=OFF; fi)

# GPU=on asks for at least one of them.
GPU_THERE = if [ "$(GPU)" = on ] && ! grep -q ': compiled for' build/gpu-libraries.txt; then \
  echo "GPU=on: neither nvcc nor hipcc can be used (build/gpu-libraries.txt says why). Install one, or leave GPU=on out." >&2; \
  exit 1; fi

.PHONY: help demo build tests test test-gpu check install full-product full-queues gpu-full coverage sanitize sanitize-all fuzz bench format clean options

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

build:
	@$(SETUP) build
	cmake --preset release -DHOSTLESS_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$(PREFIX)" $(GPU_FLAGS) $(CMAKE_FLAGS)
	@$(GPU_THERE)
	cmake --build build -j $(JOBS)

demo: build  ## solve a real elasticity problem on two ranks
	@tools/demo.sh build/apps/hostless/hostless

tests:
	@$(SETUP) test
	cmake --preset release -DHOSTLESS_BUILD_TESTS=ON $(PYTHON_FLAGS) $(GPU_FLAGS) $(CMAKE_FLAGS)
	@cat build/gpu-libraries.txt
	@$(GPU_THERE)
	cmake --build build -j $(JOBS)

options: build  ## write docs/options.md from the table of options
	build/apps/hostless/hostless options --output docs/options.md

test: tests  ## all checks and tests (minutes); ends with what was skipped, and why
	@rm -f "$(REPORT)"
	@code=0; ctest --test-dir build -j $(TEST_JOBS) $(REPORT_FLAGS) $(CTEST_FLAGS) || code=$$?; cat build/gpu-libraries.txt; \
	python3 tools/count_tests.py "tests=$$code:$(REPORT)"

test-gpu: tests  ## the GPU suite on this machine's GPU, then under compute-sanitizer (STAGES= chooses)
	cmake --build build --target device_suite -j $(JOBS)
	build/device_suite/run_suite.sh $(STAGES)

check:  ## layers, style, sizes, vendors, clones, docs, format: the text, without building
	@$(SETUP) build >/dev/null
	@set -e; for tool in layers style size vendor clones docs format; do python3 tools/check_$$tool.py; done
	@python3 -m unittest discover -q -s tools/tests -t tools

# As it was configured: to configure anew, say GPU= or CMAKE_FLAGS= again.
install:  ## what was built, into PREFIX (/usr/local); builds it first where nothing was
	@if [ ! -x build/apps/hostless/hostless ] || [ "$(origin GPU)" != file ] || [ -n "$(CMAKE_FLAGS)" ]; then \
	  $(MAKE) build; else cmake --build build -j $(JOBS); fi
	cmake --install build --prefix "$(PREFIX)"

full-product: tests  ## the contract suite's whole product instead of its pairwise cover (minutes)
	cmake --build build --target full_product

full-queues: tests  ## 10,000 random programs, 100 hangs and 10 kills of each type of queue (an hour on two cores)
	cmake --build build --target full_queues

gpu-full:  ## GPU libraries as a release has them, for sm_80 as well, and the contract suite's whole product; writes a log
	@GPU=on $(SETUP) test
	tools/gpu_full.sh -j $(JOBS)

coverage:  ## line coverage of host code; fails below COVERAGE per cent (95)
	@$(SETUP) ci
	tools/coverage.sh $(COVERAGE)

sanitize:  ## tests under address + undefined and thread sanitizers
	@$(SETUP) ci
	tools/sanitize.sh asan-ubsan
	tools/sanitize.sh tsan

sanitize-all:  ## the same with every case, where a commit sees a sample (hours on two cores)
	@$(SETUP) ci
	tools/sanitize.sh asan-ubsan --all
	tools/sanitize.sh tsan --all

fuzz:  ## every fuzz target for FUZZ_SECONDS (60)
	@$(SETUP) ci
	tools/fuzz.sh $(FUZZ_SECONDS)

bench:  ## the comparison with PETSc (installs petsc-dev)
	@$(SETUP) bench
	cmake --preset bench
	cmake --build build-bench -j $(JOBS)
	python3 bench/compare_with_petsc.py

format:  ## clang-format 14 over everything
	python3 tools/check_format.py --fix

clean:  ## all build folders and results
	rm -rf build build-asan-ubsan build-tsan build-coverage build-fuzz build-bench build-debug build-gpu-full out
