# SPDX-License-Identifier: Apache-2.0
#
# pthreadpool::pthreadpool. Debian's package has neither a pkg-config file nor a CMake one.

find_path(PTHREADPOOL_INCLUDE_DIR pthreadpool.h)
find_library(PTHREADPOOL_LIBRARY pthreadpool)
mark_as_advanced(PTHREADPOOL_INCLUDE_DIR PTHREADPOOL_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pthreadpool REQUIRED_VARS PTHREADPOOL_LIBRARY PTHREADPOOL_INCLUDE_DIR)

if(pthreadpool_FOUND AND NOT TARGET pthreadpool::pthreadpool)
    add_library(pthreadpool::pthreadpool UNKNOWN IMPORTED)
    set_target_properties(pthreadpool::pthreadpool PROPERTIES
        IMPORTED_LOCATION "${PTHREADPOOL_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${PTHREADPOOL_INCLUDE_DIR}")
endif()
