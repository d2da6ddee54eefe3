# The target `docs` makes docs/html in the build folder: the reference of the C++ interface, from the comments of the
# public headers. A public member without a comment is an error. Doxygen is needed for nothing else.
find_program(DOXYGEN doxygen)
if(DOXYGEN)
  set(SYNCOPATE_DOXYGEN_OUTPUT ${PROJECT_BINARY_DIR}/docs)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in ${PROJECT_BINARY_DIR}/docs/Doxyfile @ONLY)
  add_custom_target(docs
    COMMAND ${DOXYGEN} ${PROJECT_BINARY_DIR}/docs/Doxyfile
    COMMAND ${CMAKE_COMMAND} -E echo "docs: open ${PROJECT_BINARY_DIR}/docs/html/index.html"
    COMMENT "Making the reference of the C++ interface"
    VERBATIM)
else()
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E echo "docs: the reference needs Doxygen: apt-get install doxygen, and configure again"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endif()
