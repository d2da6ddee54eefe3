# What makes building quick. A second or two of each file goes to headers of other libraries, so those that most
# files include are compiled once: for the sources of rooms, for those of commands, which also read options and write
# JSON, and, with GoogleTest, for tests. (Code of libraries and of programs differs in -fPIC and -fPIE, which a
# precompiled header must share with its users.) Several files of a room are compiled together (SYNCOPATE_TOGETHER), so
# that what they share of headers and templates is made once; so names in anonymous namespaces differ within a room.
# Commands and tests are not where a job spends its time, and are optimised less. Where only some rooms are tested with
# sanitizers, the others are `plain`: built without.
#
#   syncopate_build_quickly(TARGET sources|commands|tests|plain)
#   syncopate_build_tests_quickly()  # all programs of this folder that are tests
#
# A file includes what it uses all the same, which the preset `debug` shows: it compiles each file by itself and without
# precompiled headers. No header of our own is among them, nor LibTorch's, whose precompiled form has 650 MB and is not
# kept by ccache (which keeps ours with CCACHE_SLOPPINESS=pch_defines,time_macros); and since LibTorch brings definitions
# that change what headers say, what links it does without. A file with options of its own that change code has
# SKIP_PRECOMPILE_HEADERS.
option(SYNCOPATE_PCH "Precompile the headers of other libraries that most files include" OFF)
set(SYNCOPATE_TOGETHER 1 CACHE STRING "How many files of a room the compiler sees at once")

set(SYNCOPATE_HEADERS
  <algorithm> <array> <cmath> <cstddef> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <string> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/ascii.h>
  <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/strings/strip.h>
  <absl/time/time.h> <absl/types/span.h>)
set(SYNCOPATE_FILE_HEADERS <filesystem> <fstream> <iostream> <sstream> <nlohmann/json.hpp>)

# The options by which the kinds differ.
function(syncopate_optimise target kind)
  if("${kind}" STREQUAL "plain")
    target_compile_options(${target} PRIVATE -fno-sanitize=all)
  elseif(NOT "${kind}" STREQUAL "sources")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    if("${kind}" STREQUAL "tests" AND SYNCOPATE_SANITIZE)
      target_compile_options(${target} PRIVATE -O0)
    endif()
  endif()
endfunction()

# The library whose only purpose is its precompiled header.
function(syncopate_headers_of kind)
  set(source ${PROJECT_BINARY_DIR}/headers/${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// What a precompiled header belongs to.\n")
  add_library(syncopate_headers_${kind} OBJECT ${source})
  target_link_libraries(syncopate_headers_${kind} PRIVATE syncopate_flags)
  set(headers ${SYNCOPATE_HEADERS})
  if("${kind}" STREQUAL "commands")
    list(APPEND headers ${SYNCOPATE_FILE_HEADERS} <CLI/CLI.hpp>)
    target_link_libraries(syncopate_headers_commands PRIVATE CLI11::CLI11 nlohmann_json::nlohmann_json)
  elseif("${kind}" STREQUAL "tests")
    list(APPEND headers ${SYNCOPATE_FILE_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(syncopate_headers_tests PRIVATE GTest::gmock GTest::gtest_main nlohmann_json::nlohmann_json)
    set_target_properties(syncopate_headers_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(syncopate_headers_tests PRIVATE -fPIE)
  endif()
  syncopate_optimise(syncopate_headers_${kind} ${kind})
  target_precompile_headers(syncopate_headers_${kind} PRIVATE ${headers})
endfunction()

function(syncopate_build_quickly target kind)
  syncopate_optimise(${target} ${kind})
  if(SYNCOPATE_TOGETHER GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${SYNCOPATE_TOGETHER})
  endif()
  get_target_property(libraries ${target} LINK_LIBRARIES)
  if(NOT SYNCOPATE_PCH OR "torch" IN_LIST libraries OR "syncopate_train" IN_LIST libraries
     OR "syncopate_torch_hooks" IN_LIST libraries)
    return()
  endif()
  if(NOT TARGET syncopate_headers_${kind})
    syncopate_headers_of(${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM syncopate_headers_${kind})
endfunction()

function(syncopate_build_tests_quickly)
  get_property(programs DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(program ${programs})
    get_target_property(libraries ${program} LINK_LIBRARIES)
    if("GTest::gtest_main" IN_LIST libraries)
      syncopate_build_quickly(${program} tests)
    endif()
  endforeach()
endfunction()
