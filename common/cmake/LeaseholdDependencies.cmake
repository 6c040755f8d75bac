# Libraries as Debian 12 ships them. Protobuf in module mode must come before
# gRPC, whose config file would otherwise look for a Protobuf config that Debian
# does not have.
# For a project that has this one as a subdirectory and links the SDK.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SOCI REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(GTest REQUIRED)
if(NOT LEASEHOLD_CORE_ONLY)
  find_package(CURL REQUIRED)
  find_package(Protobuf MODULE REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
endif()
