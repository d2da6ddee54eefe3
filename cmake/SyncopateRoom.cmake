# A room of src/ becomes one static library `syncopate_<room>` and, where it has *_test.cc files, one
# test program `<room>_test`. Sub-folders belong to their room. Adding a file needs no change here.
# All rooms together become libsyncopate.so (SyncopateInstall.cmake), except those that are
# PROGRAM_ONLY.
#
#   syncopate_room(model DEPS syncopate_base PRIVATE_DEPS nlohmann_json::nlohmann_json)
#
# A sub-folder that is of use without the rest of its room is a library of its own: FOLDER says where it
# is, and the room leaves it out by WITHOUT.
#
#   syncopate_room(train_data FOLDER train/data DEPS syncopate_base)
#   syncopate_room(train WITHOUT train/data DEPS syncopate_train_data)

add_library(syncopate_flags INTERFACE)
target_compile_options(syncopate_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(syncopate_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/src>
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
if(SYNCOPATE_SANITIZE)
  target_compile_options(syncopate_flags INTERFACE
    -fsanitize=${SYNCOPATE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(syncopate_flags INTERFACE -fsanitize=${SYNCOPATE_SANITIZE})
endif()

# Tests that show what is not mended yet, each as PROGRAM:SUITE.NAME. Such a test lands ahead of its mend: it
# is run by itself and must fail, by an expectation, an exception or a signal. The commit that mends what it
# shows takes its line away.
set(SYNCOPATE_KNOWN_FAILING
)

# gtest_discover_tests() that knows of them.
function(syncopate_discover_tests program)
  set(known ${SYNCOPATE_KNOWN_FAILING})
  list(FILTER known INCLUDE REGEX "^${program}:")
  list(TRANSFORM known REPLACE "^${program}:" "")
  set(filter)
  if(known)
    list(JOIN known ":" names)
    set(filter TEST_FILTER "-${names}")
  endif()
  gtest_discover_tests(${program} ${filter} ${ARGN})
  foreach(name ${known})
    # The shell makes an exit code of a signal, which WILL_FAIL does not take for a failure.
    add_test(NAME ${name} COMMAND sh -c "\"$<TARGET_FILE:${program}>\" --gtest_filter='${name}' || exit 1")
    set_tests_properties(${name} PROPERTIES WILL_FAIL TRUE TIMEOUT 300)
  endforeach()
endfunction()

# All tests of rooms, without those of whole programs.
add_custom_target(room_tests)

function(syncopate_room room)
  cmake_parse_arguments(ROOM "PROGRAM_ONLY" "FOLDER;WITHOUT" "DEPS;PRIVATE_DEPS;TEST_DEPS" ${ARGN})
  if(NOT ROOM_FOLDER)
    set(ROOM_FOLDER ${room})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM_FOLDER}/*.cc)
  if(ROOM_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/${ROOM_WITHOUT}/")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_benchmark|_main)\\.cc$")
  if(NOT sources)
    add_library(syncopate_${room} INTERFACE)
    target_link_libraries(syncopate_${room} INTERFACE syncopate_flags ${ROOM_DEPS})
    return()
  endif()
  add_library(syncopate_${room} STATIC ${sources})
  target_link_libraries(syncopate_${room} PUBLIC syncopate_flags ${ROOM_DEPS} PRIVATE ${ROOM_PRIVATE_DEPS})
  if(room IN_LIST SYNCOPATE_PLAIN_ROOMS)
    syncopate_build_quickly(syncopate_${room} plain)
  elseif("CLI11::CLI11" IN_LIST ROOM_PRIVATE_DEPS)
    syncopate_build_quickly(syncopate_${room} commands)
  else()
    syncopate_build_quickly(syncopate_${room} sources)
  endif()
  if(NOT ROOM_PROGRAM_ONLY)
    set_property(GLOBAL APPEND PROPERTY SYNCOPATE_LIBRARY_ROOMS ${room})
    set(outside_deps ${ROOM_DEPS} ${ROOM_PRIVATE_DEPS})
    list(FILTER outside_deps EXCLUDE REGEX "^syncopate_")
    set_property(GLOBAL APPEND PROPERTY SYNCOPATE_LIBRARY_DEPS ${outside_deps})
  endif()
  if(SYNCOPATE_BUILD_TESTS AND tests AND (NOT SYNCOPATE_TEST_ROOMS OR room IN_LIST SYNCOPATE_TEST_ROOMS))
    add_executable(${room}_test ${tests})
    target_link_libraries(${room}_test PRIVATE syncopate_${room} ${ROOM_PRIVATE_DEPS} ${ROOM_TEST_DEPS}
                          GTest::gmock GTest::gtest_main)
    syncopate_build_quickly(${room}_test tests)
    syncopate_discover_tests(${room}_test NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
    add_dependencies(room_tests ${room}_test)
  endif()
endfunction()

# Adds the messages and the gRPC service of src/<room>/<name>.proto to a room; its code includes them
# as "<room>/<name>.grpc.pb.h". Generated code is not held to our warnings.
function(syncopate_grpc room name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(proto ${CMAKE_CURRENT_SOURCE_DIR}/${room}/${name}.proto)
  set(stem ${folder}/${room}/${name})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${stem}.pb.cc ${stem}.pb.h ${stem}.grpc.pb.cc ${stem}.grpc.pb.h
    COMMAND ${PROTOC} --proto_path=${CMAKE_CURRENT_SOURCE_DIR} --cpp_out=${folder} --grpc_out=${folder}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${proto}
    DEPENDS ${proto}
    COMMENT "Generating ${room}/${name} from its .proto")
  target_sources(syncopate_${room} PRIVATE ${stem}.pb.cc ${stem}.grpc.pb.cc ${stem}.pb.h ${stem}.grpc.pb.h)
  set_source_files_properties(${stem}.pb.cc ${stem}.grpc.pb.cc PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(syncopate_${room} SYSTEM PRIVATE ${folder})
endfunction()

# Adds to a room a source that registers every algorithm of a folder, so that adding a file needs no change
# anywhere: for some_name.cc it calls RegisterSomeName(PlannerRegistry&). (Objects that register themselves
# would be dropped by the linker, since nobody refers to them in a static library.)
function(syncopate_algorithms room folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_(test|benchmark)\\.cc$")
  list(SORT sources)
  set(SYNCOPATE_REGISTER_DECLARATIONS "")
  set(SYNCOPATE_REGISTER_CALLS "")
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    string(REPLACE "_" ";" words ${stem})
    set(name "")
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND name ${first}${rest})
    endforeach()
    string(APPEND SYNCOPATE_REGISTER_DECLARATIONS "void Register${name}(PlannerRegistry& registry);\n")
    string(APPEND SYNCOPATE_REGISTER_CALLS "  Register${name}(registry);\n")
  endforeach()
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/${folder}/register_algorithms.cc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/register_algorithms.cc.in ${generated} @ONLY)
  target_sources(syncopate_${room} PRIVATE ${generated})
endfunction()
