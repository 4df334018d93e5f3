# What is installed to be read: the licence, the documentation, and as source examples, bindings and libexphil_mpi. Relative links
# between them hold there, too, and those to headers lead to where these are; what README.md says of the source tree is left out.

# What people build inside these folders is none of it. Source packages leave it out as well.
set(exphil_left_folders
  "(target|_build|build|dist|obj|node_modules|__pycache__|[.]?venv|[.][a-z]+_cache|[^/]*[.]egg-info)")
set(exphil_left_files "([.](so|so[.][^/]*|o|a|pyc|node|beam|dll|exe)|/Cargo[.]lock)$")

file(READ README.md readme)
string(REGEX REPLACE "## Two commands.*## In a program" "## What is here

[doc](doc), [examples](examples), [bindings](bindings) and [mpi](mpi) as source: copy `examples` whole, or a folder of `bindings`,
to where you may write, and build there. [policies](policies) are ready to play. The tools and tests
that they name are in the source tree.

## In a program" readme "${readme}")
string(REGEX REPLACE "    tools/deps build\n    cmake -S [^\n]*\n    sudo cmake --install [^\n]*\n\n" "" readme "${readme}")
string(REGEX REPLACE "Packages: [^\n]*\n([^\n]+\n)*\n" "" readme "${readme}")
string(REPLACE "](third_party/zstd/LICENSE)" "](LICENSE.zstd)" readme "${readme}")
file(WRITE ${PROJECT_BINARY_DIR}/README.md "${readme}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS README.md)

install(FILES third_party/zstd/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.zstd)
install(FILES LICENSE ${PROJECT_BINARY_DIR}/README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY doc examples bindings mpi policies DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS
  REGEX "/examples/CMakeLists[.]txt$" EXCLUDE PATTERN .gitignore EXCLUDE
  REGEX "/${exphil_left_folders}$" EXCLUDE REGEX "${exphil_left_files}" EXCLUDE)

# A link to a header goes up as many folders as its page is deep. When it has been led on it does not, and stays.
file(RELATIVE_PATH headers ${CMAKE_INSTALL_FULL_DOCDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
install(CODE "set(headers \"${headers}\")\nset(documents \"${CMAKE_INSTALL_DOCDIR}\")")
install(CODE [[
  if(NOT IS_ABSOLUTE "${documents}")
    set(documents "${CMAKE_INSTALL_PREFIX}/${documents}")
  endif()
  file(GLOB_RECURSE pages RELATIVE "$ENV{DESTDIR}${documents}" "$ENV{DESTDIR}${documents}/*.md")
  foreach(page IN LISTS pages)
    string(REGEX REPLACE "[^/]+/" "../" up "${page}")
    string(REGEX REPLACE "[^/]+$" "" up "${up}")
    file(READ "$ENV{DESTDIR}${documents}/${page}" text)
    string(REPLACE "](${up}include/" "](${up}${headers}/" linked "${text}")
    if(NOT linked STREQUAL text)
      file(WRITE "$ENV{DESTDIR}${documents}/${page}" "${linked}")
    endif()
  endforeach()]])
