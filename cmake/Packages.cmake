# Packages by cpack: one archive of everything (TGZ), and Debian packages as Debian cuts a library: libexphil0 (the shared
# library), libexphil-dev, exphil-tools (the program); where the plugin is built, exphil-cuda, and where libexphil_mpi is,
# libexphil-mpi0 and libexphil-mpi-dev. Debian's folders need CMAKE_INSTALL_PREFIX=/usr when the tree is configured: the preset
# "package" has it.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME exphil)
set(CPACK_PACKAGE_VENDOR libexphil)
set(CPACK_PACKAGE_CONTACT "libexphil authors <${EXPHIL_PACKAGE_CONTACT}>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains and plays policies for 60 Hz games inside the host's process")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_CHECKSUM SHA256)
string(TOLOWER exphil-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} CPACK_PACKAGE_FILE_NAME)
set(CPACK_STRIP_FILES ON)
set(CPACK_SOURCE_GENERATOR TGZ)
# Below the source tree only, which may itself lie in a folder named so.
string(REGEX REPLACE "[^A-Za-z0-9/_-]" "." tree "${PROJECT_SOURCE_DIR}")
set(CPACK_SOURCE_IGNORE_FILES "^${tree}/[.](git|ci|cache)/" "^${tree}/(.*/)?${exphil_left_folders}/" "${exphil_left_files}")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library development tools)
if(EXPHIL_CUDA STREQUAL "PLUGIN")
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
if(EXPHIL_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi mpi_development)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The file name of the library carries EXPHIL_ABI, and so does its package.
set(library_package libexphil${EXPHIL_ABI})
set(exact "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libzstd1) # loaded to write corpora of games
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS libzstd1)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libexphil-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} ${exact}")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME exphil-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "libarchive13t64 | libarchive13") # loaded when an archive is met
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME exphil-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/science)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${library_package} ${exact}")
if(EXPHIL_MPI)
  set(mpi_package libexphil-mpi${EXPHIL_MPI_ABI})
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME ${mpi_package})
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_MPI_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
  set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_NAME libexphil-mpi-dev)
  set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_MPI_DEVELOPMENT_PACKAGE_DEPENDS "${mpi_package} ${exact}, libexphil-dev ${exact}")
endif()
set(about "libexphil learns how people play from replays or from rows of numbers,
and decides 60 times a second in your own program: no second process, no
framework. A step takes microseconds and allocates nothing, the state of a
player is one block that can be saved and restored, and a policy gives the
same bits on every processor.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "policies for 60 Hz games - shared library\n${about}")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "policies for 60 Hz games - development files\n${about}

This package has the headers, the static library, examples, bindings for other
languages as source, and the documentation.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "policies for 60 Hz games - the exphil program\n${about}

This package has the program that reads replays, trains, evaluates, plays and
measures.")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "policies for 60 Hz games - NVIDIA GPUs\n${about}

This package lets the library train and play on NVIDIA GPUs.")
set(CPACK_COMPONENT_MPI_DESCRIPTION "policies for 60 Hz games - ranks of an MPI\n${about}

This package lets several processes, on one machine or many, train one policy by
the MPI that it depends on.")
set(CPACK_COMPONENT_MPI_DEVELOPMENT_DESCRIPTION "policies for 60 Hz games - ranks of an MPI, development files\n${about}

This package has the header with which a program of its own trains by MPI.")

# What Debian wants in each package and nobody else: only component-wise installations have it.
string(TIMESTAMP EXPHIL_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH, where that is set
set(debian_dir ${PROJECT_BINARY_DIR}/debian)
find_program(GZIP gzip)
file(READ ${PROJECT_SOURCE_DIR}/LICENSE licence)
string(REGEX REPLACE "^MIT License\n\n" "" licence "${licence}")
string(REGEX MATCH "Copyright[^\n]*" copyright "${licence}")
string(REGEX REPLACE "^Copyright[^\n]*\n\n" "" licence "${licence}")
string(REGEX REPLACE "\n\n" "\n.\n" licence "${licence}")
string(REGEX REPLACE "\n(.)" "\n \\1" licence "${licence}")
file(READ ${PROJECT_SOURCE_DIR}/third_party/zstd/LICENSE zstd_licence)
string(REGEX REPLACE "^.*All rights reserved[.]\n\n" "" zstd_licence "${zstd_licence}")
string(STRIP "${zstd_licence}" zstd_licence)
string(REGEX REPLACE "\n\n" "\n.\n" zstd_licence "${zstd_licence}")
string(REGEX REPLACE "\n(.)" "\n \\1" zstd_licence "${zstd_licence}")
configure_file(cmake/copyright.in ${debian_dir}/copyright @ONLY)
function(exphil_documents package component)
  configure_file(cmake/changelog.in ${debian_dir}/${package}/changelog.Debian @ONLY)
  configure_file(CHANGELOG.md ${debian_dir}/${package}/changelog COPYONLY)
  execute_process(COMMAND ${GZIP} -9nkf ${debian_dir}/${package}/changelog.Debian ${debian_dir}/${package}/changelog)
  install(FILES ${debian_dir}/copyright ${debian_dir}/${package}/changelog.Debian.gz ${debian_dir}/${package}/changelog.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
if(GZIP)
  exphil_documents(${library_package} library)
  exphil_documents(libexphil-dev development)
  exphil_documents(exphil-tools tools)
  if(EXPHIL_CUDA STREQUAL "PLUGIN")
    exphil_documents(exphil-cuda cuda)
    # A plugin, opened by its path: nothing is linked to it. It lies beside the library, where that looks for it.
    file(WRITE ${debian_dir}/overrides/exphil-cuda
      "exphil-cuda: sharedobject-in-library-directory-missing-soname [usr/lib/*/libexphil_cuda.so]\n")
    install(FILES ${debian_dir}/overrides/exphil-cuda
      DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT cuda EXCLUDE_FROM_ALL)
  endif()
  if(EXPHIL_MPI)
    exphil_documents(${mpi_package} mpi)
    exphil_documents(libexphil-mpi-dev mpi_development)
  endif()
endif()

include(CPack)
