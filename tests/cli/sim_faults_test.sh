#!/bin/sh
# Campaigns from the command line: what they print, what they find, and that a seed gives the same run again.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/sim_scene.sh
. "${0%/*}/sim_scene.sh"
verb='sim faults'
hash_of() { sed -n 's/.*"hash":"\([0-9a-f]*\)".*/\1/p' out; }

expect 0 "$pawl" sim faults --seeds 1:12 --jobs 2
said '12 seeds in .* per second; 0 failed'
said 'pushes acknowledged'
expect 0 "$pawl" sim faults --seeds 5 --json
said '"seeds":5,"failed":0,'
said '"seeds_per_s":'
said '"pushes":[1-9]'

# Who interrupts a long run gets what was found until then, and is told how to continue.
"$pawl" sim faults --seeds 3:1000000000 >out 2>err &
pids="$pids $!"
started=$!
eventually grep -q '^SigCgt:.*[2367abef]$' "/proc/$started/status" || fail 'it does not catch SIGINT'
kill -INT "$started"
code=0
wait "$started" || code=$?
[ "$code" -eq 1 ] || fail "an interrupted run exits with $code"
said '^  [0-9]* seeds in .*; 0 failed'
complained "interrupted; continue with --seeds $((3 + $(sed -n 's/^  \([0-9]*\) seeds in .*/\1/p' out))):1000000000"

# One seed again: its campaign, its faults, the log of its nodes; and the same events each time.
expect 0 "$pawl" sim faults --seed 4
said 'seed=4 replicas='
said 'no invariant was violated'
complained 'sim.fault'
complained 'server.joined'
expect 0 "$pawl" sim faults --seed 4 --json
first=$(hash_of)
expect 0 "$pawl" sim faults --seed 4 --json
[ -n "$first" ] || fail "no hash in: $(cat out)"
[ "$first" = "$(hash_of)" ] || fail "seed 4 gives $first and then $(hash_of)"

# A planted bug is found, and the command that is printed shows it again.
expect 1 "$pawl" sim faults --seeds 3 --bug skip_order
complained 'no planted bugs'
expect 1 "$planted" sim faults --seeds 1:6 --bug skip_order
said 'seed [0-9]* failed at '
replays ' failed at '
expect 1 "$planted" sim faults --seeds 1:6 --bug skip_order --json
said '"failure":".*"replay":"pawl-planted sim faults --seed [0-9]* --bug skip_order"'

refuses 'for --seeds; expected' --seeds 9:3
refuses 'for --seeds; expected' --seeds 0
refuses 'for --seeds; expected' --seeds x:3
refuses 'for --seeds; expected' --seeds 3:
refuses 'expected a whole number' --seed -1
refuses 'replicas from 0 to 2' --replicas 3
refuses 'managers from 1 to 3' --managers 4
refuses 'managers from 1 to 3' --managers 0
refuses 'jobs' --jobs 0
refuses "unknown bug 'typo'" --bug typo
