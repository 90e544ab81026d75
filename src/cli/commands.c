/* All commands, and the options of `pawl` itself. */
#include "cli/cli.h"

#define LETTER_VERSION 257

const char pwi_cli_program[] = "pawl";

const struct pwi_command *const pwi_cli_commands[] = {
    &pwi_command_demo,       &pwi_command_env,
    &pwi_command_version,    &pwi_command_manager,
    &pwi_command_server,     &pwi_command_relay,
    &pwi_command_status,     &pwi_command_get,
    &pwi_command_put,        &pwi_command_key,
    &pwi_command_bench,      &pwi_command_checkpoint,
    &pwi_command_sim,        &pwi_command_sketch,
    &pwi_command_graph,      &pwi_command_train,
    &pwi_command_worker,     &pwi_command_predict,
    &pwi_command_recommend,  &pwi_command_model,
    &pwi_command_convert,    &pwi_command_lda,
    &pwi_command_vector,     &pwi_command_space,
    &pwi_command_completion, NULL,
};

const struct pwi_cli_option pwi_cli_root_options[] = {
    {LETTER_VERSION, "version", NULL, "print the versions, as 'pawl version' does"},
    {0},
};
