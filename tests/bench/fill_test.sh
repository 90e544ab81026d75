#!/bin/sh
# `pawl-bench fill` runs in a small size and prints the line that is promised. No figure is judged.
# timeout: 120
set -eu
bench=${PAWL_BENCH:?the path of pawl-bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PAWL_ADDRESS PAWL_KEY PAWL_KEY_FILE PAWL_LOG_LEVEL

fail() {
  echo "$*" >&2
  if [ -s "$work/err" ]; then cat "$work/err" >&2; fi
  exit 1
}

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'

run() { "$bench" fill --gigabytes 0.02 --seconds 0.2 "$@" >"$work/out" 2>"$work/err" || fail "'$*' exits with $?"; }

# line SERVERS REPLICAS REPLICAS_MOVED [RATE]
line() {
  said="^{\"bench\":\"fill\",\"servers\":$1,\"shards\":1,\"workers\":1,\"outstanding\":8,\"replicas\":$2,\"transport\":\"auto\""
  said="$said,\"rate\":${4:-null},\"gigabytes\":$number,\"filled_gb\":$number,\"seconds\":$number,\"gb_per_s\":$number"
  said="$said,\"push_gb_per_s_before\":$number,\"push_gb_per_s_during\":$number,\"push_ratio\":$number"
  said="$said,\"longest_pause_ms\":$number,\"heads_moved\":$number,\"replicas_moved\":$3,\"machine\":{.*}}\$"
  grep -q -e "$said" "$work/out" || fail "no such line in: $(cat "$work/out")"
}

run --json
line 2 0 null
run --json --servers 3 --replicas 1
line 3 1 "$number"
run --json --rate 0.5
line 2 0 null 0.5
# So slowly that nothing is pushed while the rate before the join is measured: there is no ratio then, and that is no failure.
run --json --rate 0.0003
grep -q '"push_gb_per_s_before":0.0,.*"push_ratio":null,' "$work/out" || fail "a ratio to nothing: $(cat "$work/out")"
run --rate 0.0003
grep -q 'none ended before' "$work/out" || fail "a ratio to nothing: $(cat "$work/out")"
run --servers 1
grep -q 'filled  *[0-9.]* GB in [0-9.]* s' "$work/out" || fail "no table: $(cat "$work/out")"

for wrong in '--servers 0' '--servers 2 --replicas 2' '--gigabytes 0' '--rate 0' '--outstanding 100' '--transport ether' 'word'; do
  code=0
  # shellcheck disable=SC2086
  "$bench" fill $wrong >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq 2 ] || fail "'$wrong' exits with $code"
done
"$bench" fill --gigabytes 900 >"$work/out" 2>"$work/err" && fail 'there is no such machine'
grep -q 'GB are free' "$work/err" || fail 'it does not say why'
