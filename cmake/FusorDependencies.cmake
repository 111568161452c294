# Everything that comes from the distribution's packages. Nothing is vendored, nothing is fetched here.
option(FUSOR_BUILD_TESTS "Build the tests" ON)

find_package(LLVM 14 REQUIRED CONFIG)
add_library(fusor_llvm INTERFACE)
target_include_directories(fusor_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(fusor_llvm INTERFACE LLVMSupport)
if(TARGET Terminfo::terminfo)  # otherwise libtinfo.so stays a run-time dependency
  find_library(FUSOR_TINFO_STATIC libtinfo.a)
  if(FUSOR_TINFO_STATIC)
    set_target_properties(Terminfo::terminfo PROPERTIES IMPORTED_LOCATION ${FUSOR_TINFO_STATIC})
  endif()
endif()

find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)

find_library(FUSOR_XXHASH_STATIC libxxhash.a REQUIRED)   # Debian ships no CMake package for it
add_library(fusor_xxhash INTERFACE)
target_link_libraries(fusor_xxhash INTERFACE ${FUSOR_XXHASH_STATIC})

if(FUSOR_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_library(FUSOR_BOOST_CONTEXT_STATIC libboost_context.a REQUIRED)
endif()
