#include "cli/train/names.h"

#include <stdio.h>

#include "base/memory.h"
#include "cli/train/paths.h"

int pwi_train_names_init(struct pwi_train_names *names, const struct pwi_train_base *base, bool has_checkpoints,
                         const char **checkpoint) {
  names->output = base->output ? pwi_copy_string(base->output) : pwi_train_path_beside(base->data[0], ".model");
  if (!names->output) return pwi_cli_failure(base->command, "out of memory");
  int size = snprintf(names->checkpoint, sizeof names->checkpoint, "%s.checkpoint", names->output);
  if (size < 0 || (size_t)size >= sizeof names->checkpoint)
    return pwi_cli_failure(base->command, "the name of the model is too long");
  if (!*checkpoint && (base->resume || has_checkpoints)) *checkpoint = names->checkpoint;
  int exit_code = pwi_train_path_output(base->command, names->output);
  return exit_code == PWI_EXIT_OK && *checkpoint ? pwi_train_path_output(base->command, *checkpoint) : exit_code;
}

void pwi_train_names_fini(struct pwi_train_names *names) { pwi_free(names->output); }
