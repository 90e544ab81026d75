/* The smallest program that uses pawl: prints the version of the library that it runs with. */
#include <pawl/pawl.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  if (strcmp(pawl_status_text(PAWL_OK), "success") != 0) return 1;
  if (pawl_range_size(pawl_range_of(3, 5)) != 2) return 1;
  printf("%s\n", pawl_version());
  return 0;
}
