/* cmocka, after the headers that it needs, and the parts of the C library that most tests use. */
#ifndef PWI_BASE_TESTING_H
#define PWI_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
