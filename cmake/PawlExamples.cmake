# examples/hello.c becomes build/examples/hello: compiled as a user would, against the public headers and the shared
# library, with our warnings.
file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_link_libraries(example_${name} PRIVATE pawl_shared pawl_flags Threads::Threads m)
  set_target_properties(example_${name} PROPERTIES
    OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
endforeach()

# examples/functions/countmin.c becomes build/examples/functions/countmin.so: server functions, compiled against the public
# headers and linked with nothing.
file(GLOB function_sources CONFIGURE_DEPENDS examples/functions/*.c)
foreach(source ${function_sources})
  get_filename_component(name ${source} NAME_WE)
  add_library(function_${name} MODULE ${source})
  target_include_directories(function_${name} PRIVATE include)
  target_link_libraries(function_${name} PRIVATE pawl_flags)
  set_target_properties(function_${name} PROPERTIES C_VISIBILITY_PRESET hidden
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples/functions)
endforeach()
