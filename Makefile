# Holdfast. `make serve` and `make test` do all set-up on a machine with Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
PACKAGES := pgwire planner txn engine sqllogictest
SEEDS ?= 1000
DIFF_SEEDS ?= 1-10
FIRST ?= 1
SF ?= 1

# Set in many containers. pytest keeps the test modules whose assertions it has rewritten, else that is 14 s of both processes' time
export PYTHONDONTWRITEBYTECODE :=

# Processes that share the test files; all tests that need a Spark JVM are one process's.
JOBS ?= 2

.PHONY: plpgsql smith definitions rights views dumps serve diff diff-spark test install check fmt lint types imports golden rewrite sim isolation slt slt-spark proofs spark spark-conformance spark-cluster bench instructions tpch bench-tpch crash fuzz hostile hostile-short docs docs-site drivers clean

install: $(COMPILED)

$(STAMP): pyproject.toml requirements.lock
	@echo "Preparing $(VENV) (about a minute; pyspark is large)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $(STAMP)

# Once and before the first start, which would compile 500 modules itself
$(COMPILED): $(STAMP) $(shell find $(PACKAGES) -name '*.py')
	@$(BIN)/python -m compileall -q $(PACKAGES)
	@touch $(COMPILED)

serve: $(COMPILED)
	@exec $(BIN)/holdfast serve $(ARGS)

test: $(COMPILED)
	$(BIN)/pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

fmt: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_links.py
	$(BIN)/python tools/wrap_docs.py --check

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports
	$(BIN)/python tools/imports.py --check

golden: $(COMPILED)
	$(BIN)/pytest tests/golden

rewrite: $(STAMP)
	$(BIN)/pytest tests/golden --rewrite

sim: $(COMPILED)
	$(BIN)/python -m tests.sim.sweep --seeds $(SEEDS) --first $(FIRST)

isolation: $(COMPILED)
	$(BIN)/pytest -m "isolation or not long" tests/isolation

slt: $(COMPILED)
	$(BIN)/python -m bench.slt

rights: $(COMPILED)
	$(BIN)/pytest -m "long or not long" tests/rights
	$(BIN)/python tools/gen_evidence_doc.py

proofs: $(COMPILED)
	$(BIN)/pytest -m "long and not spark and not isolation" tests/conformance tests/engine tests/pgwire tests/sim tests/txn
	HOLDFAST_FULL=1 $(BIN)/pytest tests/planner/builtins

spark-conformance: $(STAMP)
	$(BIN)/pytest -m long tests/conformance/executors

slt-spark: $(STAMP)
	$(BIN)/python -m bench.slt --executor spark --sample 5000 $(ARGS)

spark: $(STAMP)
	$(BIN)/pytest -m spark

spark-cluster: $(STAMP)
	$(BIN)/pytest -m spark tests/engine/spark/test_cluster.py
	HOLDFAST_TEST_CLUSTER=1 $(BIN)/pytest -m long tests/conformance/executors/test_transcripts.py

