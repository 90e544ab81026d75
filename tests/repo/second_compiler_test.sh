#!/bin/sh
# Reads every source with the compiler that pawl was not built with, under the same warnings, each of them an error. A
# source that was read without a warning is read again when it, any header, the flags or the compiler have changed.
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
if grep -q 'PAWL_HAS_UCX=0' "$flags"; then lacking='^src/net/ucx/ucx_'; else lacking='^$'; fi
# What the install test compiles is a project of its own, and so are programs for MPI.
sources() {
  tools/sources | grep -E '^(src|apps|tests|bench|fuzz)/.*\.c$' | grep -v -e "$lacking" -e '^tests/install/' -e '^bench/mpi/'
}

record=$PAWL_BUILD/second_compiler.read
key=$({ "$compiler" --version; cat "$flags" "$0"; tools/sources | grep '\.h$' | xargs cat; } | sha256sum | cut -d ' ' -f 1)
unread=$(sources | tools/changed "$record" "$key")
echo "$(echo "$unread" | grep -c .) sources to read"

# clang-check is clang without its start for every source, which takes as long as reading one.
version() { "$1" --version | sed -n 's/.*version \([0-9.]*\).*/\1/p'; }
if [ "$compiler" = clang ] && command -v clang-check >/dev/null && [ "$(version clang-check)" = "$(version clang)" ]; then
  # It reads no file of flags, so a shell does.
  # shellcheck disable=SC2016
  echo "$unread" | xargs -r -P 2 -n 100 sh -c \
    'flags=$1; shift; sources=$*; eval "set -- $(tr "\n" " " <"$flags")"; exec clang-check $sources -- "$@"' sh "$flags"
else
  echo "$unread" | xargs -r -P 2 -n 1 "$compiler" "@$flags" -fsyntax-only
fi
mv "$record.new" "$record"
