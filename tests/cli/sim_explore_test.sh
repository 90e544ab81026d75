#!/bin/sh
# All orders of small scopes from the command line: what is printed, what is found, and the replay of one order.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/sim_scene.sh
. "${0%/*}/sim_scene.sh"
verb='sim explore'

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
replays 'failed[^:]*: '
expect 1 "$planted" sim explore --scenario move --bug skip_order --json
said '"failed":true,.*"failure":".*"replay":"pawl-planted sim explore --scenario move .*--bug skip_order --replay [0-9,]*"'

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
