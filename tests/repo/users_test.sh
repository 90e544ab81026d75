#!/bin/sh
# Every function of the public headers has a user in the tree besides tests and examples: an application, the command,
# a benchmark or the Python package. Functions without such a user stand in docs/api.md under "Kept for programs", and
# the list there has no others.
set -eu
cd "$PAWL_SOURCE"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C

# <pawl/function.h> and <pawl/row_function.h> declare functions that a program defines.
find include/pawl -name '*.h' ! -name '*function.h' -print0 | xargs -0 grep -hE '^PAWL_API' | grep -oE 'pawl_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$folder/offered"
# A function's definition begins at the start of a line, and is no use of it. An init function is inline, and uses the
# one with _sized.
find apps src/cli bench python \( -name '*.[ch]' -o -name '*.py' \) ! -name '*_test.[ch]' ! -path '*/examples/*' -print0 |
  xargs -0 grep -hE '^([ #]|.*[={(].*pawl_|static .*pawl_.*;)' | grep -oE '\bpawl_[a-z0-9_]+' |
  sed -E 's/^(.*_init)$/\1\n\1_sized/' | sort -u >"$folder/used"
sed -n '/^## Kept for programs/,/^## /p' docs/api.md | grep -oE '`pawl_[a-z0-9_]+`' | tr -d '`' | sort -u >"$folder/kept"

comm -23 "$folder/offered" "$folder/used" >"$folder/unused"
comm -23 "$folder/unused" "$folder/kept" | sed 's/$/: no user, and not in docs\/api.md, "Kept for programs"/' >"$folder/wrong"
comm -13 "$folder/unused" "$folder/kept" | sed 's/$/: listed in docs\/api.md, "Kept for programs", but has a user or is gone/' >>"$folder/wrong"
if [ -s "$folder/wrong" ]; then
  cat "$folder/wrong"
  exit 1
fi
echo "$(wc -l <"$folder/offered") functions, $(wc -l <"$folder/kept") of them kept for programs"
