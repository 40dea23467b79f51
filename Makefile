# Two commands do everything: `make` and `make test`. Needs git, make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYTHONWARNINGS ?= ignore::DeprecationWarning
# Where Pyodide and MathJax lie; without such a folder they are downloaded (web/vendor.toml).
export VENDOR ?= $(abspath $(firstword $(wildcard vendor ../shared/vendor)))
BOOK := jupyter-book build -W -n --keep-going .

.PHONY: shots lighthouse vendor-files lite pdf picture all test test-answers test-browser test-rest bench bench-gpu serve lab book notebooks sample format clean
.DEFAULT_GOAL := all

all: notebooks lite book sample
	@echo
	@echo "The book:           _build/html/index.html   (make serve)"
	@echo "The exercises:      exercises/               (make lab)"
	@echo "The sample class:   _build/sample-class/grades.csv, and feedback/ beside it"
	@echo "Your own class:     README.md, \"Grade a class\""

$(VENV)/.ready: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"Python 3.11 or newer is needed; this is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python cannot make virtual environments here (on Debian: apt install python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

notebooks: $(VENV)/.ready
	autograde build

# The pages' results are kept; what the pages run has changed, so forget them.
_build/.executed: requirements.txt $(wildcard autograde/*.py autograde/reference/*.py autograde/figures/*.py autograde/decoder/*.py book/*.toml book/*.json bench/results/*.json)
	rm -rf _build/.jupyter_cache _build/.doctrees
	@mkdir -p _build && touch $@

book: $(VENV)/.ready _build/.executed vendor-files
	$(BOOK)

# The book can do without them.
vendor-files: $(VENV)/.ready
	python -m web.vendor || [ $$? -eq 1 ]

# JupyterLite with the exercises, which the next build of the book takes into the site.
lite: $(VENV)/.ready notebooks vendor-files
	python -m web.lite || [ $$? -eq 1 ]

pdf: book
	python -m web.pdf

# The picture in README.md, of the book as it is now.
picture: book
	python -m web.picture

sample: $(VENV)/.ready notebooks
	autograde sample-class

# Two at once share the cores.
test: export OMP_NUM_THREADS ?= 1
test: $(VENV)/.ready _build/.executed vendor-files
	ruff format --check .
	ruff check .
	$(MAKE) -j2 test-browser test-rest

# The exam of all wrong and right answers, here and in the browser, takes as long as all the rest.
test-answers: $(VENV)/.ready
	pytest tests/test_bank.py

test-browser: test-answers book
	pytest tests/test_browser.py

test-rest: book
	pytest --ignore=tests/test_bank.py --ignore=tests/test_browser.py

# Measurements on the CPU, to bench/results/. For one of them alone: python -m bench decode
bench: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	$(BIN)/python -m bench

bench-gpu: $(VENV)/.ready
	$(BIN)/python -m bench gpu

serve: book
	python -m web.serve

# Every page, desktop and phone, light and dark, to look at: _build/shots/index.html
shots: book
	python -m web.shots

# Speed, accessibility and best practices of every chapter, as a phone sees it. On an idle machine.
lighthouse: book
	python -m web.lighthouse

lab: $(VENV)/.ready
	jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) exercises

format: $(VENV)/.ready
	ruff check --fix .
	ruff format .

clean:
	rm -rf _build
