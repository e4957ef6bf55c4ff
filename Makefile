# SPDX-License-Identifier: BSD-3-Clause
# Every target does its own set-up; `make help` lists them. Variables: V=1 shows every command,
# OUT=DIR is where demo and bench write, PYTHON=python3.12 is what .venv is made with.
#
# Only installing Debian packages needs root, and only when some are missing (scripts/setup-packages).
# Nothing is rebuilt or installed again unless what it was made from has changed: cargo sees to the
# Rust part, a digest of the requirements to .venv (scripts/setup-python).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
unexport MAKEFLAGS MFLAGS

V ?= 0
export V
ifeq ($(V),0)
Q := @
endif

CARGO := scripts/cargo
# The lab builds the C forwarder by its own Makefile: that make must not take itself for one of ours.
LINERATE := env -u MAKELEVEL .venv/bin/linerate
# Measurements of the project itself, which are no part of the lab.
BENCH := env -u MAKELEVEL PYTHONPATH='$(CURDIR)/bench/lab' .venv/bin/python -m linerate_bench
# With the forwarders that only the benchmarks have, plain-c and others.
BENCH_LINERATE := LINERATE_FORWARDERS=bench/lab/linerate_bench/forwarders $(LINERATE)
comma := ,
STAMP := $(shell date +%Y%m%d-%H%M%S)
OUT ?= out/$@-$(STAMP)

.PHONY: help setup packages bench-packages cloud-packages lint-packages releases-packages venv programs graph-bench native-graph build demo demo-cloud bench bench-trust bench-duels bench-answers bench-bisects bench-agreement test test-all fuzz fuzz-minimize soak kills lint sanitize miri test-releases publish-check audit clean

help: ## list the targets
	$(Q)sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name purpose; do \
	  printf '  make %-13s %s\n' "$$name" "$$purpose"; done

setup: packages venv ## install what is missing: Debian packages (root), .venv, Rust crates
	$(Q)$(CARGO) fetch --locked $(if $(filter 0,$(V)),--quiet)

build: setup programs graph-bench ## build the Rust programs that experiments run, into target/release

# Status 1, 3 and 4 of a duel are answers, too; the floods are shown whatever it answers.
DEMO_BUILDS := c-l2fwd,c-l2fwd-native,c-l2fwd-clang,c-l2fwd-clang-native
demo: setup programs ## is l2fwd in Rust slower than in C? Answers and the published overload table, in a report (2 minutes)
	$(Q)$(LINERATE) duel $(DEMO_BUILDS) rust-l2fwd --link null,frames,memif --within 40s --out '$(OUT)' || [[ $$? != 2 ]]
	$(Q)$(LINERATE) run overload --preset floods --out '$(OUT)/overload'
	$(Q)$(LINERATE) report '$(OUT)'

demo-cloud: setup programs cloud-packages ## put containers and a virtual machine beside DPDK and XDP, as root, and write a report (11 minutes)
	$(Q)$(LINERATE) run cloud --design demo --out '$(OUT)'

# Every second block chooses the best C build, the others judge it: hence 80 for 40.
BENCH_ARMS := c-l2fwd,c-l2fwd-native,c-l2fwd-clang,c-l2fwd-clang-native,plain-c,plain-c-burst,rust-l2fwd,rust-l2fwd-burst,raw-rust,raw-rust-burst
BLOCKS ?= 80
# Instructions are not counted of builds for this processor: valgrind knows no AVX-512.
bench: build bench-packages ## compare l2fwd and the generator with C, count instructions, time the probe (1 hour)
	$(Q)$(BENCH_LINERATE) run overload --preset screen --link null2,nearfree2 --forwarders $(BENCH_ARMS) \
	  --blocks $(BLOCKS) --no-probe --out '$(OUT)'
	$(Q)$(BENCH).goals '$(OUT)/records.jsonl' | tee '$(OUT)/goals.txt'
	$(Q)$(BENCH).probe_cost | tee '$(OUT)/probe.txt'
	$(Q)$(BENCH).generator_speed | tee '$(OUT)/generator.txt'
	$(Q)scripts/count-instructions $(filter-out %-native,$(subst $(comma), ,$(BENCH_ARMS))) | tee '$(OUT)/instructions.txt'
	$(Q)scripts/count-callbacks | tee '$(OUT)/callbacks.txt'
	$(Q)$(MAKE) --no-print-directory native-graph
	$(Q)$(LINERATE) run graph --preset full --out '$(OUT)/graph'
	$(Q)$(BENCH).graph_goals '$(OUT)/graph/records.jsonl' | tee '$(OUT)/graph-goals.txt'
	$(Q)$(BENCH).acl | tee '$(OUT)/acl.txt'
	$(Q)$(CARGO) build --release --locked --bin nat-bench --bin lookup-bench --bin l4lb
	$(Q)$(BENCH).nat | tee '$(OUT)/nat.txt'
	$(Q)$(BENCH).lookups | tee '$(OUT)/lookups.txt'
	$(Q)$(BENCH).twins | tee '$(OUT)/twins.txt'
	$(Q)$(LINERATE) run l3fwd --link nearfree1-ip,nearfree2-ip --routes 1000 --rules 0 --no-probe \
	  --forwarders c-l3fwd-graph,c-l3fwd-graph-native,c-l3fwd-graph-clang,c-l3fwd-graph-clang-native,rust-l3fwd-graph,rust-l3fwd-graph-fused \
	  --blocks $(BLOCKS) --out '$(OUT)/l3fwd'
	$(Q)$(BENCH).l3fwd_goals '$(OUT)/l3fwd/records.jsonl' | tee '$(OUT)/l3fwd-goals.txt'

