# The libraries that pawl depends on, as the interface target pawl_parts. tools/deps installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(PAWL_PKGCONFIG_PARTS libssl libcrypto libxxhash liblz4 libzstd liblzma zlib jansson libmicrohttpd gnutls
    lapacke)
pkg_check_modules(PARTS REQUIRED IMPORTED_TARGET
  libssl>=3.0 libcrypto>=3.0 libxxhash liblz4 libzstd liblzma zlib jansson libmicrohttpd>=0.9.71 gnutls>=3.6
  lapacke)

# libunistring has no pkg-config file.
find_path(UNISTRING_INCLUDE_DIR unictype.h)
find_library(UNISTRING_LIBRARY unistring)
if(NOT UNISTRING_INCLUDE_DIR OR NOT UNISTRING_LIBRARY)
  message(FATAL_ERROR "libunistring was not found. Run tools/deps.")
endif()

# On some systems bzip2 has none either.
find_path(BZIP2_INCLUDE_DIR bzlib.h)
find_library(BZIP2_LIBRARY bz2)
if(NOT BZIP2_INCLUDE_DIR OR NOT BZIP2_LIBRARY)
  message(FATAL_ERROR "libbz2 was not found. Run tools/deps.")
endif()

add_library(pawl_parts INTERFACE)
target_include_directories(pawl_parts SYSTEM INTERFACE ${UNISTRING_INCLUDE_DIR} ${BZIP2_INCLUDE_DIR})
target_link_libraries(pawl_parts INTERFACE
  PkgConfig::PARTS ${UNISTRING_LIBRARY} ${BZIP2_LIBRARY} Threads::Threads m ${CMAKE_DL_LIBS})

# libcurl is loaded when it is needed (src/host/etcd/curl.h); only its header is used here.
pkg_check_modules(CURL REQUIRED libcurl>=7.68)
target_include_directories(pawl_parts SYSTEM INTERFACE ${CURL_INCLUDE_DIRS})

# Only learning methods multiply matrices, so pawl_parts does not have it.
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
list(APPEND PAWL_PKGCONFIG_PARTS openblas)

# On x86-64 libxxhash can choose vector instructions at run time, if the distribution built it with dispatch.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::PARTS)
check_c_source_compiles("#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
#include <xxh_x86dispatch.h>
int main(void) { return (int)XXH3_64bits_withSeed(\"\", 0, 0); }" PAWL_XXH_DISPATCH)
unset(CMAKE_REQUIRED_LIBRARIES)
if(PAWL_XXH_DISPATCH)
  target_compile_definitions(pawl_parts INTERFACE PAWL_HAS_XXH_DISPATCH=1)
else()
  target_compile_definitions(pawl_parts INTERFACE PAWL_HAS_XXH_DISPATCH=0)
endif()

set(PAWL_HAS_UCX OFF)
if(NOT PAWL_UCX STREQUAL "OFF")
  pkg_check_modules(UCX IMPORTED_TARGET ucx)
  if(UCX_FOUND)
    set(PAWL_HAS_UCX ON)
    target_link_libraries(pawl_parts INTERFACE PkgConfig::UCX)
    target_compile_definitions(pawl_parts INTERFACE PAWL_HAS_UCX=1)
    list(APPEND PAWL_PKGCONFIG_PARTS ucx)
  elseif(PAWL_UCX STREQUAL "ON")
    message(FATAL_ERROR "PAWL_UCX=ON, but UCX was not found. Run tools/deps, or configure with -DPAWL_UCX=OFF.")
  endif()
endif()
if(NOT PAWL_HAS_UCX)
  target_compile_definitions(pawl_parts INTERFACE PAWL_HAS_UCX=0)
  message(STATUS "UCX not in use: peers on one host will talk over sockets")
endif()
