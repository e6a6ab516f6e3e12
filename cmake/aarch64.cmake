# SPDX-License-Identifier: Apache-2.0
#
# Toolchain of Debian's cross compiler: cmake -B build/arm --toolchain cmake/aarch64.cmake. Tests run under qemu-user.
# Libraries for aarch64 are those that `tools/setup.sh aarch64` has unpacked.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER NOTFOUND) # the headers are C++ on the host
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)

set(root "${CMAKE_CURRENT_LIST_DIR}/../build/tools/aarch64")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${root}")
set(ENV{PKG_CONFIG_LIBDIR} "${root}/usr/lib/aarch64-linux-gnu/pkgconfig")
