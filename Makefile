# From a bare Debian or Ubuntu machine: `make demo` shows what fabbbr does, `make test` proves that it works here.

PYTHON ?= /usr/bin/python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check
PIP_FLAGS :=
PACKAGES := python3 python3-venv build-essential flex bison bc bzip2 xz-utils ca-certificates
TEST_PACKAGES := iperf3 iproute2 ethtool iputils-ping util-linux mininet \
	tshark? chromium? chromium-driver? cpio kmod clang libbpf-dev bpftool? sudo openssh-client python3-apt
FUZZ_PACKAGES := clang-19 libclang-rt-19-dev
FABRIC_PACKAGES := python3-dev openssh-server openssh-client sudo iperf3 iproute2 iputils-ping util-linux procps
QEMU_PACKAGES := qemu-system-x86 qemu-utils mmdebstrap dpkg-dev e2fsprogs openssh-client
DEMO := runs/demo
N ?= 20

.PHONY: help setup tools image demo test test-fast test-again test-fabric test-wheel ci-dry-run test-qemu sweep fuzz check format guest older wheels scoreboard datasheets numbers study benchmark clean

help:
	@echo "make demo       install, build the guest image, rerun two papers quickly, show what came of each"
	@echo "make test       install and run all tests"
	@echo "make setup      install fabbbr alone (.venv/bin/fabbbr)"
	@echo "make tools      and what tests and checks need, as make test does by itself"
	@echo "make wheels     fabbbr and fabbbr-guest in dist/: what a machine without compiler or root installs"
	@echo "make check      format, style, types, layers: what every commit passes (Python 3.11 or later)"
	@echo "make test-fast  the tests that need no guest, no browser and no root"
	@echo "make test-again make test's tests N times in a row (N=20) while two processes spin (25 to 40 minutes each; goes on where it was)"
	@echo "make test-fabric  the real fablib against the double of FABRIC (root; 25 minutes)"
	@echo "make test-wheel the wheel in an empty environment, with and without the extra for FABRIC"
	@echo "make ci-dry-run  a slice of name spaces in a guest: create, prepare by Ansible, run, report, teardown"
	@echo "make test-qemu  the role bbr on whole distributions under qemu (hours without hardware virtualisation)"
	@echo "make sweep      every system call of a run fails in turn (ten minutes); what came of it, as a table"
	@echo "make fuzz       ten million random steps through the core of BBRv2 and BBRv3"
	@echo "make scoreboard  every published claim in its quick form, one page on them all, into docs/scoreboard (two hours on 2 cores; goes on where it was)"
	@echo "make datasheets  cubic, reno, bbr1, bbr2 and bbr3, each against the others of cubic, bbr1 and bbr3, into docs/datasheets (40 minutes on 2 cores)"
	@echo "make numbers    measure the numbers of README and docs again, the answers of the gallery too, and say which no longer hold (a quarter of an hour)"
	@echo "make study      every bundled experiment in its default form (hours)"
	@echo "make benchmark  speed of emulator and parsers beside their rivals"

setup: $(BIN)/.runs
	@$(SAY_WHERE)

tools: $(BIN)/.installed

SAY_WHERE = echo 'fabbbr is .venv/bin/fabbbr; to call it by its name in this shell: export PATH="$(CURDIR)/$(BIN):$$PATH"'

# What `fabbbr guest build` imports comes first, so that the image is compiled while pip fetches all the rest.
$(BIN)/.begun: scripts/install-packages
	@scripts/install-packages $(PACKAGES)
	@echo "fabbbr is installed into .venv: about 700 MB, a minute or two with a fast network"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) install --quiet pydantic rich pyyaml
	@touch $@

# What runs experiments and reports on them; then also what tests and checks need.
$(BIN)/.runs: pyproject.toml | $(BIN)/.begun
	@$(PIP) install $(PIP_FLAGS) --editable .
	@touch $@

$(BIN)/.installed: pyproject.toml | $(BIN)/.begun
	@echo "what tests and checks need is installed into .venv: about 300 MB more"
	@$(PIP) install --quiet --upgrade 'pip>=25.1'
	@$(PIP) install --quiet --editable . --group test --group lint
	@touch $@ $(BIN)/.runs

image: | $(BIN)/.begun
	@$(BIN)/python -m fabbbr.cli guest build

guest: $(BIN)/.runs image

# Of an earlier series, for the tests of kernels of one's own: Debian has the first, Ubuntu one of the others.
older: guest
	@for series in 6.1 6.8 5.15; do \
		$(BIN)/fabbbr kernel build --source $$series --name older --if-missing && break; \
	done || echo "no kernel of an earlier series can be built here: the tests of it are left out"

wheels: guest
	@$(BIN)/python scripts/make-wheels

# Python's modules are compiled when they are first used: as pip does it, all at once, the kernel has to wait for it.
demo:
	@echo "make demo: 6 to 10 minutes with 2 CPUs the first time (14 with slow ones), half of it to compile the guest's kernel; then 3 to 7"
	@$(MAKE) --silent --no-print-directory $(BIN)/.begun
	@$(MAKE) --silent --no-print-directory --jobs=2 PIP_FLAGS="--quiet --no-compile" $(BIN)/.runs image
	@$(BIN)/fabbbr run cardwell_f10 --quick --out $(DEMO)/cardwell_f10
	@$(BIN)/fabbbr claims $(DEMO)/cardwell_f10
	@$(BIN)/fabbbr run knit6_e1 --quick --no-report --out $(DEMO)/knit6_e1
	@$(BIN)/fabbbr claims $(DEMO)/knit6_e1
	@echo "The report on both:"
	@$(BIN)/fabbbr report $(DEMO)/cardwell_f10 $(DEMO)/knit6_e1 --to $(DEMO)
	@$(SAY_WHERE)

