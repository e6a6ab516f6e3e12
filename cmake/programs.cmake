# SPDX-License-Identifier: Apache-2.0
#
# Everything above librooftile: librooftile_model, librooftile_cblas, the tool and the examples. The programs link the shared
# libraries, as any other user's program does, so a call that is not exported fails the link.

# The model library reads formats with the core's internals: it takes those objects from the static
# core, hides them, and calls the public API through the shared core.
file(GLOB model_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/model/*.c")
if(model_sources)
    add_library(rooftile_model_objects OBJECT ${model_sources})
    set_target_properties(rooftile_model_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(rooftile_model_objects PRIVATE "${PROJECT_SOURCE_DIR}/model")
    target_link_libraries(rooftile_model_objects PRIVATE rooftile_internal)
    rft_add_library(rooftile_model "${PROJECT_SOURCE_DIR}/cmake/rooftile.map" $<TARGET_OBJECTS:rooftile_model_objects>)
    target_link_options(rooftile_model_shared PRIVATE -Wl,--exclude-libs,ALL)
    target_link_libraries(rooftile_model_shared PUBLIC rooftile_shared
        PRIVATE $<BUILD_INTERFACE:rooftile_static> PkgConfig::JANSSON)
    target_link_libraries(rooftile_model_static PUBLIC rooftile_static PRIVATE PkgConfig::JANSSON)
    add_library(rooftile::model ALIAS rooftile_model_shared)
    add_library(rooftile::model_static ALIAS rooftile_model_static)
endif()

# The CBLAS functions: objects that know the public header alone. The library stays loaded, because its threads do.
file(GLOB cblas_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cblas/*.c")
add_library(rooftile_cblas_objects OBJECT ${cblas_sources})
set_target_properties(rooftile_cblas_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_include_directories(rooftile_cblas_objects PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(rooftile_cblas_objects PRIVATE rooftile_flags Threads::Threads)
rft_add_library(rooftile_cblas "${PROJECT_SOURCE_DIR}/cmake/rooftile_cblas.map" $<TARGET_OBJECTS:rooftile_cblas_objects>)
target_link_options(rooftile_cblas_shared PRIVATE -Wl,-z,nodelete)
target_link_libraries(rooftile_cblas_shared PRIVATE rooftile_shared Threads::Threads)
target_link_libraries(rooftile_cblas_static PRIVATE rooftile_static Threads::Threads)
add_library(rooftile::cblas ALIAS rooftile_cblas_shared)
add_library(rooftile::cblas_static ALIAS rooftile_cblas_static)

function(rft_add_program target)
    add_executable(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE rooftile_flags rooftile_shared $<TARGET_NAME_IF_EXISTS:rooftile_model_shared> m)
    set_target_properties(${target} PROPERTIES
        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

file(GLOB cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.c" "${PROJECT_SOURCE_DIR}/cli/*/*.c")
if(cli_sources)
    set(page "${PROJECT_BINARY_DIR}/generated/report_embedded.c")
    set(page_files "${PROJECT_SOURCE_DIR}/cli/report/report.css" "${PROJECT_SOURCE_DIR}/cli/report/report.js")
    add_custom_command(OUTPUT "${page}"
        COMMAND ${CMAKE_COMMAND} -D "OUTPUT=${page}" -D HEADER=report_embedded.h -D "FILES=${page_files}"
            -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
        DEPENDS ${page_files} "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
        COMMENT "Embedding the style and script of reports"
        VERBATIM)
    # The readers of traces once, for the tool, their tests and their fuzz target.
    file(GLOB trace_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/trace/*.c")
    foreach(name IN ITEMS cli_common cli_parse cli_epilogue weight_scales trace_product)
        list(APPEND trace_sources "${PROJECT_SOURCE_DIR}/cli/${name}.c")
    endforeach()
    list(REMOVE_ITEM cli_sources ${trace_sources})
    add_library(rooftile_trace OBJECT ${trace_sources})
    target_include_directories(rooftile_trace PUBLIC "${PROJECT_SOURCE_DIR}/cli" PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_compile_definitions(rooftile_trace PRIVATE RFT_HAVE_SQLITE=$<BOOL:${SQLITE3_FOUND}>)
    target_link_libraries(rooftile_trace PRIVATE rooftile_flags PUBLIC PkgConfig::JANSSON
        $<$<BOOL:${SQLITE3_FOUND}>:PkgConfig::SQLITE3>)
    rft_add_program(rooftile_tool ${cli_sources} "${page}")
    target_link_libraries(rooftile_tool PRIVATE rooftile_trace)
    set_target_properties(rooftile_tool PROPERTIES OUTPUT_NAME rooftile)
    target_include_directories(rooftile_tool PRIVATE "${PROJECT_SOURCE_DIR}/cli")
    target_link_libraries(rooftile_tool PRIVATE PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS})
    # Machines of data sheets: beside an installed tool, and in the build folder as in the tree.
    set(RFT_MACHINES_DIR "${CMAKE_INSTALL_DATADIR}/rooftile/machines")
    file(RELATIVE_PATH machines "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/rooftile/machines")
    target_compile_definitions(rooftile_tool PRIVATE RFT_MACHINES_DIR="${machines}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/bench/machines" "${PROJECT_BINARY_DIR}/machines" SYMBOLIC)
endif()

if(RFT_EXAMPLES)
    file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.c")
    foreach(source IN LISTS example_sources)
        cmake_path(GET source STEM name)
        rft_add_program(example_${name} "${source}")
        set_target_properties(example_${name} PROPERTIES
            OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    endforeach()
    target_link_libraries(example_cblas_times PRIVATE rooftile_cblas_shared ${CMAKE_DL_LIBS})
endif()
