# Finds the linear-programming library Clp (COIN-OR) and defines clp::clp. Installed beside margrave's package file,
# since a static margrave needs it when the consumer links.
find_path(CLP_INCLUDE_DIR ClpSimplex.hpp PATH_SUFFIXES coin coin-or)
find_library(CLP_LIBRARY Clp)
find_library(COINUTILS_LIBRARY CoinUtils)
mark_as_advanced(CLP_INCLUDE_DIR CLP_LIBRARY COINUTILS_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Clp REQUIRED_VARS CLP_LIBRARY COINUTILS_LIBRARY CLP_INCLUDE_DIR)
if(Clp_FOUND AND NOT TARGET clp::clp)
  add_library(clp::clp UNKNOWN IMPORTED)
  set_target_properties(clp::clp PROPERTIES IMPORTED_LOCATION "${CLP_LIBRARY}"
                                            INTERFACE_INCLUDE_DIRECTORIES "${CLP_INCLUDE_DIR}"
                                            INTERFACE_LINK_LIBRARIES "${COINUTILS_LIBRARY}")
endif()
