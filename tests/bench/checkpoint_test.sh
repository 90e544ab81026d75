#!/bin/sh
# `pawl-bench checkpoint` runs in a small size and prints the line that is promised. No figure is judged.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'
mkdir saved

run() {
  "$bench" checkpoint --gigabytes 0.04 --seconds 0.1 --rounds 2 --dir "$work/saved" "$@" >out 2>err || fail "'$*' exits with $?"
  [ -z "$(ls saved)" ] || fail "something is left: $(ls saved)"
}

said='^{"bench":"checkpoint","servers":2,"bytes":[0-9]*'
for name in save_gbps load_gbps rate rate_reached rounds push_gbps push_gbps_saving slowdown extra_cpu; do
  said="$said,\"$name\":$number"
done
for seconds in 0.1 2 20; do # in so short a time no push may end on a busy machine
  run --json --seconds $seconds
  grep -q -e "$said}\$" out && break
done
grep -q -e "$said}\$" out || fail "no such line in: $(cat out)"
run --servers 1
grep -q 'in the median of 2 rounds' out || fail "no such words in: $(cat out)"

for wrong in '--servers 0' '--gigabytes 0' '--rounds 0' '--rounds 1000' '--rate fast' '--dir here' 'word'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" checkpoint $wrong
done
