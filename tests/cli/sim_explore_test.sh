#!/bin/sh
# All orders of small scopes from the command line: what is printed, what is found, and the replay of one order.
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

# A bound is not the end, and the output says which of the two it was.
expect 0 "$pawl" sim explore --states 200
for scenario in handover move fill retire barrier; do said "$scenario: "; done
said 'explored 200 states in .* runs'
said 'bound reached.*, not exhausted'
expect 0 "$pawl" sim explore --scenario handover --crash 1 --states 300 --json
said '"scenario":"handover","servers":2,"replicas":1,"clients":2,"pushes":3,"crash":1,'
said '"exhausted":false,"failed":false,"states":300,'

# One order: every choice in a line, the log, and the end.
expect 0 "$pawl" sim explore --scenario handover --replay 0,1,0
said 'w0   -> m     ask'
said 'no invariant was violated'
complained 'move.done'
expect 1 "$pawl" sim explore --scenario handover --replay 60
complained 'does not exist'

# A planted bug is found, and the command that is printed shows it again.
expect 1 "$pawl" sim explore --bug skip_order
complained 'no planted bugs'
expect 1 "$planted" sim explore --scenario move --bug skip_order
said 'failed.*: '
said 'makes its next call'
again=$(sed -n 's/.*to replay it: pawl-planted //p' "$work/out" | head -n 1)
what=$(sed -n 's/.*failed[^:]*: //p' "$work/out" | head -n 1)
# shellcheck disable=SC2086
expect 1 "$planted" $again
grep -q -F -e "$what" "$work/out" || fail "'$again' does not show '$what' but: $(cat "$work/out")"
expect 1 "$planted" sim explore --scenario move --bug skip_order --json
said '"failed":true,.*"failure":".*"replay":"pawl-planted sim explore --scenario move .*--bug skip_order --replay [0-9,]*"'

# refuses HINT ARGUMENT…
refuses() {
  hint=$1
  shift
  expect 2 "$pawl" sim explore "$@"
  complained "$hint"
}
refuses "unknown scenario 'typo'" --scenario typo
refuses 'number from 2 to 3' --servers 4
refuses 'number from 0 to 2' --replicas 3
refuses 'number from 1 to 6' --pushes 0
refuses 'number from 0 to 1' --crash 2
refuses 'number from 0 to 1' --reset 2
refuses 'number from 1 to 2' --clients 3
refuses 'number from 0 to 7' --early x
refuses 'number from 1 to' --states 0
refuses 'numbers with commas' --scenario move --replay 1,,2
refuses 'needs --scenario' --replay 1
refuses "unknown bug 'typo'" --bug typo
expect 1 "$pawl" sim explore --scenario fill --servers 2
complained 'does not fit'
