# What all targets of zig share: exphil_zig(<target>). The wrappers are made by tools/systems.
include(${CMAKE_CURRENT_LIST_DIR}/wrappers.cmake)
macro(exphil_zig target)
  set(CMAKE_C_COMPILER ${EXPHIL_WRAPPERS}/${target}-clang)
  set(CMAKE_CXX_COMPILER ${EXPHIL_WRAPPERS}/${target}-clang++)
  set(CMAKE_AR ${EXPHIL_WRAPPERS}/zig-ar)
  set(CMAKE_RANLIB ${EXPHIL_WRAPPERS}/zig-ranlib)
  # Without being asked zig adds checks of undefined behaviour and debugging information.
  set(CMAKE_C_FLAGS_INIT "-fno-sanitize=undefined -g0")
  set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined -g0")
endmacro()
