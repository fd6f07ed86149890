# 共卡 Gongka. `make demo` 运行整个演示；`make test` 跑全部检查与测试。 / `make demo` runs it, `make test` tests it.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do command -v $$p && break; done)
BIN := .venv/bin
CODE := console scheduler workers relay demo benchmarks
# What tests start they often wait for, and a farm waits most of its time: more processes than cores keep two cores busy.
WORKERS ?= 3
FARMS ?= 3
PYTEST := $(BIN)/python -m pytest -p tests.no_skips
# What is compiled once is not compiled again by each of the hundreds of processes that tests start.
unexport PYTHONDONTWRITEBYTECODE
# Whole files to whoever is free, in the order of the folders: browsers first, many small ones last.
FILES := --dist loadfile --no-loadscope-reorder
# A part's output is printed whole when the part ends (GNU Make 4; an older one mixes the lines of two parts).
WHOLE := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.PHONY: setup setup-dev demo demo-check scene lint test test-core test-rest test-postgres test-farm clean
.DEFAULT_GOAL := demo

setup:
	@test -n "$(PYTHON)" || { echo "✗ 没有找到 Python 3 / no Python 3 found" >&2; exit 2; }
	@$(PYTHON) -m demo.set_up

setup-dev:
	@test -n "$(PYTHON)" || { echo "✗ 没有找到 Python 3 / no Python 3 found" >&2; exit 2; }
	@$(PYTHON) -m demo.set_up --dev

# ARGS="--port-web 8001 --port-gateway 8081 --speed 2 --home var/other"
demo: setup
	@exec $(BIN)/python -m demo.run $(ARGS)

demo-check: setup
	@exec $(BIN)/python -m demo.check $(ARGS)

# `make scene S02`: a story on the running demo; without a name they are listed. ARGS="--home var/other"
ifeq (scene,$(firstword $(MAKECMDGOALS)))
STORY := $(word 2,$(MAKECMDGOALS))
$(eval $(STORY):;@:)
endif
scene:
	@exec $(BIN)/python -m demo.scenes $(STORY) $(ARGS)

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(NICE) $(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check

# One part after another: what fails is the part's own fault. LANES=2: the farms beside all else, which saves minutes and
# is a test of patience.
LANES ?= 1
PARTS := lint test-core test-rest test-postgres
test: setup-dev
ifeq ($(LANES),1)
	@$(MAKE) --no-print-directory $(PARTS) test-farm
else
	@echo "每部分结束时整段输出 / a part's output comes when it ends"
	@$(MAKE) --no-print-directory -j $(LANES) $(WHOLE) NICE="nice -n 5" test-farm $(PARTS)
endif

# Rewriting assertions costs more than running these tests: plain ones fail alike, and what failed is run again, explained.
# The core has no threads, files, logs or output of programs: nothing for the plug-ins that are left out to look after.
# One clock for all of it.
CORE := PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 timeout 600 $(PYTEST) -q tests/scheduler \
	--capture=sys $(addprefix -p no:,logging unraisableexception threadexception faulthandler junitxml doctest \
	setuponly setupplan stepwise pastebin debugging)
test-core: setup-dev
	@$(BIN)/python -m compileall -q scheduler tests/scheduler
	$(CORE) --assert=plain || { $(CORE); exit 1; }

test-rest: setup-dev
	$(NICE) $(PYTEST) -q -n $(WORKERS) $(FILES) -m "not farm" --ignore tests/scheduler

# What records and ingests, on the production database too.
test-postgres: setup-dev
	$(NICE) $(BIN)/python -m tests.on_postgres -p tests.no_skips -q -n 2 $(FILES) tests/control

test-farm: setup-dev
	$(PYTEST) -q -n $(FARMS) --maxschedchunk 1 -m farm tests/farm tests/demo

# What can be made again; the demo's data in var/ stays.
clean:
	rm -rf .venv node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
