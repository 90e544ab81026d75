/* `pawl version`: the versions of pawl, its compiler and its libraries. */
#include <stdio.h>

#include <pawl/version.h>

#include "cli/cli.h"
#include "cli/parts.h"
#include "wire/hello.h"

static json_t *features_json(void) {
  struct pwi_feature features[PWI_FEATURES];
  json_t *object = json_object();
  pwi_parts_features(features);
  for (size_t i = 0; i < PWI_FEATURES; i++)
    json_object_set_new(object, features[i].name, json_boolean(features[i].present));
  return object;
}

static json_t *libraries_json(void) {
  struct pwi_build_part parts[PWI_PARTS];
  json_t *object = json_object();
  pwi_parts(parts);
  for (size_t i = 0; i < PWI_PARTS; i++)
    json_object_set_new(object, parts[i].name, *parts[i].version ? json_string(parts[i].version) : json_null());
  return object;
}

static int print_as_json(const struct pwi_command *command) {
  return pwi_cli_print_json(command, json_pack("{s:s, s:[i,i], s:s, s:s, s:o, s:o}", "version", pawl_version(),
                                               "protocol", PWI_PROTOCOL_LOWEST, PWI_PROTOCOL_HIGHEST, "compiler",
                                               pwi_parts_compiler(), "architecture", pwi_parts_architecture(),
                                               "features", features_json(), "libraries", libraries_json()));
}

static void print_for_people(void) {
  struct pwi_feature features[PWI_FEATURES];
  struct pwi_build_part parts[PWI_PARTS];
  pwi_parts_features(features);
  pwi_parts(parts);
  printf("pawl %s\n", pawl_version());
  printf("  protocol      %d to %d\n", PWI_PROTOCOL_LOWEST, PWI_PROTOCOL_HIGHEST);
  printf("  compiler      %s\n", pwi_parts_compiler());
  printf("  architecture  %s\n", pwi_parts_architecture());
  printf("  features     ");
  for (size_t i = 0; i < PWI_FEATURES; i++)
    if (features[i].present) printf(" %s", features[i].name);
  printf("\n  libraries    ");
  for (size_t i = 0; i < PWI_PARTS; i++)
    if (*parts[i].version) printf(" %s %s%s", parts[i].name, parts[i].version, i + 1 < PWI_PARTS ? "," : "");
  printf("\n");
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  bool json;
  int exit_code;
  if (!pwi_cli_only_json(command, argc, argv, &json, &exit_code)) return exit_code;
  if (json) return print_as_json(command);
  print_for_people();
  return PWI_EXIT_OK;
}

static const struct pwi_cli_option options[] = {PWI_CLI_JSON, {0}};

const struct pwi_command pwi_command_version = {
    .name = "version",
    .summary = "print the versions of pawl and its libraries",
    .text = "Prints the version of pawl, the protocol versions it speaks (nodes need one in\n"
            "common), the compiler, the processor features it uses, and the versions of the\n"
            "loaded libraries.\n",
    .options = options,
    .run = run,
};
