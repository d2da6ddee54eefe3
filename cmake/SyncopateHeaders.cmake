# Most of the time that a small file takes to compile goes to headers of other libraries, so those that most files
# include are compiled once: for the sources of rooms and, with GoogleTest, for tests. (They are two because code of
# libraries and of programs differs in -fPIC and -fPIE, which a precompiled header must share with its users.)
#
#   syncopate_precompile(TARGET sources|tests)
#
# A file includes what it uses all the same, which the preset `release` shows: it builds without them. No header of
# our own is among them, nor LibTorch's, whose precompiled form has 650 MB and is not kept by ccache (which keeps ours
# with CCACHE_SLOPPINESS=pch_defines,time_macros). A file with options of its own that change code has
# SKIP_PRECOMPILE_HEADERS.
option(SYNCOPATE_PCH "Precompile the headers of other libraries that most files include" OFF)

set(SYNCOPATE_HEADERS
  <algorithm> <array> <cmath> <cstddef> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <string> <utility> <variant> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
  <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/ascii.h>
  <absl/strings/match.h> <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_format.h>
  <absl/strings/str_join.h> <absl/strings/str_split.h> <absl/strings/string_view.h> <absl/strings/strip.h>
  <absl/time/time.h> <absl/types/span.h>)

# The library whose only purpose is its precompiled header.
function(syncopate_headers_of kind)
  set(source ${PROJECT_BINARY_DIR}/headers/${kind}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// What a precompiled header belongs to.\n")
  add_library(syncopate_headers_${kind} OBJECT ${source})
  target_link_libraries(syncopate_headers_${kind} PRIVATE syncopate_flags)
  set(headers ${SYNCOPATE_HEADERS})
  if("${kind}" STREQUAL "tests")
    list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(syncopate_headers_tests PRIVATE GTest::gmock GTest::gtest_main)
    set_target_properties(syncopate_headers_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(syncopate_headers_tests PRIVATE -fPIE)
  endif()
  target_precompile_headers(syncopate_headers_${kind} PRIVATE ${headers})
endfunction()

function(syncopate_precompile target kind)
  if(NOT SYNCOPATE_PCH)
    return()
  endif()
  if(NOT TARGET syncopate_headers_${kind})
    syncopate_headers_of(${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM syncopate_headers_${kind})
endfunction()
