/* The version of pawl. */
#ifndef PAWL_VERSION_H
#define PAWL_VERSION_H

#include <pawl/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0

/* The version of the loaded library, such as "0.1.0". It may be newer than the header. */
PAWL_API const char *pawl_version(void);

#ifdef __cplusplus
}
#endif

#endif