# Rounds of real comparisons; 0 for those on the simulated machine alone, which take a minute.
REAL ?= 40
bench-trust: $(if $(filter 0,$(REAL)),setup,build) ## count wrong verdicts and slow-downs not found, simulated and real (110 minutes; REAL=0: 1)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).trust --json '$(OUT)/trust.json' \
	  $(if $(filter 0,$(REAL)),--simulated-only,--real $(REAL) --records '$(OUT)/records.jsonl') | tee '$(OUT)/trust.txt'

bench-duels: build ## count how often a duel is right, alone and beside a compiler (2 hours; resumes: ONLY="5 %" COUNT=3)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).trust.duels --records '$(OUT)/duels.jsonl' $(if $(ONLY),--only '$(ONLY)') $(if $(COUNT),--count $(COUNT))

bench-bisects: build ## count how often git bisect finds a slower commit beside a compiler (1 hour; resumes: COUNT=3)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).trust.bisects --records '$(OUT)/bisects.jsonl' $(if $(COUNT),--count $(COUNT))

bench-answers: build graph-bench ## count the questions that short presets answer, alone and beside a compiler (3 hours; resumes: ONLY=paths COUNT=1)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).trust.answers --records '$(OUT)/answers.jsonl' $(if $(ONLY),--only '$(ONLY)') $(if $(COUNT),--count $(COUNT))

bench-agreement: build ## compare pairs of programs beside each other and alone (10 minutes)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).trust.agreement | tee '$(OUT)/agreement.txt'

test: build ## run the tests of the first tier, Rust and Python
	$(Q)env -u MAKELEVEL scripts/run-tests

test-all: build ## run every test of both tiers, as one does each night and before a release
	$(Q)env -u MAKELEVEL scripts/run-tests --all

SECONDS ?= 600
fuzz: setup ## feed every parser with any bytes for SECONDS=600 each (TARGET="frame otg": only these)
	$(Q)scripts/run-fuzzers '$(SECONDS)' $(TARGET)

fuzz-minimize: setup ## remove from the corpora of fuzz/ what reaches nothing more (TARGET="frame otg": only these)
	$(Q)scripts/run-fuzzers --minimize $(TARGET)

HOURS ?= 1
soak: build ## count lost frames, leftovers and faults for HOURS=1 (resumes with the same OUT; ONLY=starts, ONLY=kills:lab)
	$(Q)mkdir -p '$(OUT)'
	$(Q)$(BENCH).soak --records '$(OUT)/soak.jsonl' --hours '$(HOURS)' $(if $(ONLY),--only '$(ONLY)')

KILLS ?= 50
kills: build ## kill the lab, generators and forwarders at KILLS=50 random moments, and resume; and 30,000 clients of memif
	$(Q)LINERATE_KILLS='$(KILLS)' PYTHONPATH=scripts .venv/bin/python -m pytest -ra -p strict_skips \
	  lab/tests/test_e2e_resume.py lab/tests/test_e2e_cloud.py -k killed
	$(Q)LINERATE_MEMIF_CLIENTS=10000 PYTHONPATH=scripts:crates/generator/tests .venv/bin/python -m pytest -q -p strict_skips \
	  crates/generator/tests/test_memif_clients.py

lint: setup lint-packages ## check the style: rustfmt, clippy, ruff, mypy; warnings are errors
	$(Q)scripts/run-lint

sanitize: setup ## run the tests of the crates with unsafe code under AddressSanitizer and LeakSanitizer
	$(Q)scripts/run-sanitizers

miri: setup ## run under Miri the tests of unsafe code that calls no C
	$(Q)scripts/run-miri

RELEASES ?= trixie unstable
test-releases: releases-packages ## as root: build and test with the DPDK of Debian 13 and unstable (RELEASES=...)
	$(Q)RELEASES='$(RELEASES)' scripts/test-releases

publish-check: setup ## build each crate from the package that would be published; nothing is sent
	$(Q)scripts/publish-check

audit: setup ## check licences and sources of all that the project is made of, and list it (SBOM) in OUT
	$(Q)scripts/audit '$(OUT)'

clean: ## remove what was built, keep .venv and out/
	$(Q)rm -rf target build

# Steps of the targets above.
packages:
	$(Q)scripts/setup-packages

bench-packages: packages
	$(Q)scripts/setup-packages bench

cloud-packages: packages
	$(Q)scripts/setup-packages cloud

releases-packages:
	$(Q)scripts/setup-packages releases

lint-packages: packages
	$(Q)scripts/setup-packages lint

venv: packages
	$(Q)scripts/setup-python

# What `run graph` runs. By itself, because one core takes minutes for it: each cell is a program of
# its own to the compiler. The demos do without.
graph-bench: packages
	$(Q)$(CARGO) build $(BUILT) --locked --bin graph-bench

# For any processor of the architecture, and for this one alone, which native C is compared with.
native-graph: graph-bench ## build the graph benchmark, which run graph needs, and the one of lookups, for this processor (5 minutes)
	$(Q)RUSTFLAGS='-C target-cpu=native' $(CARGO) build --release --locked --bin graph-bench --bin lookup-bench --target-dir target/native

# All but what only `make bench` or a test runs. The same for both targets: others would ask for other features of
# dependencies, and cargo would compile the libraries again. LINERATE_PROFILE=checked, as CI has it, makes the programs of what
# the tests are made of: with the features that all packages and an example ask for.
LINERATE_PROFILE ?= release
BUILT = --workspace --profile $(LINERATE_PROFILE) $(if $(filter release,$(LINERATE_PROFILE)), \
  $(addprefix --exclude linerate-,bench-lookup bench-nat fuzz),--example devices)
programs: packages
	$(Q)$(CARGO) build $(BUILT) --lib --bins --exclude linerate-bench-graph --locked
