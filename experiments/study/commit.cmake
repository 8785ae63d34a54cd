# Writes commit.h when the source's commit is another than the one written there. Run at every build.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT status EQUAL 0)
  set(commit unknown)
endif()
execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD -- *.c *.h *.S *CMakeLists.txt
  RESULT_VARIABLE status ERROR_QUIET)
if(status EQUAL 1)
  string(APPEND commit -changed)
endif()
set(text "#define VRAMLAB_COMMIT \"${commit}\"\n#define VRAMLAB_COMPILER \"${COMPILER}\"\n")
if(EXISTS ${HEADER})
  file(READ ${HEADER} written)
endif()
if(NOT "${written}" STREQUAL "${text}")
  file(WRITE ${HEADER} "${text}")
endif()
