cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
set(work ${WORK}/${KIND})
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${prefix} ${work}/package ${work}/pkg-config)

set(wanted OFF)
if(KIND STREQUAL "Shared")
  set(wanted ON)
endif()
if((wanted AND BUILT_SHARED) OR (NOT wanted AND NOT BUILT_SHARED))
  set(tree ${BUILT})
else()
  # The same objects, linked the other way; ccache, where there is one, makes this quick.
  set(tree ${work}/margrave)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${tree} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DBUILD_SHARED_LIBS=${wanted}
      -DMARGRAVE_BUILD_TESTS=OFF -DMARGRAVE_BUILD_TOOLS=OFF -DMARGRAVE_BUILD_BENCHMARKS=OFF
      -DCMAKE_INSTALL_LIBDIR=${LIBDIR})
  run(${CMAKE_COMMAND} --build ${tree})
endif()
run(${CMAKE_COMMAND} --install ${tree} --prefix ${prefix})
if(tree STREQUAL BUILT AND EXISTS ${BUILT}/bin/margrave)
  run(${prefix}/bin/margrave --version)
endif()

# check(program): the example converges and prints its certificate.
function(check)
  run(${ARGN})
  if(NOT output MATCHES "primal [0-9.]+ +dual [0-9.]+ +relative gap [0-9.]+e-0[4-9] +held-out error 0\\.[0-9]+")
    message(FATAL_ERROR "unexpected output: ${output}")
  endif()
  message("${output}")
endfunction()

# find_package. Nothing is said about where the library's own dependencies are: the package finds them.
write_readme_example(${work}/package/example.cpp)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/consumer/CMakeLists.txt DESTINATION ${work}/package)
run(${CMAKE_COMMAND} -S ${work}/package -B ${work}/package/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
run(${CMAKE_COMMAND} --build ${work}/package/build)
check(${CMAKE_COMMAND} -E chdir ${work}/package ${work}/package/build/example)

# pkg-config.
write_readme_example(${work}/pkg-config/example.cpp)
find_program(pkg_config NAMES pkg-config pkgconf REQUIRED)
set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
run(${pkg_config} --cflags --libs margrave)
separate_arguments(flags UNIX_COMMAND "${output}")
run(${COMPILER} -std=c++20 ${work}/pkg-config/example.cpp -o ${work}/pkg-config/example ${flags})
set(ENV{LD_LIBRARY_PATH} ${prefix}/${LIBDIR})
check(${CMAKE_COMMAND} -E chdir ${work}/pkg-config ${work}/pkg-config/example)
