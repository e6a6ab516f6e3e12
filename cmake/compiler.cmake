# SPDX-License-Identifier: Apache-2.0
#
# rooftile_flags: language, warnings and sanitizers, linked privately by every target of the tree.
# rooftile_shared_flags: what a shared library adds to its link.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

add_library(rooftile_flags INTERFACE)
# Contraction would give the same C text other bits in another translation unit; kernels name their FMAs.
target_compile_options(rooftile_flags INTERFACE
    -ffp-contract=off
    -Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Wundef -Wwrite-strings
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    $<$<BOOL:${RFT_WERROR}>:-Werror>)

if(RFT_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RFT_FUZZ = ON needs clang, and the C compiler is ${CMAKE_C_COMPILER_ID}")
endif()

set(sanitizers ${RFT_SANITIZE})
if(RFT_FUZZ)
    set(sanitizers fuzzer-no-link,address,undefined)
endif()

add_library(rooftile_shared_flags INTERFACE)
if(sanitizers)
    target_compile_options(rooftile_flags INTERFACE
        -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(rooftile_flags INTERFACE -fsanitize=${sanitizers})
else() # a sanitizer's run time is found only when the program loads
    target_link_options(rooftile_shared_flags INTERFACE -Wl,--no-undefined)
endif()

if(RFT_COVERAGE)
    target_compile_options(rooftile_flags INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(rooftile_flags INTERFACE --coverage)
endif()
