# The short names of what one does here. Everything is CMake below (CMakePresets.json); packages come through
# tools/setup.sh. Nothing asks a question.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
COVERAGE ?= 95
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
SETUP := tools/setup.sh
# ccache where it is there: the second build of a checkout takes seconds.
export CMAKE_C_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CTEST_OUTPUT_ON_FAILURE := 1
# The Python package is built for the tests where tools/setup.sh has made .venv.
PYTHON_FLAGS = $$(if [ -x .venv/bin/python ]; then echo -DHOSTLESS_PYTHON=ON "-DPython_EXECUTABLE=$$PWD/.venv/bin/python"; \
  else echo -DHOSTLESS_PYTHON=OFF; fi)

.PHONY: help demo build tests test test-gpu check install full-product gpu-full coverage sanitize fuzz bench format clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 26

build:
	@$(SETUP) build
	cmake --preset release -DHOSTLESS_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$(PREFIX)" $(CMAKE_FLAGS)
	cmake --build build -j $(JOBS)

demo: build  ## solve a real elasticity problem on two ranks
	@tools/demo.sh build/apps/hostless/hostless

tests:
	@$(SETUP) test
	cmake --preset release -DHOSTLESS_BUILD_TESTS=ON $(PYTHON_FLAGS) $(CMAKE_FLAGS)
	@cat build/gpu-libraries.txt
	cmake --build build -j $(JOBS)

test: tests  ## all checks and tests (minutes)
	ctest --test-dir build -j $(JOBS) $(CTEST_FLAGS)
	@cat build/gpu-libraries.txt

test-gpu: tests  ## the GPU suite on this machine's GPU, then under compute-sanitizer (STAGES= chooses)
	cmake --build build --target device_suite -j $(JOBS)
	build/device_suite/run_suite.sh $(STAGES)

check:  ## layers, style, vendors, clones, docs, format: the text, without building
	@$(SETUP) build >/dev/null
	@set -e; for tool in layers style vendor clones docs format; do python3 tools/check_$$tool.py; done
	@python3 -m unittest discover -q -s tools/tests -t tools

install: build  ## into PREFIX (/usr/local)
	cmake --install build --prefix "$(PREFIX)"

full-product: tests  ## the contract suite's whole product instead of its pairwise cover (minutes)
	cmake --build build --target full_product

gpu-full:  ## GPU libraries for sm_80 as well, their tests, and the contract suite's whole product
	@$(SETUP) test
	cmake --preset gpu-full -DHOSTLESS_BUILD_TESTS=ON
	cmake --build build-gpu-full -j $(JOBS)
	ctest --test-dir build-gpu-full -R gpu
	cmake --build build-gpu-full --target full_product
	@cat build-gpu-full/gpu-libraries.txt

coverage:  ## line coverage of host code; fails below COVERAGE per cent (95)
	@$(SETUP) ci
	tools/coverage.sh $(COVERAGE)

sanitize:  ## tests under address + undefined and thread sanitizers
	@$(SETUP) ci
	tools/sanitize.sh asan-ubsan
	tools/sanitize.sh tsan

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
