# Every target sets up .venv by itself. `make demo`, `make run` and `make test` are all that a new clone needs.

ifndef PYTHON
PYTHON := $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,$(if $(shell $(p) -c \
	'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null),$(p))))
endif
BIN := .venv/bin
# What has been installed: what `make run` needs, what all other targets need, and what `make fpga` needs besides.
RUNNABLE := .venv/.runnable
READY := .venv/.ready
FPGA := .venv/.fpga
SOURCES := hdl sim tb tests docs
SEEDS ?= 1
CYCLES ?= 4000
CASES ?= 10000
SEED ?= 1
SHARD ?= 1/12
# One worker per core, 8 at most: each holds compiled kernels of its own. A file's tests share what they build, so they
# stay together.
WORKERS ?= auto
PIP = $(BIN)/python -m pip --disable-pip-version-check
comma := ,
# $(call install,EXTRAS): the package with EXTRAS, from here. An environment whose making was interrupted lacks pip, and
# is completed. uv takes a fifth of pip's time. It does not read pip's
# configuration: where that has another index for PyPI, or uv fails, pip does it all. On a terminal both show bars.
define install
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	@echo "installing Python packages into .venv"
	@quiet=--quiet; test ! -t 2 || quiet=; \
	{ ! $(BIN)/python -m pip config list | grep '[.]index-url' >/dev/null && $(PIP) --quiet install uv && \
	  $(BIN)/uv pip install $$quiet --python $(BIN)/python --editable '.$(1)'; } || \
	$(PIP) $$quiet install --editable '.$(1)'
	touch $@
endef
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist loadfile

# Tests start hundreds of processes: where the user has Python keep no byte code, each would compile some 800 modules anew.
test test-long test-slow test-all: export PYTHONDONTWRITEBYTECODE =

.PHONY: demo run test test-long test-slow test-all tb fuzz mutants area fpga map confirm pages site lint types clean prerequisites

demo: $(RUNNABLE)  ## what T3 does, on four toy GPUs: the policies side by side, why they differ, and a report
	$(BIN)/t3 demo

run: $(RUNNABLE)  ## co-simulate four policies on T-NLG FC-2, TP 8, print the comparison, and write a report of it
	$(BIN)/t3 compare --model t-nlg --sublayer fc2 --tp 8 --preview out/preview --out out/t-nlg-fc2-tp8
	$(BIN)/t3 report out/t-nlg-fc2-tp8

test: $(READY)  ## proofs and tests that take seconds each
	$(BIN)/t3 prove --quick
	$(PYTEST) -m "not long and not slow"

test-long: $(READY)  ## longer tests: what .ci/run adds
	$(PYTEST) -m "long and not slow"

test-slow: $(READY)  ## a shard of the slowest tests, minutes: SHARD=i/N; .ci/run adds another one for every commit
	$(PYTEST) --dist worksteal -m slow --shard $(SHARD)

test-all: $(READY)  ## every proof and test
	$(BIN)/t3 prove
	$(PYTEST)

tb: $(READY)  ## testbenches of the generated Verilog under Verilator and Icarus: SEEDS runs of CYCLES cycles per part
	$(BIN)/python -m tb.bench --seeds $(SEEDS) --cycles $(CYCLES)

fuzz: $(READY)  ## CASES command lines made from SEED against what must hold for all of them, and a table
	$(BIN)/python -m tests.fuzz --cases $(CASES) --seed $(SEED)

mutants: $(READY)  ## docs/results/mutation.md: small mistakes in the netlists, and what notices them (half an hour)
	$(BIN)/python -m tb.mutation.campaign --out docs/results/mutation/mutation.json
	$(BIN)/python -m docs.pages mutation

area: $(READY)  ## docs/reference/area.md: gates, memories and depth of every part, against its budget (minutes)
	$(BIN)/python -m docs.pages area

fpga: $(FPGA)  ## docs/results/boards-results.md: all boards, three seeds each (hours; seeds that are kept stay)
	$(BIN)/python -m docs.pages.boards

# Restartable: finished runs are kept in the cache folder.
map: $(READY)  ## docs/results/map-results.md: where arbitration gains time (hours of a core; goes on where it was)
	$(BIN)/t3 map --axes none --models t-nlg,mega-gpt-2 --sublayers op,fc2,ip --tp 2,4,8,16,32,64 --random 40 --launches 3 \
		--out docs/results/gains/t-nlg-mega-gpt-2-random
	$(BIN)/t3 map --axes none --models gpt-3,palm,mt-nlg --sublayers op,fc2,ip --tp 32 --launches 3 \
		--out docs/results/gains/tp-32
	$(BIN)/t3 map --axes none --models 1t,10t --sublayers op,fc2,ip --tp 64 --launches 3 --out docs/results/gains/tp-64
	$(BIN)/t3 map --axes none --models t-nlg,mega-gpt-2 --sublayers op,fc2,ip --tp 8,16 --launches 3 \
		--machine paper-accelsim --set arbiter.mca=backlog --out docs/results/gains/tp-8-16-paper-accelsim
	$(BIN)/t3 map --quick --out docs/results/map/paper
	$(BIN)/t3 map --quick --machine paper-accelsim --out docs/results/map/paper-accelsim
	$(BIN)/t3 map --models t-nlg --sublayers fc2 --tp 8 --out docs/results/pairs/paper
	$(BIN)/t3 map --axes rule --out docs/results/rules/paper
	$(BIN)/t3 map --axes cost --models t-nlg --sublayers fc2 --tp 8 --random 40 --out docs/results/costs/random
	$(BIN)/t3 map --axes cost --models palm,mt-nlg --sublayers op,ip --tp 32 --out docs/results/costs/palm-mt-nlg-tp-32
	$(BIN)/python -m docs.pages map played.reader

confirm: $(READY)  ## whether today's simulator gives what kept records of an earlier one say, by results drawn at random
	$(BIN)/python -m docs.pages.played.confirm $(wildcard docs/results/map/* docs/results/pairs/* docs/results/rules/* \
		docs/results/gains/* docs/results/costs/*) docs/results/machines docs/results/reproduction \
		docs/results/reproduction-accelsim; status=$$?; \
		$(BIN)/python -m docs.pages map played.reader today readme validation && exit $$status

pages: $(READY)  ## every generated page of docs/, after a change of hardware, machine or model; some measure for minutes
	$(BIN)/python -m docs.pages

site: $(READY)  ## the manual as a site that works offline, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open build/site/index.html"

lint: $(READY)  ## style and format
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(READY)  ## static types
	$(BIN)/mypy

clean:  ## everything that the other targets made, but not results in out/
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache build *.egg-info hdl/*.egg-info sim/*.egg-info
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNNABLE): pyproject.toml | prerequisites
	$(call install)

$(READY): pyproject.toml | prerequisites
	$(call install,[dev])
	touch $(RUNNABLE)

$(FPGA): $(READY)
	$(call install,[dev$(comma)fpga])

prerequisites:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "OpenT3 needs Python 3.11 or newer: apt install python3 python3-venv, or make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "OpenT3 needs Python's venv module: apt install python3-venv" >&2; exit 1; }
	@command -v "$${CXX:-g++}" >/dev/null || { echo "OpenT3 needs a C++ compiler for its hardware: apt install g++, or set CXX" >&2; exit 1; }
