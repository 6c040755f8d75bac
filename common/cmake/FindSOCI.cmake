# Finds SOCI and its MySQL backend, for which Debian ships no CMake config.
#
# Defines the imported targets SOCI::core and SOCI::mysql. The backend's header
# includes <mysql.h>, so SOCI::mysql carries the client library's include folder.
find_path(SOCI_INCLUDE_DIR soci/soci.h)
find_library(SOCI_CORE_LIBRARY soci_core)
find_library(SOCI_MYSQL_LIBRARY soci_mysql)
find_path(MYSQL_INCLUDE_DIR mysql.h PATH_SUFFIXES mariadb mysql)
find_library(MYSQL_LIBRARY NAMES mariadb mysqlclient)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  SOCI REQUIRED_VARS SOCI_CORE_LIBRARY SOCI_MYSQL_LIBRARY SOCI_INCLUDE_DIR
                     MYSQL_INCLUDE_DIR MYSQL_LIBRARY)

if(SOCI_FOUND AND NOT TARGET SOCI::core)
  add_library(SOCI::core UNKNOWN IMPORTED)
  set_target_properties(SOCI::core PROPERTIES
    IMPORTED_LOCATION "${SOCI_CORE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SOCI_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
  add_library(SOCI::mysql UNKNOWN IMPORTED)
  set_target_properties(SOCI::mysql PROPERTIES
    IMPORTED_LOCATION "${SOCI_MYSQL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SOCI_INCLUDE_DIR};${SOCI_INCLUDE_DIR}/soci/mysql;${MYSQL_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "SOCI::core;${MYSQL_LIBRARY}")
endif()
mark_as_advanced(SOCI_INCLUDE_DIR SOCI_CORE_LIBRARY SOCI_MYSQL_LIBRARY
                 MYSQL_INCLUDE_DIR MYSQL_LIBRARY)
