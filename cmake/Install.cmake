# Headers, library, command, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)
if(NOT TARGET margrave)
  return()
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/margrave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")
install(TARGETS margrave EXPORT margrave-targets)
if(TARGET margrave_command)
  install(TARGETS margrave_command)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/margrave)
install(EXPORT margrave-targets NAMESPACE margrave:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/margrave-config.cmake.in
                              ${PROJECT_BINARY_DIR}/margrave-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/margrave-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/margrave-config.cmake ${PROJECT_BINARY_DIR}/margrave-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/FindSleef.cmake ${CMAKE_CURRENT_LIST_DIR}/FindClp.cmake DESTINATION ${package_dir})

# pkg-config: relative to the file itself, so that an installed tree can be moved. What a static margrave needs in
# turn is listed for everybody (Libs, not Libs.private), because plain `pkg-config --libs` is what people type.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
set(pc_requires "")
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  set(pc_requires "tbb, fmt, zlib")
  set(pc_libs "-ltbbmalloc -lsleef -lClp -lCoinUtils -pthread")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/margrave.pc.in ${PROJECT_BINARY_DIR}/margrave.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/margrave.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
