# SPDX-License-Identifier: Apache-2.0
#
# librooftile: one set of objects makes the static and the shared library. Each src/cpu/<isa>/ folder is
# compiled with the flags of its flags.cmake, everything else for the oldest CPU of the architecture.

set(RFT_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")

# Written at each build, touched only when its text changes, so a new commit recompiles one file.
add_custom_target(rooftile_build_info
    COMMAND ${CMAKE_COMMAND}
        -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "OUTPUT=${RFT_GENERATED_DIR}/rft_build_info.h"
        -D "COMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}" -D "BUILD_TYPE=${CMAKE_BUILD_TYPE}"
        -P "${PROJECT_SOURCE_DIR}/cmake/build_info.cmake"
    BYPRODUCTS "${RFT_GENERATED_DIR}/rft_build_info.h"
    COMMENT "Recording the commit"
    VERBATIM)

# What every object of the library is compiled with.
add_library(rooftile_internal INTERFACE)
target_include_directories(rooftile_internal INTERFACE
    "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${RFT_GENERATED_DIR}")
target_compile_definitions(rooftile_internal INTERFACE RFT_HAVE_HWLOC=$<BOOL:${HWLOC_FOUND}>)
target_link_libraries(rooftile_internal INTERFACE
    rooftile_flags PkgConfig::JANSSON
    $<$<BOOL:${HWLOC_FOUND}>:PkgConfig::HWLOC> Threads::Threads ${CMAKE_DL_LIBS} m)

function(rft_add_objects target)
    add_library(${target} OBJECT ${ARGN})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${target} PRIVATE rooftile_internal)
    add_dependencies(${target} rooftile_build_info)
    set_property(GLOBAL APPEND PROPERTY RFT_OBJECTS $<TARGET_OBJECTS:${target}>)
endfunction()

# What device code is compiled from, as text within the library.
function(rft_embed_cuda output)
    set(src "${PROJECT_SOURCE_DIR}/src")
    file(GLOB files CONFIGURE_DEPENDS RELATIVE "${src}"
        "${src}/cuda/kernels/*.cu" "${src}/cuda/kernels/*.cuh" "${src}/cuda/kernels/*.h"
        "${src}/epilogue/epi_math.h" "${src}/epilogue/epi_ops.def" "${src}/format/decode/*.h")
    list(TRANSFORM files PREPEND "${src}/" OUTPUT_VARIABLE paths)
    add_custom_command(OUTPUT "${output}"
        COMMAND ${CMAKE_COMMAND} -D "OUTPUT=${output}" -D "SOURCE_DIR=${src}" -D "FILES=${files}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
        DEPENDS ${paths} "${PROJECT_SOURCE_DIR}/cmake/embed.cmake"
        COMMENT "Embedding the text of CUDA kernels"
        VERBATIM)
endfunction()

function(rft_add_layers)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*/*.c")
    set(embedded "${RFT_GENERATED_DIR}/cuda_embedded.c")
    rft_embed_cuda("${embedded}")
    rft_add_objects(rooftile_baseline ${sources} "${embedded}")
    # Quantising a model is hours or minutes by these loops alone.
    set_source_files_properties("${PROJECT_SOURCE_DIR}/src/format/encode_fit.c" PROPERTIES COMPILE_OPTIONS "-O3;-fno-trapping-math")
endfunction()

# Full unrolls and sanitizers multiply: with all checks gcc takes minutes and clang 14 over ten minutes for one file of register
# tiles, mostly for bounds and lifetimes of accumulators that live in registers otherwise. Every access to memory stays
# checked. These are options of the files, as those follow the -fsanitize= of rooftile_flags.
set(isa_unchecked "")
if(sanitizers MATCHES "address")
    set(isa_unchecked -fno-sanitize=undefined -fno-sanitize-address-use-after-scope)
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU") # checks of accesses as calls, not as code at each
        list(APPEND isa_unchecked --param=asan-instrumentation-with-call-threshold=0)
    endif()
endif()

# Counters in tiles that are unrolled in full take the compiler minutes too.
if(RFT_COVERAGE)
    set(isa_unchecked -O1)
endif()

function(rft_add_isa folder)
    cmake_path(GET folder FILENAME isa)
    if(NOT isa STREQUAL "ref" AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        return()
    endif()
    set(RFT_ISA_FLAGS "")
    include("${folder}/flags.cmake")
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.c")
    if(sources)
        rft_add_objects(rooftile_cpu_${isa} ${sources})
        # In every build type: register tiles live in registers only where loops are unrolled.
        target_compile_options(rooftile_cpu_${isa} PRIVATE -O3 -fno-trapping-math ${RFT_ISA_FLAGS})
        if(NOT isa STREQUAL "ref")
            set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${isa_unchecked}")
        endif()
        # Panels of codes: hundreds of unrolled tiles. Pages without access around every operand guard them in the checks.
        list(FILTER sources INCLUDE REGEX "/codes8?_[^/]*$")
        if(sources AND sanitizers)
            set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=all;-O1")
        endif()
    endif()
endfunction()

rft_add_layers()
file(GLOB isa_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cpu/*/flags.cmake")
foreach(isa_file IN LISTS isa_files)
    cmake_path(GET isa_file PARENT_PATH isa_folder)
    rft_add_isa("${isa_folder}")
endforeach()

# rft_add_library(NAME MAP OBJECTS...): NAME_static and NAME_shared, both called libNAME on disk.
function(rft_add_library name map)
    add_library(${name}_static STATIC ${ARGN})
    add_library(${name}_shared SHARED ${ARGN})
    foreach(target IN ITEMS ${name}_static ${name}_shared)
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
        target_include_directories(${target} PUBLIC
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    set_target_properties(${name}_shared PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS "${map}")
    target_link_options(${name}_shared PRIVATE "-Wl,--version-script=${map}")
    target_link_libraries(${name}_shared PRIVATE $<BUILD_INTERFACE:rooftile_flags> $<BUILD_INTERFACE:rooftile_shared_flags>)
endfunction()

get_property(core_objects GLOBAL PROPERTY RFT_OBJECTS)
set(core_libraries PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS} m)
if(HWLOC_FOUND)
    list(APPEND core_libraries PkgConfig::HWLOC)
endif()
rft_add_library(rooftile "${PROJECT_SOURCE_DIR}/cmake/rooftile.map"
    "${PROJECT_SOURCE_DIR}/include/rooftile.h" ${core_objects})
target_link_libraries(rooftile_static PRIVATE ${core_libraries})
target_link_libraries(rooftile_shared PRIVATE ${core_libraries})
add_library(rooftile::rooftile ALIAS rooftile_shared)
add_library(rooftile::rooftile_static ALIAS rooftile_static)
