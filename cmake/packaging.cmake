# SPDX-License-Identifier: Apache-2.0
#
# Installation: libraries, headers, tool, man pages, completions, the files of pkg-config and of find_package(rooftile); and by
# `cpack -G DEB` a Debian package of all that.

include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rooftile")
set(libraries rooftile_static rooftile_shared rooftile_cblas_static rooftile_cblas_shared)
set_target_properties(rooftile_static PROPERTIES EXPORT_NAME rooftile_static)
set_target_properties(rooftile_shared PROPERTIES EXPORT_NAME rooftile)
set_target_properties(rooftile_cblas_static PROPERTIES EXPORT_NAME cblas_static)
set_target_properties(rooftile_cblas_shared PROPERTIES EXPORT_NAME cblas)
if(TARGET rooftile_model_shared)
    list(APPEND libraries rooftile_model_static rooftile_model_shared)
    set_target_properties(rooftile_model_static PROPERTIES EXPORT_NAME model_static)
    set_target_properties(rooftile_model_shared PROPERTIES EXPORT_NAME model)
endif()
install(TARGETS ${libraries} EXPORT rooftileTargets)
install(EXPORT rooftileTargets NAMESPACE rooftile:: DESTINATION "${config_dir}")

if(TARGET rooftile_tool)
    install(TARGETS rooftile_tool)
    install(DIRECTORY bench/machines/ DESTINATION "${RFT_MACHINES_DIR}")
endif()

# The tool is asked for its options, which a build for another machine cannot do.
if(TARGET rooftile_tool AND NOT CMAKE_CROSSCOMPILING AND NOT sanitizers)
    set(completions "${PROJECT_BINARY_DIR}/completions")
    set(completion_files "${completions}/rooftile.bash" "${completions}/_rooftile" "${completions}/rooftile.fish")
    add_custom_command(OUTPUT ${completion_files}
        COMMAND "${PROJECT_SOURCE_DIR}/tools/make_completions.sh" $<TARGET_FILE:rooftile_tool> "${completions}"
        DEPENDS rooftile_tool "${PROJECT_SOURCE_DIR}/tools/make_completions.sh"
        COMMENT "Making the shell completions"
        VERBATIM)
    add_custom_target(rooftile_completions ALL DEPENDS ${completion_files})
    install(FILES "${completions}/rooftile.bash" RENAME rooftile
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${completions}/_rooftile" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${completions}/rooftile.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
foreach(section IN ITEMS 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.${section}")
    install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()

configure_package_config_file(cmake/rooftileConfig.cmake.in "${PROJECT_BINARY_DIR}/rooftileConfig.cmake"
    INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
# Not Requires.private: pkg-config --static would add all that a static hwloc needs, which few systems have for linking.
list(JOIN JANSSON_LDFLAGS " " pc_private)
if(HWLOC_FOUND)
    list(JOIN HWLOC_LDFLAGS " " pc_hwloc)
    string(APPEND pc_private " ${pc_hwloc}")
endif()
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix) # so that the installed tree may move
set(pc_files "${PROJECT_BINARY_DIR}/rooftile.pc" "${PROJECT_BINARY_DIR}/rooftile_cblas.pc")
configure_file(cmake/rooftile.pc.in "${PROJECT_BINARY_DIR}/rooftile.pc" @ONLY)
configure_file(cmake/rooftile_cblas.pc.in "${PROJECT_BINARY_DIR}/rooftile_cblas.pc" @ONLY)
if(TARGET rooftile_model_shared)
    list(APPEND pc_files "${PROJECT_BINARY_DIR}/rooftile_model.pc")
    configure_file(cmake/rooftile_model.pc.in "${PROJECT_BINARY_DIR}/rooftile_model.pc" @ONLY)
endif()
install(FILES "${PROJECT_BINARY_DIR}/rooftileConfig.cmake" "${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake"
    DESTINATION "${config_dir}")
install(FILES ${pc_files} DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# Debian's policy (5.6.2) wants a name and an address that takes mail: of who builds the package, told as to dch and debuild, or of
# who looks after the machine that it is installed on, which Debian's mail systems have as root.
function(rft_set_maintainer)
    set(maintainer "local administrator <root@localhost>")
    if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
        set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
    endif()
    set(RFT_MAINTAINER "${maintainer}" CACHE STRING "Name <address> of who answers for a Debian package")
    if(NOT RFT_MAINTAINER MATCHES "^[^<>@]+ <[^<>@ ]+@[^<>@ ]+>$")
        message(FATAL_ERROR "RFT_MAINTAINER = ${RFT_MAINTAINER} is not of the form: Name <address@domain>")
    endif()
endfunction()

if(PROJECT_IS_TOP_LEVEL)
    rft_set_maintainer()
    set(CPACK_GENERATOR DEB)
    set(CPACK_PACKAGE_NAME rooftile)
    set(CPACK_PACKAGE_CONTACT "${RFT_MAINTAINER}")
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
    set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
    set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
    set(CPACK_STRIP_FILES ON)
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_PACKAGE_SECTION libs)
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libjansson4")
    if(HWLOC_FOUND)
        string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libhwloc15")
    endif()
    if(SQLITE3_FOUND)
        string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libsqlite3-0")
    endif()
    set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libjansson-dev, libhwloc-dev, gnuplot-nox") # to link the static libraries; to plot
    file(WRITE "${PROJECT_BINARY_DIR}/deb/triggers" "activate-noawait ldconfig\n")
    set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/deb/triggers")
    include(CPack)
endif()
