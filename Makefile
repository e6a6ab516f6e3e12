# SPDX-License-Identifier: Apache-2.0
#
# Short names for the usual work; CMakeLists.txt is the build.
#   make          configure and build into build/
#   make check    everything a change must pass, in build/check/
#   make coverage which lines the tests run, in build/coverage/
#   make demo     from a real model file to the table of its linear layers
#   make bench    the speed tables of bench/shapes/
#   make install  into PREFIX (/usr/local), below DESTDIR where that is given
#   make clean    remove build/

BUILD ?= build
CMAKE_FLAGS ?=
PREFIX ?= /usr/local

# tools/setup.sh puts a newer cmake there where the system's is too old.
export PATH := $(CURDIR)/build/tools/cmake/cmake/data/bin:$(PATH)

.PHONY: all setup configure check coverage demo bench install clean

all: configure
	@cmake --build $(BUILD)

configure:
	@cmake -S . -B $(BUILD) -G Ninja $(CMAKE_FLAGS)

setup:
	@tools/setup.sh

check:
	@tools/setup.sh nvrtc python aarch64
	@tools/check.sh

coverage:
	@tools/setup.sh nvrtc python coverage
	@tools/coverage.sh

demo: setup
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target rooftile_tool
	@tools/demo.sh $(BUILD)

bench: all
	@for shapes in bench/shapes/*.txt; do $(BUILD)/rooftile bench --shapes "$$shapes" || exit 1; done

install: all
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

clean:
	@rm -rf $(BUILD) build
