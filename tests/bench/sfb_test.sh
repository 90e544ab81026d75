#!/bin/sh
# Every figure of `pawl-bench sfb` runs in a small size and prints what is promised. The command itself fails if bytes are not
# those of the model, if matrices do not approach one another, or if ways differ without staleness. No time is judged, except
# those of the simulator, which are the same on every machine.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}
small='--classes 60 --features 10 --rows 600 --rate 5'

# field NAME: of each object in `out`.
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" out; }
# holds CONDITION NAME…: an awk condition on the named fields, a b c …, of the last object.
holds() {
  condition=$1
  shift
  values=
  for name; do values="$values $(field "$name" | tail -n 1)"; done
  echo "$values" | awk "{ a = \$1; b = \$2; c = \$3; exit !($condition) }" || fail "not $condition:$values: $(cat out)"
}

# shellcheck disable=SC2086
expect 0 "$bench" sfb --figure time --workers 4 $small --batch 20 --json
[ "$(grep -c '"reached":true,"identical":true' out)" -eq 5 ] || fail "not five objects that have reached: $(cat out)"
holds 'a > 1 && b > 1 && b <= 4.5' matrix_to_factors speedup
cp out before
# shellcheck disable=SC2086
expect 0 "$bench" sfb --figure time --workers 4 $small --batch 20 --json
cmp -s out before || fail 'the same seed gives other figures'
# shellcheck disable=SC2086
expect 0 "$bench" sfb --figure time --workers 4 $small --batch 20 --svg time.svg
said 'The paper leaves open'
said 'all machines identical: yes'
grep -q '^</svg>' time.svg || fail 'the picture has no end'
# shellcheck disable=SC2086
expect 1 "$bench" sfb --figure time --workers 3 $small --rounds 2 --target 0.01
complained 'was not reached'

# shellcheck disable=SC2086
expect 0 "$bench" sfb --figure partial --workers 6 $small --batch 20 --target 0.9 --svg partial.svg --json
[ "$(field degree | tr '\n' ' ')" = '5 4 4 3 3 2 2 1 1 ' ] || fail "other degrees: $(cat out)"
grep -q '^</svg>' partial.svg || fail 'the picture has no end'

expect 0 "$bench" sfb --figure bytes --workers 3 --rows 100 --features 20 --json
[ "$(grep -c '"identical":true' out)" -eq 10 ] || fail "not ten objects with equal matrices: $(cat out)"
expect 1 "$bench" sfb --figure bytes --workers 3 --classes 3 --features 1 --rows 100
complained 'from the model'

# shellcheck disable=SC2086
expect 0 "$bench" sfb --figure disagreement --workers 3 $small --batch 10 --rounds 64
said '^SSP '

expect 0 "$bench" sfb --figure rate --repeats 1 --json
[ "$(grep -c '"of_openblas":' out)" -eq 7 ] || fail "there are not seven sizes: $(cat out)"

expect 0 "$bench" sfb --figure real --workers 2 --classes 5 --features 8 --rows 60 --batch 20 --rate 1 --json
[ "$(grep -c '"way":"factors","workers":2' out)" -eq 4 ] || fail "there are not four stalenesses: $(cat out)"
[ "$(grep -c '"identical":true' out)" -eq 1 ] || fail "the workers of BSP are not identical: $(cat out)"

expect 0 "$bench" sfb --figure large --workers 2 --classes 3000 --batch 30 --json
[ "$(grep -c '"bytes":362184.*"identical":true' out)" -eq 2 ] || fail "commits were not shared by both ways: $(cat out)"
[ "$(field sent | head -n 1)" = 0 ] || fail "a commit in shared memory was sent: $(cat out)"
[ "$(field shown | tail -n 1)" = 0 ] || fail "a commit over TCP was read in place: $(cat out)"

for bad in '' '--figure 9' '--figure time --workers 1' '--figure rate --repeats 0' '--figure time --magnify 0.5'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" sfb $bad
done
