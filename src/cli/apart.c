#include "cli/apart.h"

#include <string.h>
#include <sys/stat.h>

bool pwi_cli_is_same_file(const char *one, const char *other) {
  struct stat a, b;
  if (strcmp(one, other) == 0) return stat(one, &a) != 0 || S_ISREG(a.st_mode);
  return stat(one, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

int pwi_cli_apart(const struct pwi_command *command, const char *what, const char *written, const char *const *read,
                  size_t count) {
  for (size_t i = 0; written && i < count; i++)
    if (read[i] && pwi_cli_is_same_file(written, read[i]))
      return pwi_cli_usage(command, "the %s would replace the data in %s; choose another name", what, written);
  return PWI_EXIT_OK;
}
