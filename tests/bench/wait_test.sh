#!/bin/sh
# `pawl-bench wait` prints one object for each bound, draws them, and says the same each time.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
measure() { "$PAWL_BENCH" wait --blocks 4 --workers 2 "$@"; }

fail() {
  echo "$1"
  shift
  cat "$@"
  exit 1
}

measure --tau 0,4,inf --json --svg "$folder/a.svg" >"$folder/one"
measure --tau 0,4,inf --json --svg "$folder/b.svg" >"$folder/two"
cmp -s "$folder/one" "$folder/two" || fail 'the same seed gives other figures:' "$folder/one" "$folder/two"
cmp -s "$folder/a.svg" "$folder/b.svg" || fail 'or another picture' "$folder/a.svg"
[ "$(wc -l <"$folder/one")" -eq 3 ] || fail 'there is not one object for each bound:' "$folder/one"
for field in '"bench":"wait"' '"wait_pct":' '"compute_s":' '"total_s":' '"iterations":'; do
  [ "$(tr -d ' ' <"$folder/one" | grep -c "$field")" -eq 3 ] || fail "$field is missing:" "$folder/one"
done
tr -d ' ' <"$folder/one" | grep -q '"tau":"inf"' || fail 'no bound has no name:' "$folder/one"
grep -q '^<svg' "$folder/a.svg" || fail 'the picture has no beginning:' "$folder/a.svg"
grep -q '^</svg>' "$folder/a.svg" || fail 'the picture has no end:' "$folder/a.svg"
measure --tau 2,adaptive --by-worker >"$folder/table"
grep -q '^adaptive .*the last bound is' "$folder/table" || fail 'the adaptive bound is missing:' "$folder/table"
[ "$(grep -c 'worker *[01]: computing' "$folder/table")" -eq 4 ] || fail 'a worker is missing:' "$folder/table"
grep -q 'waiting   computing' "$folder/table" || fail 'there is no table:' "$folder/table"

for bad in '' ',' '1,,2' '1,' -1 many 1e3 0,99999999999 adaptive,adapt; do
  code=0
  measure --tau "$bad" >"$folder/out" 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "--tau '$bad' is taken: exit code $code" "$folder/out"
done
if measure --tau 0 --svg "$folder/no/such/folder.svg" >"$folder/out" 2>&1; then
  fail 'a picture that cannot be written is not missed:' "$folder/out"
fi
