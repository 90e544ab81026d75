#!/bin/sh
# Reads every source with the compiler that pawl was not built with, under the same warnings, each of them an error.
# cost: 25
set -eu
compiler=$1
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: there is no $compiler here"
  exit 77
fi
cd "$PAWL_SOURCE"
flags=$PAWL_BUILD/second_compiler.flags
# Without UCX its headers are lacking too.
if grep -q 'PAWL_HAS_UCX=0' "$flags"; then unread='^src/net/ucx/ucx_'; else unread='^$'; fi
# What the install test compiles is a project of its own, and so are programs for MPI.
sources() {
  tools/sources | grep -E '^(src|apps|tests|bench|fuzz)/.*\.c$' | grep -v -e "$unread" -e '^tests/install/' -e '^bench/mpi/'
}

# clang-check is clang without its start for every source, which takes as long as reading one.
version() { "$1" --version | sed -n 's/.*version \([0-9.]*\).*/\1/p'; }
if [ "$compiler" = clang ] && command -v clang-check >/dev/null && [ "$(version clang-check)" = "$(version clang)" ]; then
  # It reads no file of flags, so a shell does.
  # shellcheck disable=SC2016
  sources | xargs -P 2 -n 100 sh -c \
    'flags=$1; shift; sources=$*; eval "set -- $(tr "\n" " " <"$flags")"; exec clang-check $sources -- "$@"' sh "$flags"
else
  sources | xargs -P 2 -n 1 "$compiler" "@$flags" -fsyntax-only
fi
