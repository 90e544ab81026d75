# src/store/clock_test.c becomes the ctest `store.clock`, src/net/tcp/frame_test.c becomes `net.tcp.frame`. Tests of
# more than one module are in tests/: tests/net/kill_test.c becomes `net.kill`. Scripts are named likewise:
# tests/cli/key_test.sh becomes `cli.key`, tests/python/vector_test.py becomes `python.vector`.
#
# A test states its needs in a comment, one per line:
#
#   labels: long nosan     long: only under `make test-long`. nosan: not under the sanitizers
#   timeout: 3000          seconds, instead of 1200: a test that hangs ends then. A busy machine takes ten times as long
#   cost: 60               seconds on an idle machine, of the longest tests only: ctest starts these first
#   many: 1000             another test, NAME_many, runs the program from so many seeds (PAWL_SEEDS); it is long
#   alone: yes             no other test runs beside it
#   planted: yes           links the library with planted bugs (src/protocol/planted.h)
#
# The environment of a test has PAWL_COMMAND, the path of the command, and PAWL_SOURCE and PAWL_BUILD, the source and
# build folders. A test that cannot run on this machine exits with 77.
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
  if(PAWL_TESTS STREQUAL "AUTO")
    message(STATUS "cmocka not found: the tests are not built")
    return()
  endif()
  message(FATAL_ERROR "The tests need cmocka. Run `tools/deps test`, or configure with -DPAWL_TESTS=OFF.")
endif()
enable_testing()

set(test_environment
  PAWL_COMMAND=${PROJECT_BINARY_DIR}/pawl PAWL_PLANTED_COMMAND=${PROJECT_BINARY_DIR}/pawl-planted
  PAWL_BENCH=${PROJECT_BINARY_DIR}/pawl-bench PAWL_STORM=${PROJECT_BINARY_DIR}/pawl-storm
  PAWL_SOURCE=${PROJECT_SOURCE_DIR} PAWL_BUILD=${PROJECT_BINARY_DIR})
if(PAWL_SANITIZE)
  list(APPEND test_environment UCX_HANDLE_ERRORS=none) # UCX's handlers would hide the sanitizer's reports
  list(APPEND test_environment LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/sanitizers/leaks.supp)
endif()
if(PAWL_SANITIZE MATCHES "address")
  # Without detect_stack_use_after_return: with it a test of catalogues takes 300 s instead of 7, and the suite never ends.
  list(APPEND test_environment ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1
       UBSAN_OPTIONS=print_stacktrace=1)
elseif(PAWL_SANITIZE MATCHES "thread")
  # UCX replaces the functions that ThreadSanitizer must see, unless it is told not to.
  list(APPEND test_environment TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 UCX_MEM_EVENTS=n)
endif()

