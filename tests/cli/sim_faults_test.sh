#!/bin/sh
# Campaigns from the command line: what they print, what they find, and that a seed gives the same run again.
set -eu
pawl=${PAWL_COMMAND:?the path of the command}
planted=${PAWL_PLANTED_COMMAND:?the path of the command with planted bugs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

# expect CODE COMMAND…: the exit code; what was printed is in $work/out and $work/err.
expect() {
  wanted=$1
  shift
  code=0
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq "$wanted" ] || fail "'$*' exits with $code, not $wanted: $(cat "$work/out" "$work/err")"
}

said() { grep -q -e "$1" "$work/out" || fail "'$1' is not in: $(cat "$work/out")"; }
complained() { grep -q -e "$1" "$work/err" || fail "'$1' is not in: $(cat "$work/err")"; }
hash_of() { sed -n 's/.*"hash":"\([0-9a-f]*\)".*/\1/p' "$work/out"; }

expect 0 "$pawl" sim faults --seeds 1:12 --jobs 2
said '12 seeds in .* per second; 0 failed'
said 'pushes acknowledged'
expect 0 "$pawl" sim faults --seeds 5 --json
said '"seeds":5,"failed":0,'
said '"seeds_per_s":'
said '"pushes":[1-9]'

# One seed again: its campaign, its faults, the log of its nodes; and the same events each time.
expect 0 "$pawl" sim faults --seed 4
said 'seed=4 replicas='
said 'no invariant was violated'
complained 'sim.fault'
complained 'server.joined'
expect 0 "$pawl" sim faults --seed 4 --json
first=$(hash_of)
expect 0 "$pawl" sim faults --seed 4 --json
[ -n "$first" ] || fail "no hash in: $(cat "$work/out")"
[ "$first" = "$(hash_of)" ] || fail "seed 4 gives $first and then $(hash_of)"

# A planted bug is found, and the command that is printed shows it again.
expect 1 "$pawl" sim faults --seeds 3 --bug skip_order
complained 'no planted bugs'
expect 1 "$planted" sim faults --seeds 1:6 --bug skip_order
said 'seed [0-9]* failed at '
again=$(sed -n 's/.*to replay it: pawl-planted //p' "$work/out" | head -n 1)
what=$(sed -n 's/.* failed at //p' "$work/out" | head -n 1)
# shellcheck disable=SC2086
expect 1 "$planted" $again
grep -q -F -e "$what" "$work/out" || fail "'$again' does not show '$what' but: $(cat "$work/out")"
expect 1 "$planted" sim faults --seeds 1:6 --bug skip_order --json
said '"failure":".*"replay":"pawl-planted sim faults --seed [0-9]* --bug skip_order"'

# refuses HINT ARGUMENT…
refuses() {
  hint=$1
  shift
  expect 2 "$pawl" sim faults "$@"
  complained "$hint"
}
refuses 'for --seeds; expected' --seeds 9:3
refuses 'for --seeds; expected' --seeds 0
refuses 'for --seeds; expected' --seeds x:3
refuses 'for --seeds; expected' --seeds 3:
refuses 'expected a whole number' --seed -1
refuses 'replicas from 0 to 2' --replicas 3
refuses 'jobs' --jobs 0
refuses "unknown bug 'typo'" --bug typo
