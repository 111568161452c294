# FUSOR_PCH: LLVM's containers and the standard library are parsed once, not in each of 200 files. `make` turns it on, since a
# fresh machine has no ccache to live from; a developer's plain `cmake --preset release` leaves it off, where a forgotten
# #include is an error. Included last: it goes over the targets that are there.
option(FUSOR_PCH "Precompile the headers that every file includes (g++)" OFF)
if(NOT FUSOR_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  return()
endif()

set(FUSOR_PRECOMPILED
  <algorithm> <functional> <map> <memory> <optional> <string> <utility> <variant> <vector>
  <llvm/ADT/ArrayRef.h> <llvm/ADT/DenseMap.h> <llvm/ADT/MapVector.h> <llvm/ADT/STLExtras.h> <llvm/ADT/SmallVector.h>
  <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/StringRef.h>
  <llvm/Support/Error.h> <llvm/Support/FormatVariadic.h> <llvm/Support/raw_ostream.h>)

# Files with options of their own (instruction sets) cannot share.
function(fusor_precompiled TARGET FROM)
  get_target_property(sources ${TARGET} SOURCES)
  foreach(source ${sources})
    get_source_file_property(options ${source} TARGET_DIRECTORY ${TARGET} COMPILE_OPTIONS)
    if(options)
      set_source_files_properties(${source} TARGET_DIRECTORY ${TARGET} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  target_precompile_headers(${TARGET} REUSE_FROM ${FROM})
endfunction()

add_library(fusor_precompiled_rooms OBJECT cmake/precompiled/empty.cpp)
target_link_libraries(fusor_precompiled_rooms PRIVATE fusor_options fusor_llvm)
target_precompile_headers(fusor_precompiled_rooms PRIVATE ${FUSOR_PRECOMPILED})
foreach(room ${FUSOR_ROOMS})
  get_target_property(type ${room} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    fusor_precompiled(${room} fusor_precompiled_rooms)
  endif()
endforeach()

# Tests are programs (-fPIE) at -O1: a set of their own, with GoogleTest in it.
get_property(tests GLOBAL PROPERTY FUSOR_TEST_TARGETS)
if(tests)
  add_executable(fusor_precompiled_tests cmake/precompiled/empty.cpp)
  target_link_libraries(fusor_precompiled_tests PRIVATE fusor_options fusor_llvm GTest::gtest GTest::gtest_main)
  target_compile_options(fusor_precompiled_tests PRIVATE -O1)
  target_precompile_headers(fusor_precompiled_tests PRIVATE <gtest/gtest.h> ${FUSOR_PRECOMPILED})
  foreach(test ${tests})
    fusor_precompiled(${test} fusor_precompiled_tests)
  endforeach()
endif()
