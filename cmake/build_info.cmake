# SPDX-License-Identifier: Apache-2.0
#
# Script of the target rooftile_build_info: writes OUTPUT from SOURCE_DIR's commit, COMPILER and BUILD_TYPE.

set(commit "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE_DIR}/.git")
    execute_process(COMMAND ${GIT} -C "${SOURCE_DIR}" rev-parse --short=12 HEAD
        OUTPUT_VARIABLE hash ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(NOT failed)
        set(commit "${hash}")
    endif()
endif()
configure_file("${SOURCE_DIR}/cmake/rft_build_info.h.in" "${OUTPUT}" @ONLY)
