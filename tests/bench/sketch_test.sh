#!/bin/sh
# `pawl-bench sketch` runs in a small size and prints the lines that are promised. No figure is judged, but that nothing is
# lost when a server is killed.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

number='[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'
maybe="\\(null\\|$number\\)"

line() { grep -q -e "$1" out || fail "no line '$1' in: $(cat out)"; }

"$bench" sketch --seconds 0.05 --things 1000 --kill --json >out 2>err || fail "it exits with $?"
line "^{\"bench\":\"sketch\",\"case\":\"redis\",\"incr_per_second\":$maybe,\"hincrby4_per_second\":$maybe}\$"
for name in zipf zipf_all zipf_raw uniform; do
  line "^{\"bench\":\"sketch\",\"case\":\"$name\",\"aggregate\":[a-z]*,\"per_second\":$number,\"peak_per_second\":$maybe,\"memory_per_second\":$maybe,\"memory_ratio\":$maybe,\"incr_ratio\":$maybe,\"bits_per_pair\":$number,\"bits_per_thing\":$number,\"merged\":$number}\$"
done
line "^{\"bench\":\"sketch\",\"case\":\"kill\",\"servers\":3,\"replicas\":1,\"acked\":[0-9]*,\"lost\":0,\"longest_gap_ms\":$number,\"quiet_gap_ms\":$number}\$"

# Without Redis it goes on without.
PATH=/nowhere "$bench" sketch --seconds 0.05 --things 1000 >out 2>err || fail "without redis it exits with $?"
grep -q 'redis-server is not installed' err || fail 'it does not say that Redis is missing'
line 'uniform  *[0-9.]* million/s, at most [0-9.]*,'

for wrong in '--seconds 0' '--things 1' '--transport ether' 'word'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" sketch $wrong
done
"$bench" sketch --seconds 0.05 --things 1000 --data /nowhere >out 2>err && fail 'there is no such folder'
grep -q 'cannot read /nowhere/kosarak' err || fail 'it does not say why'
