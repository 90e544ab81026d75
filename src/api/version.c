#include <pawl/version.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *pawl_version(void) {
  return TEXT(PAWL_VERSION_MAJOR) "." TEXT(PAWL_VERSION_MINOR) "." TEXT(PAWL_VERSION_PATCH);
}
