# Thin front of CMake. Every target sets up what it needs; `make help` lists them.
#
#   BUILD=build          the folder that is built in; asan, tsan and fuzz add their name to it
#   PREFIX=/usr/local    where `make install` installs, below DESTDIR if that is given
#   CMAKE_ARGS=          passed on, such as CMAKE_ARGS=-DCMAKE_C_COMPILER=clang
#   JOBS, TEST_JOBS      how many things are compiled, or tested, at a time: one per core, and two per core, since tests mostly wait
#   FUZZ_SECONDS=20      how long each fuzz target runs
#   LEARN_FOLDER=        where `make bench-learn` and `bench-lda` unpack and make their data, and keep it; LEARN_SHARED=../shared has
#                        the sources
BUILD            ?= build
PREFIX           ?= /usr/local
CMAKE_ARGS       ?=
JOBS             ?= $(shell nproc)
TEST_JOBS        ?= $(shell expr 2 \* $(JOBS))
BENCH_TRANSPORTS ?= tcp tls unix ucx
FUZZ_SECONDS     ?= 20
LEARN_FOLDER     ?= /tmp/pawl-bench-learn
LEARN_SHARED     ?= ../shared
export FUZZ_SECONDS FUZZ_RUNS

# $(call configure,folder,options): quiet unless it fails. A folder keeps its generator and its earlier options.
configure = @mkdir -p $(1) && { cmake -S . -B $(1) $(if $(wildcard $(1)/CMakeCache.txt),,-G Ninja) $(2) $(CMAKE_ARGS) \
	>$(1)/configure.log 2>&1 || { cat $(1)/configure.log; exit 1; }; }
build     = @cmake --build $(1) -j $(JOBS) $(if $(2),--target $(2))
# $(call check,folder,labels left out,prefix): runs the tests, then names the cases that could not run here.
check     = @$(3) ctest --test-dir $(1) -j $(TEST_JOBS) --output-on-failure --no-tests=error $(if $(2),-LE '$(2)'); \
	status=$$?; tools/skipped $(1); exit $$status

.PHONY: all help deps demo test test-long bench bench-learn bench-lda asan tsan fuzz format lint install clean

all: ## build the command at build/pawl, and the libraries
	@tools/deps build
	$(call configure,$(BUILD))
	$(call build,$(BUILD),pawl_command pawl_shared pawl_static)

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

deps: ## install the Debian or Ubuntu packages that are lacking
	@tools/deps build test fuzz lint

demo: ## train a model on this machine, and kill a server on the way
	@tools/deps build
	$(call configure,$(BUILD))
	$(call build,$(BUILD),pawl_command)
	@$(BUILD)/pawl demo

test: ## build everything without a warning and run the tests
	@tools/deps test
	$(call configure,$(BUILD),-DPAWL_TESTS=ON -DPAWL_WERROR=ON)
	$(call build,$(BUILD))
	$(call check,$(BUILD),^long$$)

test-long: ## the same, with the tests that take minutes
	@tools/deps test
	$(call configure,$(BUILD),-DPAWL_TESTS=ON -DPAWL_WERROR=ON)
	$(call build,$(BUILD))
	$(call check,$(BUILD))

