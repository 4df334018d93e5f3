# What all targets of zig share: exphil_zig(<target>). The wrappers are made by tools/systems.
set(EXPHIL_WRAPPERS "" CACHE PATH "Folder of the compilers that tools/systems makes of zig")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EXPHIL_WRAPPERS)
macro(exphil_zig target)
  set(CMAKE_C_COMPILER ${EXPHIL_WRAPPERS}/${target}-clang)
  set(CMAKE_CXX_COMPILER ${EXPHIL_WRAPPERS}/${target}-clang++)
  set(CMAKE_AR ${EXPHIL_WRAPPERS}/zig-ar)
  set(CMAKE_RANLIB ${EXPHIL_WRAPPERS}/zig-ranlib)
  # Without being asked zig adds checks of undefined behaviour and debugging information.
  set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined -g0")
  set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined -g0")
endmacro()
