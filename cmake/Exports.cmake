# What a shared library exports stands in one list, the version script that linkers of ELF read (lib/abi/exphil.map). Linkers of
# Windows and macOS read lists of their own, which are made of it here, when the tree is configured. Objects carry no dllexport:
# the same ones go into the static library, whose programs would export them too.
#   exphil_exports(<target> <map>)                          the target exports what the map names, and nothing else
#   exphil_import_library(<target> <map> <file>)            an import library for MSVC's linker, where LLVM's dlltool is found
#   cmake -D map=<map> -D def=<file> [-D dll=<name>] -P Exports.cmake     writes the list of Windows
#   cmake -D map=<map> -D list=<file> -P Exports.cmake                    writes the list of macOS

# exphil_exported(<variable> <map>): the names, in the order of the map.
function(exphil_exported variable map)
  file(READ ${map} text)
  string(REGEX REPLACE "#[^\n]*" "" text "${text}")
  string(REPLACE ";" "," text "${text}")
  string(REGEX REPLACE "}[^,{]*," "" text "${text}") # what a node follows
  string(REGEX MATCHALL "[A-Za-z_][A-Za-z0-9_]*," names "${text}")
  list(TRANSFORM names REPLACE "," "")
  if(NOT names)
    message(FATAL_ERROR "${map} names no function")
  endif()
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# Windows: LIBRARY is the name that programs will ask the loader for.
function(exphil_write_def map file dll)
  exphil_exported(names ${map})
  list(JOIN names "\n    " lines)
  set(head "EXPORTS")
  if(dll)
    set(head "LIBRARY \"${dll}\"\nEXPORTS")
  endif()
  file(CONFIGURE OUTPUT ${file} CONTENT "${head}\n    ${lines}\n" @ONLY)
endfunction()

# macOS: C's names begin with an underscore there.
function(exphil_write_list map file)
  exphil_exported(names ${map})
  list(JOIN names "\n_" lines)
  file(CONFIGURE OUTPUT ${file} CONTENT "_${lines}\n" @ONLY)
endfunction()

function(exphil_exports target map)
  get_filename_component(name ${map} NAME_WE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${map})
  if(WIN32)
    set(def ${CMAKE_CURRENT_BINARY_DIR}/${name}.def)
    exphil_write_def(${map} ${def} "")
    target_sources(${target} PRIVATE ${def})
  elseif(APPLE)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}.list)
    exphil_write_list(${map} ${list})
    target_link_options(${target} PRIVATE -Wl,-exported_symbols_list,${list})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${list})
  else()
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  endif()
endfunction()

# What mingw's linker writes beside a DLL MSVC's cannot be relied on to read. LLVM's dlltool writes what both read.
function(exphil_import_library target map dll file)
  get_filename_component(name ${file} NAME_WE)
  set(def ${CMAKE_CURRENT_BINARY_DIR}/msvc/${name}.def)
  exphil_write_def(${map} ${def} ${dll})
  find_program(EXPHIL_DLLTOOL NAMES llvm-dlltool zig-dlltool llvm-dlltool-19 llvm-dlltool-16 llvm-dlltool-14
    HINTS ${EXPHIL_WRAPPERS} DOC "LLVM's dlltool, which makes the import library for MSVC")
  if(EXPHIL_DLLTOOL)
    add_custom_command(TARGET ${target} POST_BUILD VERBATIM
      COMMAND ${EXPHIL_DLLTOOL} -m i386:x86-64 -d ${def} -D ${dll} -l ${file})
  else()
    message(STATUS "No llvm-dlltool: ${file} is not made. With MSVC: lib /machine:x64 /def:${def} /out:${name}.lib")
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.20)
endif()
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  if(def)
    exphil_write_def(${map} ${def} "${dll}")
  endif()
  if(list)
    exphil_write_list(${map} ${list})
  endif()
endif()
