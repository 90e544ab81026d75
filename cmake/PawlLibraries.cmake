# The two installed libraries, and everything that is installed with them. Both export only PAWL_API symbols.

add_library(pawl_shared SHARED)
target_link_libraries(pawl_shared PRIVATE pawl_objects pawl_apps)
target_include_directories(pawl_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Before 1.0 every minor version may change the ABI, so it is part of the name.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(soversion 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(pawl_shared PROPERTIES
  OUTPUT_NAME pawl EXPORT_NAME pawl VERSION ${PROJECT_VERSION} SOVERSION ${soversion})

# An archive has no hidden symbols: every symbol that one object exports to another is visible to programs. So all
# objects are linked into one, and hidden symbols become local to it.
set(one_object ${PROJECT_BINARY_DIR}/pawl_one${CMAKE_C_OUTPUT_EXTENSION})
add_custom_command(OUTPUT ${one_object}
  COMMAND ${CMAKE_LINKER} -r -o ${one_object} $<TARGET_OBJECTS:pawl_objects> $<TARGET_OBJECTS:pawl_apps>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${one_object}
  DEPENDS pawl_objects $<TARGET_OBJECTS:pawl_objects> pawl_apps $<TARGET_OBJECTS:pawl_apps>
  COMMENT "Joining the objects of libpawl.a" COMMAND_EXPAND_LISTS VERBATIM)
set_source_files_properties(${one_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(pawl_static STATIC ${one_object})
target_include_directories(pawl_static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(pawl_static PROPERTIES OUTPUT_NAME pawl LINKER_LANGUAGE C)

# pkg-config and CMake need the dependencies of the static library; the shared library records its own.
# Debian's libmicrohttpd.pc, gnutls.pc, openblas.pc and lapacke.pc ask a static link for libraries that their
# packages do not bring; the four are named directly.
set(pkgconfig_parts ${PAWL_PKGCONFIG_PARTS})
list(REMOVE_ITEM pkgconfig_parts libmicrohttpd gnutls openblas lapacke)
list(JOIN pkgconfig_parts ", " PAWL_PKGCONFIG_REQUIRES)
list(JOIN PAWL_PKGCONFIG_PARTS " " PAWL_CMAKE_REQUIRES)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
# Paths are relative to the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH PAWL_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PAWL_PC_TO_PREFIX ${PAWL_PC_TO_PREFIX})
configure_file(cmake/pawl.pc.in pawl.pc @ONLY)
configure_package_config_file(cmake/pawlConfig.cmake.in pawlConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(pawlConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS pawl_command RUNTIME)
install(TARGETS pawl_shared EXPORT pawlSharedTargets LIBRARY)
install(TARGETS pawl_static EXPORT pawlStaticTargets ARCHIVE)
install(DIRECTORY include/pawl TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(FILES man/pawl.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE README.md CHANGELOG.md TYPE DOC OPTIONAL)
install(DIRECTORY docs TYPE DOC FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png") # README.md links to docs/
# The command generates the completion scripts from its option tables.
if(NOT CMAKE_CROSSCOMPILING)
  set(completions ${PROJECT_BINARY_DIR}/completions)
  add_custom_command(OUTPUT ${completions}/pawl.bash ${completions}/_pawl ${completions}/pawl.fish
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
    COMMAND sh -c "'$<TARGET_FILE:pawl_command>' completion bash >'${completions}/pawl.bash'"
    COMMAND sh -c "'$<TARGET_FILE:pawl_command>' completion zsh >'${completions}/_pawl'"
    COMMAND sh -c "'$<TARGET_FILE:pawl_command>' completion fish >'${completions}/pawl.fish'"
    DEPENDS pawl_command COMMENT "Printing completions for shells" VERBATIM)
  add_custom_target(pawl_completions ALL DEPENDS ${completions}/pawl.bash)
  install(FILES ${completions}/pawl.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME pawl)
  install(FILES ${completions}/_pawl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${completions}/pawl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY examples/data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/pawl)
install(FILES ${PROJECT_BINARY_DIR}/pawl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_BINARY_DIR}/pawlConfig.cmake ${PROJECT_BINARY_DIR}/pawlConfigVersion.cmake
        DESTINATION ${package_dir})
install(EXPORT pawlSharedTargets NAMESPACE pawl:: DESTINATION ${package_dir})
install(EXPORT pawlStaticTargets NAMESPACE pawl:: DESTINATION ${package_dir})
