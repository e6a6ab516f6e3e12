# SPDX-License-Identifier: Apache-2.0
#
# Installation: libraries, headers, tool, man pages, rooftile.pc and the files of find_package(rooftile).

include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rooftile")
set(libraries rooftile_static rooftile_shared)
set_target_properties(rooftile_static PROPERTIES EXPORT_NAME rooftile_static)
set_target_properties(rooftile_shared PROPERTIES EXPORT_NAME rooftile)
if(TARGET rooftile_model_shared)
    list(APPEND libraries rooftile_model_static rooftile_model_shared)
    set_target_properties(rooftile_model_static PROPERTIES EXPORT_NAME model_static)
    set_target_properties(rooftile_model_shared PROPERTIES EXPORT_NAME model)
endif()
install(TARGETS ${libraries} EXPORT rooftileTargets)
install(EXPORT rooftileTargets NAMESPACE rooftile:: DESTINATION "${config_dir}")

if(TARGET rooftile_tool)
    install(TARGETS rooftile_tool)
endif()
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
foreach(section IN ITEMS 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.${section}")
    install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
endforeach()

configure_package_config_file(cmake/rooftileConfig.cmake.in "${PROJECT_BINARY_DIR}/rooftileConfig.cmake"
    INSTALL_DESTINATION "${config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
if(HWLOC_FOUND)
    set(pc_hwloc " hwloc")
endif()
file(RELATIVE_PATH pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix) # so that the installed tree may move
configure_file(cmake/rooftile.pc.in "${PROJECT_BINARY_DIR}/rooftile.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rooftileConfig.cmake" "${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake"
    DESTINATION "${config_dir}")
install(FILES "${PROJECT_BINARY_DIR}/rooftile.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