bench: $(COMPILED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m bench

# Instructions per transaction under valgrind's callgrind, beside the figures that are kept
instructions: $(COMPILED)
	$(BIN)/python -m bench.instructions --against docs/evidence/instructions.json $(ARGS)

tpch: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m bench.tpch

bench-tpch: $(COMPILED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m bench.tpch.race --scale $(SF) $(ARGS)

# 5,000 random queries beside a private PostgreSQL 15, and all scripts on DuckDB too (tests/differential)
diff: $(COMPILED)
	HOLDFAST_DIFF=5000 $(BIN)/pytest -s -m "not spark" tests/differential

# Every query of PostgreSQL's regression scripts as a view, altered under it, and in other ways, beside a private PostgreSQL 15; hours
VIEWS ?= 1000000
views: $(COMPILED)
	HOLDFAST_DIFF=$(VIEWS) HOLDFAST_EVIDENCE=docs/evidence/views.json $(BIN)/pytest -s -m long tests/differential/test_views_of_queries.py
	$(BIN)/python tools/gen_evidence_doc.py

# pg_dump after each of the project's own scripts, a restore of it and pg_dump again, beside a private PostgreSQL 15
dumps: $(COMPILED)
	HOLDFAST_EVIDENCE=docs/evidence/dumps.json $(BIN)/pytest -m "long or not long" tests/differential/test_dumps.py
	$(BIN)/python tools/gen_evidence_doc.py

# Random definitions beside a private PostgreSQL 15, some 120 statements a seed: SQLSTATEs, notices, catalogs, what relations hold
definitions: $(COMPILED)
	HOLDFAST_SEEDS=$(FIRST)-$$(($(FIRST) + $(SEEDS) - 1)) HOLDFAST_EVIDENCE=docs/evidence/definitions.json $(BIN)/pytest -s tests/differential/test_random_definitions.py
	$(BIN)/python tools/gen_evidence_doc.py

# sqlsmith (apt-get install sqlsmith) against TPC-H and a schema of all types, and what it sent again on a private PostgreSQL 15
MINUTES ?= 30
smith: $(COMPILED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-bench.lock
	$(BIN)/python -m bench.smith --minutes $(MINUTES) --seed $(FIRST) --out docs/evidence/smith.json $(ARGS)
	$(BIN)/python tools/gen_evidence_doc.py

# Random PL/pgSQL functions beside a private PostgreSQL 15, 250 of each seed: results, errors, notices with CONTEXT, what tables hold
plpgsql: $(COMPILED)
	HOLDFAST_DIFF=250 HOLDFAST_SEEDS=$(DIFF_SEEDS) HOLDFAST_EVIDENCE=docs/evidence/plpgsql.json $(BIN)/pytest -s tests/differential/test_plpgsql.py
	$(BIN)/python tools/gen_evidence_doc.py

# 500 queries of each of ten seeds on Spark, and 100 nested ones
diff-spark: $(STAMP)
	HOLDFAST_DIFF=500 HOLDFAST_SEEDS=$(DIFF_SEEDS) $(BIN)/pytest -s -m spark tests/differential/test_generated.py
	HOLDFAST_DIFF=100 HOLDFAST_SEEDS=$(DIFF_SEEDS) $(BIN)/pytest -s -m spark tests/differential/test_nested.py

# The targets of tests/fuzz one after the other, SECONDS together; what it finds is left in .fuzz
SECONDS ?= 600
fuzz: $(COMPILED)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(FIRST)

# The table of tests/hostile: all rows at their small sizes; and at its full sizes, against servers of 512 MB and 2 GB; for an idle machine, about an hour
hostile-short: $(COMPILED)
	$(BIN)/pytest -m "long or not long" tests/hostile

hostile: $(COMPILED)
	$(BIN)/python -m tests.hostile --out docs/evidence/hostile.json $(ARGS)
	$(BIN)/python tools/gen_evidence_doc.py

crash: $(COMPILED)
	$(BIN)/python -m bench.crash

# After every script a killed server starts twice with what pg_dump said it had
restart: $(COMPILED)
	$(BIN)/python -m bench.restart $(ARGS)
	$(BIN)/python tools/gen_evidence_doc.py

.drivers/.installed: requirements-drivers.lock requirements-pgadmin.lock requirements-duckdb.lock tests/drivers/clients/package-lock.json tools/install_clients.sh
	PYTHON=$(PYTHON) tools/install_clients.sh
	@touch $@

drivers: $(COMPILED) .drivers/.installed
	$(BIN)/pytest -m "long or not long" tests/drivers

docs: $(STAMP)
	$(BIN)/python tools/gen_builtins_doc.py
	$(BIN)/python tools/gen_settings_doc.py
	$(BIN)/python tools/gen_pictures.py
	$(BIN)/python tools/gen_evidence_doc.py

.docs/.installed: requirements-docs.lock tools/install_docs.sh
	PYTHON=$(PYTHON) tools/install_docs.sh
	@touch $@

# The documentation as a site in site/; a link or an anchor that leads nowhere is an error (not with --quiet: warnings are not counted then)
docs-site: .docs/.installed
	NO_MKDOCS_2_WARNING=1 .docs/venv/bin/mkdocs build --strict --clean

# mypy needs one processor, and a minute where nothing is cached: beside the tests
check: lint imports
	$(MAKE) -j 2 types test

clean:
	rm -rf $(VENV) .drivers .docs site .mypy_cache .ruff_cache .pytest_cache
