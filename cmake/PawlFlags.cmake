# How everything is compiled, as the interface target pawl_flags.
set(PAWL_WARNINGS
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef)
add_library(pawl_flags INTERFACE)
target_compile_options(pawl_flags INTERFACE
  ${PAWL_WARNINGS} -fno-omit-frame-pointer $<$<BOOL:${PAWL_WERROR}>:-Werror>)
target_compile_definitions(pawl_flags INTERFACE _GNU_SOURCE)

if(PAWL_SANITIZE)
  target_compile_options(pawl_flags INTERFACE -fsanitize=${PAWL_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(pawl_flags INTERFACE -fsanitize=${PAWL_SANITIZE})
endif()
if(PAWL_COVERAGE)
  target_compile_options(pawl_flags INTERFACE -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(pawl_flags INTERFACE -fprofile-instr-generate)
endif()
if(PAWL_FUZZ)
  target_compile_options(pawl_flags INTERFACE -fsanitize=fuzzer-no-link) # PawlFuzz links the fuzzer itself
endif()
