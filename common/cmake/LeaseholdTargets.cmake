# leasehold_library(NAME SRCS .. DEPS ..): one static library per folder. DEPS
# are what its own headers and sources include; nothing else is linked, so a
# wrong include fails to link.
function(leasehold_library NAME)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SRCS})
  target_include_directories(${NAME} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${NAME} PRIVATE ${LEASEHOLD_WARNINGS})
  target_link_libraries(${NAME} PUBLIC ${ARG_DEPS})
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/")
    leasehold_use_pch(${NAME} core_test)
  else()
    leasehold_use_pch(${NAME} core)
  endif()
endfunction()

# leasehold_binary(NAME SRCS .. DEPS .. [PCH kind]): an executable in <build>/bin.
function(leasehold_binary NAME)
  cmake_parse_arguments(ARG "" "PCH" "SRCS;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SRCS})
  target_include_directories(${NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${NAME} PRIVATE ${LEASEHOLD_WARNINGS})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NOT ARG_PCH)
    set(ARG_PCH core)
  endif()
  leasehold_use_pch(${NAME} ${ARG_PCH})
endfunction()

# leasehold_test(NAME SRCS .. DEPS .. [LABELS ..] [TIMEOUT s]): a GoogleTest
# binary that is one ctest test. Labels: unit, store, e2e.
function(leasehold_test NAME)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  leasehold_binary(${NAME} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS} GTest::gmock GTest::gtest_main
                   PCH core_test)
  add_test(NAME ${NAME} COMMAND ${NAME})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
