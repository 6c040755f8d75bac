# Precompiled headers: what nearly every file includes is parsed once for each
# kind of target, which halves the time of a build from nothing. They change
# nothing else: every file names what it needs, and the dev preset builds
# without them.
option(LEASEHOLD_PCH "Use precompiled headers" OFF)

# The kinds: core (no gRPC), grpc, and each with GoogleTest.
set(LEASEHOLD_PCH_core
    <algorithm> <atomic> <chrono> <condition_variable> <cstdint> <deque> <functional>
    <map> <memory> <mutex> <optional> <set> <string> <thread> <unordered_map> <utility>
    <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/string_view.h> <absl/time/time.h>
    <absl/types/span.h>)
set(LEASEHOLD_PCH_core_test ${LEASEHOLD_PCH_core} <gmock/gmock.h> <gtest/gtest.h>)
set(LEASEHOLD_PCH_grpc ${LEASEHOLD_PCH_core} <grpcpp/grpcpp.h>
    <leasehold/v1/executor_service.grpc.pb.h> <leasehold/v1/task_service.grpc.pb.h>)
set(LEASEHOLD_PCH_grpc_test ${LEASEHOLD_PCH_grpc} <gmock/gmock.h> <gtest/gtest.h>)

# leasehold_add_pch_hosts(): the targets that own them. After proto/.
function(leasehold_add_pch_hosts)
  if(NOT LEASEHOLD_PCH)
    return()
  endif()
  set(kinds core core_test)
  if(NOT LEASEHOLD_CORE_ONLY)
    list(APPEND kinds grpc grpc_test)
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/pch_host.cc "")
  foreach(kind ${kinds})
    set(host leasehold_pch_${kind})
    add_library(${host} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch_host.cc)
    target_compile_options(${host} PRIVATE ${LEASEHOLD_WARNINGS} -fpch-preprocess)
    target_link_libraries(${host} PRIVATE absl::statusor absl::flat_hash_map)
    if(kind MATCHES "grpc")
      target_link_libraries(${host} PRIVATE leasehold_proto)
    endif()
    if(kind MATCHES "test")
      target_link_libraries(${host} PRIVATE GTest::gmock)
    endif()
    target_precompile_headers(${host} PRIVATE ${LEASEHOLD_PCH_${kind}})
  endforeach()
endfunction()

# leasehold_use_pch(TARGET KIND): KIND is core or core_test; folders that see
# Protobuf get the kind with gRPC.
function(leasehold_use_pch target kind)
  if(NOT LEASEHOLD_PCH)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(folder MATCHES "^(executor|scheduler/rpc|deploy|tests/(e2e|bench|support|executor|scheduler/rpc))"
     AND NOT LEASEHOLD_CORE_ONLY)
    string(REPLACE core grpc kind ${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM leasehold_pch_${kind})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  if(kind MATCHES "test")
    # As GTest's own target says, which not all of these link.
    target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  endif()
endfunction()
