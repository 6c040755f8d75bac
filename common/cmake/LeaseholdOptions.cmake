# Compiler settings for our own code; imported and generated code is exempt.
set(LEASEHOLD_SANITIZE "" CACHE STRING "address (with undefined), thread, or empty")
option(LEASEHOLD_CORE_ONLY "Only what has no gRPC in it" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Debian's compiler makes everything position independent by itself; libraries and
# programs then share one set of precompiled headers.
# -g1 keeps line numbers for backtraces and halves link time.
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  # What ccache needs to know of precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

if(LEASEHOLD_SANITIZE STREQUAL "address")
  # soci's exceptions cross a library boundary without RTTI that vptr could use.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=address,undefined)
elseif(LEASEHOLD_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=thread)
endif()

# Everywhere, since precompiled headers remember it.
add_compile_options(-pthread)

set(LEASEHOLD_WARNINGS -Wall -Wextra -Wpedantic)
if(PROJECT_IS_TOP_LEVEL)
  # Not for a project that has this one as a subdirectory, whatever its compiler.
  list(APPEND LEASEHOLD_WARNINGS -Werror)
endif()
