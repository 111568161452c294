# What users get: the command build/fusor, and the shared library of find_package(Fusor) with its one header.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(package/headers)   # fusor_public_headers()

set(FUSOR_ROOMS fusor_frontend fusor_runtime fusor_passes fusor_codegen fusor_ir)

# The command: all rooms and their libraries linked in; it needs glibc and libstdc++ only (tests/packaging holds it to that).
if(EXISTS ${CMAKE_SOURCE_DIR}/frontend/cli/main.cpp)
  add_executable(fusor_cli frontend/cli/main.cpp)
  set_target_properties(fusor_cli PROPERTIES OUTPUT_NAME fusor RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  target_link_libraries(fusor_cli PRIVATE fusor_options fusor_verbs ${FUSOR_ROOMS})
  install(TARGETS fusor_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The library: every room whole, so that what fusor.h declares is there whoever calls it. What it exports is decided twice:
# rooms are compiled with -fvisibility=hidden and FUSOR_API marks what users call; fusor.map hides LLVM, protobuf and the rest,
# so that the library lives in one process with another LLVM.
# Not under a sanitizer: its run time belongs to the program.
if(EXISTS ${CMAKE_SOURCE_DIR}/frontend/api/fusor.h AND NOT CMAKE_CXX_FLAGS_RELEASE MATCHES "sanitize")
  add_library(fusor SHARED cmake/package/whole.cpp)
  add_library(Fusor::fusor ALIAS fusor)
  string(JOIN "," rooms ${FUSOR_ROOMS})
  set_property(TARGET fusor PROPERTY LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${rooms}")
  target_link_libraries(fusor PRIVATE fusor_options "$<LINK_LIBRARY:WHOLE_ARCHIVE,${rooms}>"
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/package/fusor.map -Wl,--no-undefined -Wl,-z,noexecstack)
  set_target_properties(fusor PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/package/fusor.map)
  target_compile_features(fusor INTERFACE cxx_std_20)
  target_include_directories(fusor INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  install(TARGETS fusor EXPORT FusorTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  fusor_public_headers(${CMAKE_BINARY_DIR}/public-headers)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/public-headers/fusor DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT FusorTargets NAMESPACE Fusor:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Fusor)
  configure_package_config_file(cmake/package/FusorConfig.cmake.in ${CMAKE_BINARY_DIR}/FusorConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Fusor)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/FusorConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/FusorConfig.cmake ${CMAKE_BINARY_DIR}/FusorConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Fusor)
  install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
