# fusor_room(NAME [LINK target...]): every .cpp below the current folder becomes the static library fusor_NAME.
set(FUSOR_WARNINGS -Wall -Wextra -Wpedantic -Werror -Wno-unused-parameter
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>    # llvm::formatv under g++ 12
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)     # unnamed namespaces, where `make` compiles several files as one

add_library(fusor_options INTERFACE)
target_include_directories(fusor_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(fusor_options INTERFACE ${FUSOR_WARNINGS} -fno-rtti
                       -fvisibility=hidden -fvisibility-inlines-hidden)   # only frontend/api/fusor.h says `default`

function(fusor_room NAME)
  cmake_parse_arguments(ARG "" "" "LINK;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  if(NOT sources)  # a room of headers, or not begun
    add_library(fusor_${NAME} INTERFACE)
    target_link_libraries(fusor_${NAME} INTERFACE fusor_llvm ${ARG_LINK})
    return()
  endif()
  add_library(fusor_${NAME} STATIC ${sources})
  target_link_libraries(fusor_${NAME} PRIVATE fusor_options PUBLIC fusor_llvm ${ARG_LINK})
endfunction()

# fusor_tests(NAME [LINK target...]): every *_test.cpp in the current folder becomes the binary fusor_tests_NAME,
# one ctest entry, labelled NAME. Compiled at -O1: tests are built far more often than they are slow.
function(fusor_tests NAME)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(fusor_tests_${NAME} ${sources})
  target_link_libraries(fusor_tests_${NAME} PRIVATE fusor_options ${ARG_LINK} GTest::gtest GTest::gtest_main)
  # g++ 12 warns of std::string(FUSOR_SOURCE_DIR) + "..." where the folder's name is short (seen with /root/fusor).
  target_compile_options(fusor_tests_${NAME} PRIVATE -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow -Wno-restrict>)
  target_compile_definitions(fusor_tests_${NAME} PRIVATE FUSOR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" FUSOR_BINARY_DIR="${CMAKE_BINARY_DIR}")
  add_test(NAME ${NAME} COMMAND fusor_tests_${NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES LABELS ${NAME})
  set_property(GLOBAL APPEND PROPERTY FUSOR_TEST_TARGETS fusor_tests_${NAME})
endfunction()
