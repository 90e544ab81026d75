#!/bin/sh
# `pawl-bench fill` runs in a small size and prints the line that is promised. No figure is judged.
# cost: 25
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'

run() { "$bench" fill --gigabytes 0.02 --seconds 0.2 "$@" >out 2>err || fail "'$*' exits with $?"; }

# line SERVERS REPLICAS REPLICAS_MOVED [RATE]
line() {
  said="^{\"bench\":\"fill\",\"servers\":$1,\"shards\":1,\"workers\":1,\"outstanding\":8,\"replicas\":$2,\"transport\":\"auto\""
  said="$said,\"rate\":${4:-null},\"gigabytes\":$number,\"filled_gb\":$number,\"seconds\":$number,\"gb_per_s\":$number"
  said="$said,\"push_gb_per_s_before\":$number,\"push_gb_per_s_during\":$number,\"push_ratio\":$number"
  said="$said,\"longest_pause_ms\":$number,\"heads_moved\":$number,\"replicas_moved\":$3,\"machine\":{.*}}\$"
  grep -q -e "$said" out || fail "no such line in: $(cat out)"
}

# In so short a time no push may end on a busy machine, and there is no ratio; then it is measured for longer.
run_to_ratio() {
  for seconds in 0.2 2 20 100; do
    run --seconds $seconds "$@"
    grep -q '"push_ratio":null' out || return 0
  done
}
run_to_ratio --json
line 2 0 null
run_to_ratio --json --servers 3 --replicas 1
line 3 1 "$number"
run_to_ratio --json --rate 0.5
line 2 0 null 0.5
# So slowly that nothing is pushed while the rate before the join is measured: there is no ratio then, and that is no failure.
run --json --rate 0.0003
grep -q '"push_gb_per_s_before":0.0,.*"push_ratio":null,' out || fail "a ratio to nothing: $(cat out)"
run --rate 0.0003
grep -q 'none ended before' out || fail "a ratio to nothing: $(cat out)"
run --servers 1
grep -q 'filled  *[0-9.]* GB in [0-9.]* s' out || fail "no table: $(cat out)"

for wrong in '--servers 0' '--servers 2 --replicas 2' '--gigabytes 0' '--rate 0' '--outstanding 100' '--transport ether' 'word'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" fill $wrong
done
"$bench" fill --gigabytes 900 >out 2>err && fail 'there is no such machine'
grep -q 'GB are free' err || fail 'it does not say why'
