#!/bin/sh
# Every figure of `pawl-bench asap` runs in a small size, prints the lines that are promised, draws them, and says the same
# each time. An accuracy that is out of reach is an error.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
measure() {
  "$PAWL_BENCH" asap --workers 4 --examples 600 --features 60 --lambda 5e-3 --batch 5 --accuracy 3 --seconds 0.1 "$@"
}

fail() {
  echo "$1"
  shift
  cat "$@"
  exit 1
}

# figure FIGURE LINES: two runs print the same objects and pictures, and a table follows.
figure() {
  measure --figure "$1" --json --svg "$folder/a.svg" >"$folder/one"
  measure --figure "$1" --json --svg "$folder/b.svg" >"$folder/two"
  cmp -s "$folder/one" "$folder/two" || fail "figure $1: the same seed gives other figures:" "$folder/one" "$folder/two"
  cmp -s "$folder/a.svg" "$folder/b.svg" || fail "figure $1: or another picture" "$folder/a.svg"
  [ "$(wc -l <"$folder/one")" -eq "$2" ] || fail "figure $1 has not $2 objects:" "$folder/one"
  for field in '"bench":"asap"' "\"figure\":$1" '"graph":' '"mode":' '"rounds":' '"bytes":' '"by_current":'; do
    [ "$(tr -d ' ' <"$folder/one" | grep -c "$field")" -eq "$2" ] || fail "figure $1: $field is missing:" "$folder/one"
  done
  grep -q '^<svg' "$folder/a.svg" || fail 'the picture has no beginning:' "$folder/a.svg"
  grep -q '^</svg>' "$folder/a.svg" || fail 'the picture has no end:' "$folder/a.svg"
  measure --figure "$1" >"$folder/table"
  grep -q 'The paper leaves open' "$folder/table" || fail "figure $1 does not say what the paper leaves open:" "$folder/table"
}
figure 5 4
grep -q 'complete to root: 1.500' "$folder/table" || fail 'bytes are not 3 to 2:' "$folder/table"
figure 6 2
figure 7 3
figure 8 3
grep -q '^notify-ack .* 100.0 %   *100.0 %   *100.0 %   *100.0 %' "$folder/table" || fail 'notify-ack lacks inputs:' "$folder/table"
figure 9 18
grep -q 'takes 10 times as long' "$folder/table" || fail 'there are no stalls:' "$folder/table"
figure 10 18

awk 'BEGIN { for (i = 1; i <= 300; i++) print i % 3 ? 1 : 0, i % 7 + 1 ":1", i % 3 + 10 ":2" }' >"$folder/rows.svm"
measure --figure 5 --data "$folder/rows.svm" --json >"$folder/out" || fail 'a file is not taken:' "$folder/out"
if measure --figure 5 --data "$folder/none.svm" >"$folder/out" 2>&1; then fail 'a missing file is not missed:' "$folder/out"; fi
grep -q 'none.svm' "$folder/out" || fail 'the missing file is not named:' "$folder/out"
if measure --figure 7 --accuracy 0.0001 --rounds 5 >"$folder/out" 2>&1; then fail 'no accuracy is missed:' "$folder/out"; fi
grep -q 'was not reached' "$folder/out" || fail 'it does not say so:' "$folder/out"
if measure --figure 5 --svg "$folder/no/such/folder.svg" >"$folder/out" 2>&1; then
  fail 'a picture that cannot be written is not missed:' "$folder/out"
fi

for bad in '--figure 4' '--figure 11' '--figure x' '--figure 5 --workers 1' '--figure 5 --workers 129' '--figure 5 --lambda 0' \
  '--figure 5 --accuracy -1' '--figure 8 --graph cube' '--figure 9 --stall 2' ''; do
  code=0
  # shellcheck disable=SC2086
  measure $bad >"$folder/out" 2>&1 || code=$?
  [ "$code" -eq 2 ] || fail "'$bad' is taken: exit code $code" "$folder/out"
done
