# SPDX-License-Identifier: Apache-2.0
#
# What the library stands on. tools/setup.sh installs all of it.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc)
pkg_check_modules(SQLITE3 IMPORTED_TARGET sqlite3)

if(NOT HWLOC_FOUND)
    message(STATUS "hwloc not found: caches and cores are read from the system's own files")
endif()
if(NOT SQLITE3_FOUND)
    message(STATUS "sqlite3 not found: rooftile trace will not read exports of Nsight Systems")
endif()