bench: ## measure the network, push and pull, and everything in bench/; one JSON object a line
	@tools/deps build
	$(call configure,$(BUILD))
	$(call build,$(BUILD),pawl_bench bench)
	@status=0; \
	for transport in $(BENCH_TRANSPORTS); do $(BUILD)/pawl-bench net --transport $$transport --json || status=1; done; \
	for transport in auto tcp; do $(BUILD)/pawl-bench kv --transport $$transport --json || status=1; done; \
	$(BUILD)/pawl-bench wait --json || status=1; \
	$(BUILD)/pawl-bench reduce --json || status=1; \
	$(BUILD)/pawl-bench collective --json || status=1; \
	for figure in 5 7 8; do $(BUILD)/pawl-bench asap --figure $$figure --json || status=1; done; \
	for source in $(wildcard bench/*.c); do $(BUILD)/bench/$$(basename $$source .c) || status=1; done; \
	exit $$status

bench-learn: ## how good and how fast learning is, beside LIBLINEAR, and figures of OSDI'14; 25 minutes
	@tools/deps bench
	$(call configure,$(BUILD))
	$(call build,$(BUILD),pawl_command bench_working_set)
	@mkdir -p $(BUILD)/osdi; status=0; options="--pawl $(BUILD)/pawl --shared $(LEARN_SHARED) --folder $(LEARN_FOLDER)"; \
	bench/learn_quality $$options || status=1; \
	bench/learn_speed $$options || status=1; \
	bench/learn_dense $$options || status=1; \
	bench/osdi/working_set $$options --counter $(BUILD)/bench/working_set --out $(BUILD)/osdi || status=1; \
	bench/osdi/convergence $$options --out $(BUILD)/osdi || status=1; \
	bench/osdi/lines || status=1; \
	exit $$status

bench-lda: ## how good, fast and large topic models are, beside gensim, and figure 14 of OSDI'14; 40 minutes
	@tools/deps bench
	$(call configure,$(BUILD))
	$(call build,$(BUILD),pawl_command)
	@mkdir -p $(BUILD)/osdi; status=0; options="--pawl $(BUILD)/pawl --shared $(LEARN_SHARED) --folder $(LEARN_FOLDER)"; \
	bench/lda_quality $$options || status=1; \
	bench/lda_speed $$options || status=1; \
	bench/lda_large $$options || status=1; \
	bench/osdi/likelihood $$options --out $(BUILD)/osdi || status=1; \
	exit $$status

asan: ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/deps test
	$(call configure,$(BUILD)-asan,-DPAWL_TESTS=ON -DPAWL_SANITIZE=address$(comma)undefined)
	$(call build,$(BUILD)-asan)
	$(call check,$(BUILD)-asan,^(long|nosan)$$)

tsan: ## run the tests under ThreadSanitizer
	@tools/deps test
	$(call configure,$(BUILD)-tsan,-DPAWL_TESTS=ON -DPAWL_SANITIZE=thread)
	$(call build,$(BUILD)-tsan)
	$(call check,$(BUILD)-tsan,^(long|nosan)$$,$(fixed_addresses))

# Without UCX: it catches the signals by which libFuzzer sees a crash.
fuzz: ## run every fuzz target for FUZZ_SECONDS and measure what it covers
	@tools/deps fuzz
	$(call configure,$(BUILD)-fuzz,-DCMAKE_C_COMPILER=clang -DPAWL_FUZZ=ON -DPAWL_COVERAGE=ON -DPAWL_TESTS=OFF \
		-DPAWL_UCX=OFF -DPAWL_SANITIZE=address$(comma)undefined)
	$(call build,$(BUILD)-fuzz,fuzz)
	@fuzz/run $(BUILD)-fuzz

format: ## lay out all sources
	@tools/deps format
	@tools/format

lint: ## check the layout, the layers, the scripts, and the sources with clang-tidy
	@tools/deps lint
	@tools/format --check
	@tools/layers
	@shellcheck $(filter-out tools/demo-data,$(wildcard tools/*)) .ci/run fuzz/run bench/osdi/lines $(wildcard tests/*/*.sh)
	$(call configure,$(BUILD))
	@sed -n 's/.*"file": "\(.*\)".*/\1/p' $(BUILD)/compile_commands.json | sort -u | grep /src/ | grep -v _test \
		| xargs -P $(JOBS) -n 1 clang-tidy --quiet -p $(BUILD)

install: ## install to PREFIX, below DESTDIR if that is given
	@tools/deps build
	$(call configure,$(BUILD),-DCMAKE_INSTALL_PREFIX=$(PREFIX))
	$(call build,$(BUILD),pawl_command pawl_shared pawl_static)
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean: ## remove what was built
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

comma := ,
# ThreadSanitizer needs its shadow where it expects it; some kernels spread addresses further than it knows.
fixed_addresses = $(shell setarch -R true 2>/dev/null && echo setarch -R)
