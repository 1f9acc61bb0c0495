# margrave_options(target): what every one of margrave's own targets is compiled with. All of it is PRIVATE, so
# that nothing reaches a consumer.
function(margrave_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -fopenmp-simd)
  if(MARGRAVE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # False alarms in "literal" + std::string (GCC bug 105651).
      target_compile_options(${target} PRIVATE -Wno-restrict)
    endif()
  endif()
  if(MARGRAVE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${MARGRAVE_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${MARGRAVE_SANITIZE})
  endif()
endfunction()
