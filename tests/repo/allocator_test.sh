#!/bin/sh
# Every allocation of the library goes through the allocator that a program may set (<pawl/memory.h>): no source
# of it calls the C library's. Memory that another library has allocated is freed with free, and the line says so.
set -eu
cd "$PAWL_SOURCE"
calls='(malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf|vasprintf|aligned_alloc|posix_memalign|free)'
found=$(find src apps -name '*.[ch]' ! -name '*_test.[ch]' ! -name '*_testing.[ch]' \
          ! -path 'src/cli/*' ! -path 'src/sim/*' ! -path src/base/memory.c -print0 |
        xargs -0 grep -nE "(^|[^A-Za-z0-9_>.])$calls\(" | grep -vE 'free\([^;]*\); /\* allocated by [a-z_]+ \*/' || true)
if [ -n "$found" ]; then
  echo "memory that does not come from the library's allocator:"
  echo "$found"
  exit 1
fi
