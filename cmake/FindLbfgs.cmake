# libLBFGS, which brings no package file: the target lbfgs::lbfgs. Used by tests only.
find_path(LBFGS_INCLUDE_DIR lbfgs.h)
find_library(LBFGS_LIBRARY lbfgs)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Lbfgs DEFAULT_MSG LBFGS_LIBRARY LBFGS_INCLUDE_DIR)
if(Lbfgs_FOUND AND NOT TARGET lbfgs::lbfgs)
  add_library(lbfgs::lbfgs UNKNOWN IMPORTED)
  set_target_properties(lbfgs::lbfgs PROPERTIES IMPORTED_LOCATION "${LBFGS_LIBRARY}"
                        INTERFACE_INCLUDE_DIRECTORIES "${LBFGS_INCLUDE_DIR}")
endif()
