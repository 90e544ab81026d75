# How everything is compiled, as the interface target pawl_flags.
set(PAWL_WARNINGS
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef)
add_library(pawl_flags INTERFACE)
target_compile_options(pawl_flags INTERFACE
  ${PAWL_WARNINGS} -fno-omit-frame-pointer $<$<BOOL:${PAWL_WERROR}>:-Werror>)
target_compile_definitions(pawl_flags INTERFACE _GNU_SOURCE)

# Hardening: makes memory errors harder to exploit. tests/repo/hardening_test.sh checks the programs for all of it. A
# sanitizer finds more than FORTIFY_SOURCE and replaces the same calls of the C library, so FORTIFY_SOURCE is off under
# sanitizers. Without optimisation FORTIFY_SOURCE only warns, so it is off there, too.
include(CheckCCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "PAWL_HAS${flag}" known)
  check_c_compiler_flag("-Werror ${flag}" ${known})
  if(${known})
    target_compile_options(pawl_flags INTERFACE ${flag})
  endif()
endforeach()
target_link_options(pawl_flags INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(NOT PAWL_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(pawl_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3) # an older C library takes it for 2
endif()

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
