#!/bin/sh
# Every figure of `pawl-bench lapser` runs in a small size, simulated and between processes, prints what is promised and
# draws it. The command itself fails if two ways without slack compute different samples. No time is judged, except those
# of the simulator: nothing without slack is faster than the ideal exchange, and slack saves a pull most of its waiting. So is
# the error that slack costs there.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}
small='--users 60 --items 40 --ratings 1500 --rank 4 --iterations 6'

# field WAY SLACK WORKERS NAME: of the object of that case in `out`.
field() {
  sed -n "s/.*\"way\":\"$1\",\"slack\":$2,\"workers\":$3,.*\"$4\":\([^,}]*\).*/\1/p" out
}
less() {
  awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a + 0 < b + 0) }' || fail "$1 is not less than $2: $3"
}

for figure in table 5.1 5.2 5.3 5.4 5.5 5.6 5.7 5.8; do
  # shellcheck disable=SC2086
  expect 0 "$bench" lapser --figure $figure --sim --workers 4 $small --svg sim.svg
  grep -q '^</svg>' sim.svg || fail "the picture of $figure has no end"
  if grep -q nan sim.svg; then fail "the picture of $figure has no numbers"; fi
  said '^push 0 '
done

# shellcheck disable=SC2086
expect 0 "$bench" lapser --figure table --sim --workers 4 $small --json
[ "$(grep -c '"bench":"lapser"' out)" -eq 5 ] || fail "there are not five objects: $(cat out)"
less "$(field hand 0 4 seconds)" "$(field 'push' 0 4 seconds)" 'the ideal and a push'
less "$(field hand 0 4 seconds)" "$(field 'pull' 0 4 seconds)" 'the ideal and a pull'
less "$(field pull 4 4 communication_s)" "$(field pull 0 4 communication_s)" 'waiting with slack and without'
[ "$(field push 0 4 rmse)" = "$(field pull 0 4 rmse)" ] || fail "errors differ without slack: $(cat out)"
cp out before
# shellcheck disable=SC2086
expect 0 "$bench" lapser --figure table --sim --workers 4 $small --json
cmp -s out before || fail 'the same seed gives other figures'

# Workers that pull ask for rows before these are as old as the slack allows: 1.8 % of error here, and 4.1 % when they did not.
expect 0 "$bench" lapser --figure 5.4 --sim --users 400 --items 300 --ratings 20000 --rank 8 --iterations 60 --workers 4 --json
less "$(field pull 8 4 rmse)" "$(awk -v rmse="$(field pull 0 4 rmse)" 'BEGIN { print 1.03 * rmse }')" 'the error with slack 8'

# Between processes: in shared memory, over sockets, by MPI if it is there.
# shellcheck disable=SC2086
expect 0 "$bench" lapser --figure table --rounds 1 --workers 3 $small
said '^hand  *3 '
said '^pull 4 '
said 'in shared memory'
# shellcheck disable=SC2086
expect 0 "$bench" lapser --figure 5.8 --rounds 1 --workers 2 --tcp $small --json
[ "$(grep -c '"transport":"tcp"' out)" -ge 8 ] || fail "there are not enough objects: $(cat out)"

printf '1,1,3\n' >few.csv
expect 1 "$bench" lapser --figure table --data few.csv
expect 1 "$bench" lapser --figure table --data none.csv
grep -q 'none.csv' err || fail 'the missing file is not named'
# shellcheck disable=SC2086
expect 1 "$bench" lapser --figure table --sim --workers 2 $small --svg no/such/folder.svg
for bad in '' '--figure 5.9' '--figure 0' '--figure table --sim --tcp' '--figure table --gigabits 10' \
  '--figure table --workers 1' '--figure table --workers 17' '--figure table --rank 0' '--figure table --rounds 99'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" lapser $bad
done
