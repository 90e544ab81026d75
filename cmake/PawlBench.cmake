# bench/keys.c becomes build/bench/keys, and bench/osdi/x.c build/bench/x. Benchmarks are built by the target `bench` and not by
# default.
add_custom_target(bench)
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c bench/osdi/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE pawl_inside)
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  add_dependencies(bench bench_${name})
endforeach()
