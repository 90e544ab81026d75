#!/bin/sh
# Reads every source with the compiler that pawl was not built with, under the same warnings, each of them an error.
# cost: 40
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
tools/sources | grep -E '^(src|apps|tests|bench|fuzz)/.*\.c$' | grep -v -e "$unread" -e '^tests/install/' -e '^bench/mpi/' |
  xargs -P 2 -n 1 "$compiler" "@$flags" -fsyntax-only
