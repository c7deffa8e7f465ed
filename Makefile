# make demo: convert a fixture, train it in one process and in two, show both.  make test: everything that CI runs.
# make nightly: what takes longer, too.
PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV = .venv
BIN = $(VENV)/bin
# Hundreds of processes import what is tested; those of `ddpify verify` read compiled modules, but write none.
export PYTHONDONTWRITEBYTECODE =

.PHONY: bytecode demo test installed nightly lint unit e2e launchers xla gpu models engines scripts fixtures clean

demo: $(VENV)/ready
	$(BIN)/python -m tests.demo

# What is installed for later parts comes while the first checks run: neither takes both cores.
test:
	$(MAKE) --jobs 3 --output-sync lint installed $(VENV)-xla/ready
	$(MAKE) unit e2e launchers xla

installed:
	tests/engines/install

bytecode: $(VENV)/ready
	$(BIN)/python -m compileall -q ddpify codemods runtime

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: bytecode
	$(BIN)/pytest -n 2 --dist loadgroup -m "not nightly" tests --ignore=tests/e2e --ignore=tests/engines --ignore=tests/ddpify/verify --ignore=tests/properties --ignore=tests/xla --ignore=tests/models --ignore=tests/gpu

e2e: bytecode
	$(BIN)/pytest -n 2 --dist loadgroup -m "not nightly" tests/e2e tests/ddpify/verify tests/properties

# torchrun, Open MPI, MPICH and Slurm, on this machine and on two network namespaces as hosts: as root, on Debian.
launchers: bytecode
	tests/engines/install
	$(BIN)/pytest -n 2 --dist loadfile -m "not nightly" tests/engines

# The same with Intel MPI and Horovod, which has to be built.
engines: bytecode
	tests/engines/install --all
	$(BIN)/pytest -n 2 --dist loadfile tests/engines

# Real torch_xla on CPU devices, in an environment of its own.
xla: bytecode $(VENV)-xla/ready
	$(BIN)/pytest -n 2 -m "not nightly" tests/xla

# Real GPUs, over NCCL; with the python that has torch for them: `make gpu BIN=/where/it/is`.
gpu:
	$(BIN)/python -m pytest -n 8 --dist loadgroup -p no:benchmark tests/gpu

# A dozen models of torchvision, timm and transformers; all of them by night.
models: bytecode $(VENV)/models-ready
	$(BIN)/pytest -n 2 -m "not nightly" tests/models

# One and four XLA devices, repeated runs, every model, Intel MPI and Horovod, and hundreds of random scripts.
nightly: test scripts models
	tests/engines/install --all
	$(BIN)/pytest -n 2 -m nightly tests --ignore=tests/gpu

# Hundreds of random scripts instead of the sample that `make e2e` takes.
scripts: bytecode
	DDPIFY_SCRIPTS=$${DDPIFY_SCRIPTS:-400} $(BIN)/pytest -n 2 tests/properties

# Rewrites the expected outputs beside the fixtures.
fixtures: $(VENV)/ready
	$(BIN)/python -m tests.update_fixtures

$(VENV)/ready: pyproject.toml runtime/pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $(TORCH)
	$(BIN)/pip install --quiet --editable ./runtime --editable '.[dev]'
	touch $@

$(VENV)/models-ready: $(VENV)/ready
	$(BIN)/pip install --quiet $(TORCH) --editable '.[models]'
	touch $@

$(VENV)-xla/ready:
	$(PYTHON) -m venv $(VENV)-xla
	$(VENV)-xla/bin/pip install --quiet --upgrade pip
	$(VENV)-xla/bin/pip install --quiet torch==2.9.0 torch_xla==2.9.0 'numpy>=2,<3' 'tqdm>=4,<5'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-xla .mypy_cache .pytest_cache .ruff_cache *.egg-info */*.egg-info build */build