check: tools
	@scripts/install-packages shellcheck
	@shellcheck scripts/install-packages scripts/ci-dry-run scripts/knit6-in-the-double fabbbr/backends/guest/init.sh .ci/run tests/bpf/able \
		playbooks/roles/bbr/files/bpf/fab-bbr-bpf
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/vermin --quiet --no-tips --violations -t=3.6- fabbbr/agent playbooks/module_utils playbooks/roles/*/library playbooks/roles/*/module_utils
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline --profile production -q playbooks
# What mypy does not read: every test can be imported.
	@said=$$($(BIN)/pytest --collect-only --quiet --no-header) || { echo "$$said" | grep -v '::'; exit 1; }

format: tools
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

TESTED = not fabric and not wheel and not numbers$$(tests/bpf/able || echo ' and not bpf')

# In the order of the folders: the dear tests of few files come first, and the last of all are short.
SPREAD = -n auto --dist loadgroup --no-loadscope-reorder

# Without check: what type checkers say depends on the releases of numpy and scipy that a machine's Python can have.
test: tools image older
	@scripts/install-packages $(TEST_PACKAGES)
	@$(BIN)/pytest $(SPREAD) -m "$(TESTED)"

test-fast: tools
	@$(BIN)/pytest $(SPREAD) -m 'not guest and not browser and not bpf and not fabric and not wheel and not numbers'

# In a place of its own: fablib pins releases that the other tests do not want.
.venv-fabric/.installed: pyproject.toml scripts/install-packages
	@scripts/install-packages $(PACKAGES) $(FABRIC_PACKAGES)
	@test -x .venv-fabric/bin/python || $(PYTHON) -m venv .venv-fabric
	@.venv-fabric/bin/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@.venv-fabric/bin/pip install --quiet --disable-pip-version-check --editable '.[fabric,ansible]' --group test
	@touch $@

# They wait for each other's machines most of the time.
test-fabric: .venv-fabric/.installed image
	@.venv-fabric/bin/pytest -n 3 tests/fabric tests/unit/test_sandbox_*.py \
		tests/notebooks/test_notebooks.py::test_the_study_goes_from_create_to_teardown_beside_the_double

# Asks the package registry for all that the wheel wants, fablib too.
test-wheel: tools image
	@scripts/install-packages $(FABRIC_PACKAGES)
	@$(BIN)/pytest tests/wheel

ci-dry-run: tools image
	@scripts/install-packages $(TEST_PACKAGES)
	@mkdir -p runs
	@$(BIN)/fabbbr guest run -- scripts/ci-dry-run runs/ci-dry-run

test-again: tools image older
	@scripts/install-packages $(TEST_PACKAGES)
	@$(BIN)/python -m benchmarks.again $(N) -m "$(TESTED)"

test-qemu: tools
	@scripts/install-packages $(QEMU_PACKAGES)
	@$(BIN)/pytest tests/qemu -v --durations=0

sweep: tools
	@cd tests && ../$(BIN)/python -m faults.sweep

fuzz: tools
	@scripts/install-packages $(FUZZ_PACKAGES)
	@mkdir -p .fuzz
	@clang-19 -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined,implicit-conversion,local-bounds \
		-fno-sanitize-recover=all -Iplaybooks/roles/bbr/files -o .fuzz/fuzz_core tests/bbr/fuzz_core.c
	@cd .fuzz && FAB_FUZZ_STEPS=10000000 ./fuzz_core -max_len=4096 -len_control=0 -verbosity=0

scoreboard: guest
	@$(BIN)/fabbbr scoreboard
	@mkdir -p docs/scoreboard
	@cp runs/scoreboard/scoreboard.html runs/scoreboard/scoreboard.md runs/scoreboard/scoreboard.csv runs/scoreboard/scoreboard.json docs/scoreboard

datasheets: guest
	@for cca in cubic reno bbr1 bbr2 bbr3; do \
		$(BIN)/fabbbr datasheet $$cca --against cubic,bbr1,bbr3 || exit; \
		for kind in md pdf; do cp runs/datasheet-$$cca/datasheet.$$kind docs/datasheets/$$cca.$$kind || exit; done; \
	done

numbers: tools image
	@$(BIN)/python -m benchmarks.numbers --run && held=yes; \
	$(BIN)/pytest -n auto -m numbers tests/notebooks && test "$$held" = yes

study: guest
	@for experiment in experiments/*.yaml; do \
		$(BIN)/fabbbr run "$$(basename "$$experiment" .yaml)" || exit; \
	done

benchmark: tools image
	@$(BIN)/python benchmarks/parse.py
	@$(BIN)/python benchmarks/emulator.py
	@$(BIN)/python benchmarks/bbr_overhead.py

clean:
	rm -rf .venv .venv-fabric runs .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis
