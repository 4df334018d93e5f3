# Where tools/systems keeps the compilers that it makes of zig; beside that folder lie the libraries of each target.
set(exphil_systems $ENV{EXPHIL_SYSTEMS})
if(NOT exphil_systems)
  set(exphil_systems ${CMAKE_CURRENT_LIST_DIR}/../../build/systems)
endif()
get_filename_component(exphil_systems ${exphil_systems} ABSOLUTE)
set(EXPHIL_WRAPPERS ${exphil_systems}/bin CACHE PATH "Folder of the compilers of zig; its parent holds the targets' libraries")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EXPHIL_WRAPPERS)
