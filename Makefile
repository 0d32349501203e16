# Two commands do everything on a fresh Debian 12: `make demo` and `make test`.
# The work is in scripts/, so that this file stays a table of contents.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo

.PHONY: all audit demo test check install uninstall deb clean deps deps-tests deps-kernels deps-arm64 bench bench-prefetch order test-kernels test-arm64

all: deps
	CARGO=$(CARGO) ./scripts/build

## Install what is missing, build, measure a real program; leaves demo-out/
demo: deps
	./scripts/demo

## Every test, root tests included where root is at hand
test: deps-tests
	./scripts/test

## The tracer under Debian's kernels 6.1 and 6.12, in qemu (needs the network once, root only to install qemu)
test-kernels: deps-kernels
	./scripts/kernels

## The same for arm64, cross-compiled, and the pure tests in qemu-user; builds a kernel with pages of 64 KiB
## (about an hour of CPU the first time; installs a cross compiler and qemu)
test-arm64: deps-arm64
	./scripts/arm64

## Formatting, lints, types also for arm64, and documentation, warnings as errors
check: deps-tests
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) check -p cold --no-default-features --locked
	./scripts/arm64 --only types
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

## Dependencies: licences, sources, known vulnerabilities (their list comes from github.com, so it is no part of CI)
audit:
	@command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny --hide-inclusion-graph check

## Compilers and tools, through apt where allowed
deps:
	@./scripts/deps

deps-tests:
	@./scripts/deps --tests

deps-kernels:
	@./scripts/deps --kernels

deps-arm64:
	@./scripts/deps --arm64

## Program, man pages and completions below PREFIX
install: all
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" ./scripts/install

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" ./scripts/install --remove

## A Debian package in target/deb; coldstart.service in it is off until it is enabled
deb: all
	./scripts/deb

## The order of cold's own functions, from starts of the release build; build again afterwards
order: all
	./scripts/order

## Residency against vmtouch, spawn-to-exit against a C loop: ratios in one run
bench: all
	./benches/residency.sh
	./benches/spawn.sh

## Plans against no plan, warm starts and rivals; writes docs/benchmarks/prefetch.md. It says how long it takes;
## ARGS="--disks own,cloud --subjects python3,node --rounds 20 --quick" for parts of it
bench-prefetch: all
	$(CARGO) build --release -p cold-testbed
	./benches/prefetch/run.py $(ARGS)

clean:
	$(CARGO) clean
	rm -rf demo-out
