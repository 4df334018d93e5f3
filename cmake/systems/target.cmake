# What all targets share: libraries are those that were made for it, and what CMAKE_PREFIX_PATH names, never this machine's.
include(${CMAKE_CURRENT_LIST_DIR}/wrappers.cmake)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
get_filename_component(exphil_systems ${EXPHIL_WRAPPERS} DIRECTORY)
set(CMAKE_FIND_ROOT_PATH ${exphil_systems}/${exphil_target}/libraries ${CMAKE_PREFIX_PATH})
set(ENV{PKG_CONFIG_LIBDIR} ${exphil_systems}/${exphil_target}/libraries/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
# ctest runs the tests by it.
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/../../tools/systems run ${exphil_target})
