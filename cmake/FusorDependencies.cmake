# Everything that comes from the distribution's packages. Nothing is vendored, nothing is fetched here.
option(FUSOR_BUILD_TESTS "Build the tests" ON)

find_package(LLVM 14 REQUIRED CONFIG)
add_library(fusor_llvm INTERFACE)
target_include_directories(fusor_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(fusor_llvm INTERFACE LLVMSupport)
target_link_options(fusor_llvm INTERFACE -Wl,--as-needed)   # its package names libz3 and libz, which nothing here calls
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)   # see cmake/clang/deferred_vector.h
  file(READ ${LLVM_INCLUDE_DIRS}/llvm/Support/JSON.h header)
  string(REPLACE "std::vector<Value>" "fusor_clang::DeferredVector<Value>" header "${header}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/clang-headers/llvm/Support/JSON.h @ONLY
    CONTENT "#include \"${CMAKE_CURRENT_LIST_DIR}/clang/deferred_vector.h\"\n${header}")
  target_include_directories(fusor_llvm SYSTEM BEFORE INTERFACE ${CMAKE_BINARY_DIR}/clang-headers)
endif()
# In place of libtinfo, see cmake/terminfo/terminfo.c.
add_library(fusor_terminfo STATIC ${CMAKE_CURRENT_LIST_DIR}/terminfo/terminfo.c)
get_target_property(libraries LLVMSupport INTERFACE_LINK_LIBRARIES)
list(TRANSFORM libraries REPLACE "Terminfo::terminfo" fusor_terminfo)
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${libraries}")

find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)

# The small run time of generated messages, static; protoc generates them.
find_package(Protobuf 3.21 REQUIRED)
find_library(FUSOR_PROTOBUF_LITE_STATIC libprotobuf-lite.a REQUIRED)
add_library(fusor_protobuf_lite INTERFACE)
target_include_directories(fusor_protobuf_lite SYSTEM INTERFACE ${Protobuf_INCLUDE_DIRS})
target_link_libraries(fusor_protobuf_lite INTERFACE ${FUSOR_PROTOBUF_LITE_STATIC} Threads::Threads)

find_library(FUSOR_XXHASH_STATIC libxxhash.a REQUIRED)   # Debian ships no CMake package for it
add_library(fusor_xxhash INTERFACE)
target_link_libraries(fusor_xxhash INTERFACE ${FUSOR_XXHASH_STATIC})

find_library(FUSOR_BOOST_CONTEXT_STATIC libboost_context.a REQUIRED)   # the emulator's fibers

if(FUSOR_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
