# pawl-bench, the program of benchmarks, and pawl-storm, the workers and the verifier of tests with real faults. Neither is
# installed.
file(GLOB storm_sources CONFIGURE_DEPENDS tests/storm/harness/*.c)
list(FILTER storm_sources EXCLUDE REGEX "(_test|/main)\\.c$")
add_library(pawl_storm_harness OBJECT ${storm_sources})
target_include_directories(pawl_storm_harness PRIVATE include src .)
target_link_libraries(pawl_storm_harness PRIVATE pawl_flags pawl_parts)

add_executable(pawl_storm tests/storm/harness/main.c)
target_link_libraries(pawl_storm PRIVATE pawl_storm_harness pawl_cli pawl_inside)
set_target_properties(pawl_storm PROPERTIES OUTPUT_NAME pawl-storm)

file(GLOB bench_command_sources CONFIGURE_DEPENDS bench/command/*.c bench/command/asap/*.c
  bench/command/lapser/*.c bench/command/sfb/*.c)
list(FILTER bench_command_sources EXCLUDE REGEX "_test\\.c$")
add_executable(pawl_bench ${bench_command_sources})
target_include_directories(pawl_bench PRIVATE .)
target_link_libraries(pawl_bench PRIVATE pawl_storm_harness pawl_cli pawl_apps pawl_inside)
add_dependencies(pawl_bench pawl_command pawl_storm) # it starts them
set_target_properties(pawl_bench PROPERTIES OUTPUT_NAME pawl-bench)

# bench/keys.c becomes build/bench/keys, and bench/osdi/x.c build/bench/x. Benchmarks are built by the target `bench` and not by
# default.
add_custom_target(bench)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c bench/osdi/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE pawl_inside)
  file(STRINGS ${source} apps REGEX "^#include \"apps/" LIMIT_COUNT 1)
  if(apps)
    target_link_libraries(bench_${name} PRIVATE pawl_apps)
  endif()
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench bench_${name})
endforeach()

# `pawl-bench net --op`, `asap --real`, `reduce` and `lapser` run them beside pawl, if Open MPI is there. Tests do not need them.
pkg_check_modules(OPENMPI QUIET IMPORTED_TARGET ompi-c)
if(OPENMPI_FOUND)
  add_executable(bench_mpi_onesided EXCLUDE_FROM_ALL bench/mpi/onesided.c)
  target_compile_options(bench_mpi_onesided PRIVATE -O3)
  target_link_libraries(bench_mpi_onesided PRIVATE PkgConfig::OPENMPI)
  set_target_properties(bench_mpi_onesided PROPERTIES
    OUTPUT_NAME mpi_onesided RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench bench_mpi_onesided)

  # The same learning as `pawl-bench asap --real`.
  add_executable(bench_mpi_allreduce EXCLUDE_FROM_ALL bench/mpi/allreduce.c
    bench/command/asap/learn.c bench/command/asap/problem.c)
  target_include_directories(bench_mpi_allreduce PRIVATE .)
  target_compile_options(bench_mpi_allreduce PRIVATE -O3)
  target_link_libraries(bench_mpi_allreduce PRIVATE PkgConfig::OPENMPI pawl_inside)
  set_target_properties(bench_mpi_allreduce PROPERTIES
    OUTPUT_NAME mpi_allreduce RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench bench_mpi_allreduce)

  # The same worker as `pawl-bench lapser`.
  add_executable(bench_mpi_bpmf EXCLUDE_FROM_ALL bench/mpi/bpmf.c bench/command/lapser/worker.c)
  target_include_directories(bench_mpi_bpmf PRIVATE .)
  target_link_libraries(bench_mpi_bpmf PRIVATE PkgConfig::OPENMPI pawl_inside pawl_apps)
  set_target_properties(bench_mpi_bpmf PROPERTIES
    OUTPUT_NAME mpi_bpmf RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench bench_mpi_bpmf)
endif()
