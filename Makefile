# `make run` launches the real engine on this machine; `make test` sets up and runs the suite. Both need only python3
# (3.11+), pip and, to install missing system packages, apt as root.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export SGLANG_LAUNCHER_CACHE ?= $(HOME)/.cache/sglang-launcher

.PHONY: help run stop test quick lint compiled engine engine-test bench truth faults clean system

help:
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml
	@tools/setup_venv.sh $(VENV) $(PYTHON)

# unset, because otherwise every process compiles 100 modules again, and every pytest worker all tests
export PYTHONDONTWRITEBYTECODE :=
compiled: $(VENV)/.ready
	@$(BIN)/python -m compileall -q launcher checks

system: ## install missing system packages (OpenSSH server, flock …)
	@tools/setup_system.sh

engine: $(VENV)/.ready ## install the real engine and a small model in the cache folder (the first time takes minutes)
	@$(PYTHON) tools/setup_engine.py

run: engine compiled ## launch the real engine on this machine with the launcher
	@$(BIN)/launch profile smollm2-135m-cpu --host local
	@printf '\nnext: launch profile smollm2-135m-broken --host local --set port=30001, then diagnose last-crash\n      make stop\n      (both commands are in $(BIN))\n'

stop: $(VENV)/.ready ## stop everything that `make run` started
	@$(BIN)/launch stop --all --host local

test: system compiled lint ## run the whole suite without the engine
	@$(BIN)/pytest --collect-only -qq >/dev/null || true
	@$(BIN)/pytest -n 6 --dist worksteal -m 'not engine'

quick: compiled ## test every room in half a minute, without apt and sshd
	@$(BIN)/ruff check .
	@$(BIN)/pytest -n auto -m 'not engine and not sshd and not slow'

engine-test: system engine compiled ## run the tests that need the real engine
	@$(BIN)/pytest -m engine -v

lint: $(VENV)/.ready ## run ruff, mypy, the import contracts and the knowledge lint
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m checks.lint

truth: engine compiled ## compare the check with the real engine on 400 drawn launches (half an hour)
	@$(BIN)/launch engines fetch 0.5.23 >/dev/null
	@$(BIN)/python tools/truth.py

faults: compiled ## plant 373 serving faults in a stand-in and count what standard finds (an hour)
	@$(BIN)/python tools/faults.py --suite standard --baseline
	@$(BIN)/python tools/faults.py --suite standard --healthy

bench: engine compiled ## measure the figures that the project promises
	@$(BIN)/python tools/bench.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