# The library and the command with bugs planted in the roles. All other objects are those of the normal library.
set(planted_sources ${library_sources})
list(JOIN role_modules "|" planted_modules)
list(FILTER planted_sources INCLUDE REGEX "/src/(${planted_modules})/")
add_library(pawl_planted_objects OBJECT ${planted_sources})
target_compile_definitions(pawl_planted_objects PRIVATE PAWL_PLANTED=1)
target_include_directories(pawl_planted_objects PRIVATE include src)
target_link_libraries(pawl_planted_objects PRIVATE pawl_flags pawl_parts)
set_target_properties(pawl_planted_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(pawl_planted STATIC
  $<TARGET_OBJECTS:pawl_planted_objects> $<TARGET_OBJECTS:pawl_sim>
  "$<FILTER:$<TARGET_OBJECTS:pawl_objects>,EXCLUDE,/src/(${planted_modules})/>")
target_include_directories(pawl_planted PUBLIC include src)
target_link_libraries(pawl_planted PUBLIC pawl_flags pawl_parts)
set_target_properties(pawl_planted PROPERTIES LINKER_LANGUAGE C)
add_executable(pawl_planted_command $<TARGET_OBJECTS:pawl_command> $<TARGET_OBJECTS:pawl_cli>)
target_link_libraries(pawl_planted_command PRIVATE pawl_planted pawl_apps)
set_target_properties(pawl_planted_command PROPERTIES OUTPUT_NAME pawl-planted LINKER_LANGUAGE C)

# The value that the test's comment gives for `word`, or an empty string.
function(pawl_test_wish source word result)
  file(STRINGS ${source} lines REGEX "^[/* #]*${word}: " LIMIT_COUNT 1)
  string(REGEX REPLACE "^[/* #]*${word}: *" "" wish "${lines}")
  string(REGEX REPLACE " *\\*/.*$" "" wish "${wish}")
  set(${result} "${wish}" PARENT_SCOPE)
endfunction()

function(pawl_test_properties name source)
  pawl_test_wish(${source} labels labels)
  pawl_test_wish(${source} timeout timeout)
  pawl_test_wish(${source} alone alone)
  pawl_test_wish(${source} cost cost)
  string(REGEX MATCHALL "[a-z]+" labels "${labels}")
  if(NOT timeout)
    set(timeout 1200)
  endif()
  if(PAWL_SANITIZE) # everything takes several times as long
    math(EXPR timeout "${timeout} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout} LABELS "${labels}"
    ENVIRONMENT "${test_environment}")
  if(cost) # by it a build without the times of an earlier run knows the longest tests
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
  if(alone)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# The ctest name of a source below `root`.
function(pawl_test_name source root result)
  file(RELATIVE_PATH name ${root} ${source})
  string(REGEX REPLACE "_test\\.(c|sh|py)$" "" name ${name})
  string(REPLACE "/" "." name ${name})
  set(${result} ${name} PARENT_SCOPE)
endfunction()

# ARGN: prefix of the name.
function(pawl_add_test source root)
  pawl_test_name(${source} ${root} name)
  set(name ${ARGN}${name})
  add_executable(test.${name} ${source})
  target_compile_options(test.${name} PRIVATE -O1) # half the time to compile, and what it tests has all optimisation
  pawl_test_wish(${source} planted is_planted)
  if(is_planted)
    target_link_libraries(test.${name} PRIVATE pawl_planted PkgConfig::CMOCKA)
  else()
    target_link_libraries(test.${name} PRIVATE pawl_inside PkgConfig::CMOCKA)
  endif()
  if(source MATCHES "/src/cli/") # the command is no library: its tests take its objects, but for main
    target_sources(test.${name} PRIVATE
      $<TARGET_OBJECTS:pawl_cli> $<FILTER:$<TARGET_OBJECTS:pawl_command>,EXCLUDE,/main\\.c>)
    target_link_libraries(test.${name} PRIVATE pawl_apps)
  endif()
  set_target_properties(test.${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND test.${name})
  pawl_test_properties(${name} ${source})
  pawl_test_wish(${source} many many)
  if(many)
    add_test(NAME ${name}_many COMMAND test.${name})
    pawl_test_properties(${name}_many ${source})
    set_tests_properties(${name}_many PROPERTIES LABELS "long;nosan" TIMEOUT 3000)
    set_property(TEST ${name}_many APPEND PROPERTY ENVIRONMENT PAWL_SEEDS=${many})
  endif()
endfunction()

function(pawl_add_script name source)
  add_test(NAME ${name} COMMAND ${source} ${ARGN})
  pawl_test_properties(${name} ${source})
  # On arm64 LeakSanitizer visits 2^28 regions when a process ends, which takes 4 s. Scripts start hundreds of processes.
  if(PAWL_SANITIZE MATCHES "address" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT LSAN_OPTIONS=detect_leaks=0)
  endif()
endfunction()

foreach(source ${test_sources})
  pawl_add_test(${source} ${PROJECT_SOURCE_DIR}/src)
endforeach()
foreach(source ${app_test_sources}) # apps/linear/model/model_test.c becomes `apps.linear.model.model`
  pawl_add_test(${source} ${PROJECT_SOURCE_DIR})
  pawl_test_name(${source} ${PROJECT_SOURCE_DIR} name)
  target_link_libraries(test.${name} PRIVATE pawl_apps)
endforeach()
file(GLOB bench_tests CONFIGURE_DEPENDS bench/command/*_test.c bench/command/asap/*_test.c
  bench/command/lapser/*_test.c) # bench/command/x_test.c becomes `bench.x`
foreach(source ${bench_tests})
  pawl_add_test(${source} ${PROJECT_SOURCE_DIR}/bench/command bench.)
  pawl_test_name(${source} ${PROJECT_SOURCE_DIR}/bench/command name)
  target_sources(test.bench.${name} PRIVATE $<TARGET_OBJECTS:pawl_cli> $<TARGET_OBJECTS:pawl_storm_harness>
    $<FILTER:$<TARGET_OBJECTS:pawl_bench>,EXCLUDE,/main\\.c>)
  target_link_libraries(test.bench.${name} PRIVATE pawl_apps)
endforeach()
add_subdirectory(tests)
