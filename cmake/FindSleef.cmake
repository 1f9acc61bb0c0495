# Finds the SLEEF vector mathematics library and defines sleef::sleef. Installed beside margrave's package file,
# since a static margrave needs it when the consumer links.
find_path(SLEEF_INCLUDE_DIR sleef.h)
find_library(SLEEF_LIBRARY sleef)
mark_as_advanced(SLEEF_INCLUDE_DIR SLEEF_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Sleef REQUIRED_VARS SLEEF_LIBRARY SLEEF_INCLUDE_DIR)
if(Sleef_FOUND AND NOT TARGET sleef::sleef)
  add_library(sleef::sleef UNKNOWN IMPORTED)
  set_target_properties(sleef::sleef PROPERTIES IMPORTED_LOCATION "${SLEEF_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${SLEEF_INCLUDE_DIR}")
endif()
