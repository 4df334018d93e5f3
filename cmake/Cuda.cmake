# nvcc for EXPHIL_CUDA, and the processors that it makes code for; what is made of it stands in cuda/CMakeLists.txt. Called
# as it is, not as a language of CMake: whoever links the objects needs no CUDA in his own build, and every CMake of the
# tree knows every nvcc.
#   EXPHIL_CUDA_ARCHITECTURES   list of 80, 90, ... (code), 120-ptx, ... (PTX); empty: code for every generation from sm_80
#                               on that this toolkit knows, and PTX of the newest, from which drivers make code for later ones
#   EXPHIL_CUDA_LAUNCHER        put before nvcc, as ccache
#   EXPHIL_CUDA_NVTX            operations have names in profilers
set(EXPHIL_CUDA_ARCHITECTURES "" CACHE STRING "Processors to make CUDA code for; empty: all that the toolkit knows")
option(EXPHIL_CUDA_NVTX "Name CUDA operations for profilers (NVTX)" OFF)
set(EXPHIL_CUDA_LAUNCHER "" CACHE STRING "Program put before nvcc, as ccache")
find_program(EXPHIL_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
if(NOT EXPHIL_NVCC)
  message(FATAL_ERROR "EXPHIL_CUDA is ${EXPHIL_CUDA}, but there is no nvcc: set EXPHIL_NVCC to its path")
endif()
if(NOT CUDAToolkit_ROOT)
  get_filename_component(CUDAToolkit_ROOT ${EXPHIL_NVCC} REALPATH)
  get_filename_component(CUDAToolkit_ROOT ${CUDAToolkit_ROOT} DIRECTORY)
  get_filename_component(CUDAToolkit_ROOT ${CUDAToolkit_ROOT} DIRECTORY)
endif()
find_package(CUDAToolkit 11.8 REQUIRED)

set(exphil_cuda_generations ${EXPHIL_CUDA_ARCHITECTURES})
if(NOT exphil_cuda_generations)
  set(exphil_cuda_generations 80 86 89 90)
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND exphil_cuda_generations 100 120)
  else()
    message(STATUS "CUDA ${CUDAToolkit_VERSION} does not know sm_100 and sm_120: they will run PTX of sm_90")
  endif()
  list(GET exphil_cuda_generations -1 newest)
  list(APPEND exphil_cuda_generations ${newest}-ptx)
endif()
message(STATUS "CUDA ${CUDAToolkit_VERSION}, ${EXPHIL_CUDA}, for ${exphil_cuda_generations}")

set(exphil_cuda_code "")
foreach(generation ${exphil_cuda_generations})
  if(generation MATCHES "^([0-9]+a?)-ptx$")
    list(APPEND exphil_cuda_code -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
  elseif(generation MATCHES "^[0-9]+a?$")
    list(APPEND exphil_cuda_code -gencode=arch=compute_${generation},code=sm_${generation})
  else()
    message(FATAL_ERROR "EXPHIL_CUDA_ARCHITECTURES has ${generation}, must be a list of 80, 90, 120-ptx and the like")
  endif()
endforeach()
# No contraction: fmaf stands where it is meant. Launches as before CUDA 12.8: the newer ones keep handles in guarded
# statics, for which a program in C would need the C++ run-time.
set(exphil_cuda_flags -std=c++17 -O3 -fmad=false -Xfatbin=-compress-all -D__NV_LEGACY_LAUNCH -Xcompiler=-D__NV_LEGACY_LAUNCH
  -Xcompiler=-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-ffp-contract=off,-fno-math-errno,-fno-trapping-math
  -Xcompiler=-fstack-protector-strong -Xcompiler=-Wall)
if(EXPHIL_WERROR)
  list(APPEND exphil_cuda_flags -Werror=all-warnings -Xcompiler=-Werror)
endif()

# exphil_cuda_objects(<variable> <folder of objects> <source>...): objects of .cu files, into a variable
function(exphil_cuda_objects variable folder)
  set(objects "")
  file(MAKE_DIRECTORY ${folder})
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME)
    file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${source})
    add_custom_command(OUTPUT ${folder}/${name}.o
      COMMAND ${EXPHIL_CUDA_LAUNCHER} ${EXPHIL_NVCC} ${exphil_cuda_code} ${exphil_cuda_flags}
        -I${PROJECT_SOURCE_DIR}/cuda -I${PROJECT_SOURCE_DIR}/tests/cuda -I${PROJECT_SOURCE_DIR}/lib -I${PROJECT_SOURCE_DIR}/include
        -MD -MF ${folder}/${name}.d -MT ${folder}/${name}.o -c ${source} -o ${folder}/${name}.o
      DEPENDS ${source} DEPFILE ${folder}/${name}.d COMMENT "nvcc ${shown}" VERBATIM)
    list(APPEND objects ${folder}/${name}.o)
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
