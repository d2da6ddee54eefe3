# What `cmake --install` puts where: the public headers, one shared library made of all rooms but
# the tools and training, one for LibTorch loops on top of it, the `syncopate` program with what it
# starts, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY SYNCOPATE_LIBRARY_ROOMS)
get_property(room_deps GLOBAL PROPERTY SYNCOPATE_LIBRARY_DEPS)
list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_OBJECTS:syncopate_\\1>" OUTPUT_VARIABLE objects)
list(REMOVE_DUPLICATES room_deps)

add_library(syncopate SHARED ${objects})
add_library(syncopate::syncopate ALIAS syncopate)
set_target_properties(syncopate PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINKER_LANGUAGE CXX)
target_compile_features(syncopate PUBLIC cxx_std_20)
target_include_directories(syncopate PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Public are the parts of Abseil that the public headers use; the rest is our own affair.
target_link_libraries(syncopate
  PUBLIC absl::status absl::statusor absl::strings absl::time
  PRIVATE $<BUILD_INTERFACE:syncopate_flags> ${room_deps})
if(NOT SYNCOPATE_SANITIZE)
  target_link_options(syncopate PRIVATE LINKER:--no-undefined)
endif()

install(TARGETS syncopate EXPORT syncopateTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS syncopate_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/syncopate DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "torch.h" EXCLUDE)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/syncopate)
install(EXPORT syncopateTargets NAMESPACE syncopate:: DESTINATION ${package_folder})
# The build folder is a package too, so that examples/ can be built without installing.
export(EXPORT syncopateTargets NAMESPACE syncopate:: FILE ${PROJECT_BINARY_DIR}/syncopateTargets.cmake)

if(SYNCOPATE_BUILD_TRAIN)
  add_library(syncopate_torch SHARED $<TARGET_OBJECTS:syncopate_torch_hooks>)
  add_library(syncopate::torch ALIAS syncopate_torch)
  set_target_properties(syncopate_torch PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINKER_LANGUAGE CXX
    EXPORT_NAME torch
    INSTALL_RPATH $ORIGIN)  # where libsyncopate.so is
  target_link_libraries(syncopate_torch PUBLIC syncopate torch PRIVATE $<BUILD_INTERFACE:syncopate_flags>)
  if(NOT SYNCOPATE_SANITIZE)
    target_link_options(syncopate_torch PRIVATE LINKER:--no-undefined)
  endif()
  install(TARGETS syncopate_torch EXPORT syncopateTorchTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS syncopate_train_worker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/include/syncopate/torch.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/syncopate)
  install(EXPORT syncopateTorchTargets NAMESPACE syncopate:: DESTINATION ${package_folder})
  export(EXPORT syncopateTorchTargets NAMESPACE syncopate:: FILE ${PROJECT_BINARY_DIR}/syncopateTorchTargets.cmake)
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/syncopateConfig.cmake.in
  ${PROJECT_BINARY_DIR}/syncopateConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/syncopateConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/syncopateConfig.cmake
              ${PROJECT_BINARY_DIR}/syncopateConfigVersion.cmake DESTINATION ${package_folder})

# The file finds its prefix from where it lies, so an installed tree can be moved.
file(RELATIVE_PATH SYNCOPATE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/syncopate.pc.in ${PROJECT_BINARY_DIR}/syncopate.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/syncopate.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
