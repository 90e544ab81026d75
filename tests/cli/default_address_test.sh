#!/bin/sh
# No command that is told of no cluster counts into one of its own while there is one at the usual address; and where it does, it
# says so. Counts that are too large to be told are told as bounds.
# alone: yes
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

printf 'a\nb\na\n' >lines
expect 0 "$pawl" sketch insert --from lines --top 2 --timeout 60
complained 'no sketch given'
complained "temporary cluster"
expect 0 "$pawl" sketch insert test/s --from lines --top 2 --local --timeout 60
! grep -q "temporary" err || fail "it was told to: $(cat err)"

"$pawl" manager --http none --data none --replicas 0 >manager.log 2>&1 &
manager=$!
pids="$pids $manager"
listens() { grep -q 'listens on' manager.log; }
listens_or_ends() { listens || is_gone "$manager"; }
eventually listens_or_ends || fail 'the manager neither listens nor ends'
listens || { echo 'the usual port is taken'; exit 77; }
start server "$pawl" server --join 127.0.0.1:7295 --http none
expect 0 "$pawl" sketch create test/s --timeout 60
expect 0 "$pawl" sketch insert test/s --from lines --timeout 60
! grep -q "temporary" err || fail "it counts elsewhere: $(cat err)"
expect 0 "$pawl" sketch query test/s a --timeout 60
said '^a 2 '
expect 0 "$pawl" sketch insert test/s --from lines --local --timeout 60
expect 0 "$pawl" sketch query test/s a --timeout 60
said '^a 2 '

# Training goes on with servers of its own, and says so.
printf '1 1:1\n-1 2:1\n1 1:2 3:1\n-1 2:2\n' >data.svm
expect 0 "$pawl" train logistic data.svm -o data.model --timeout 60
complained 'starting a temporary cluster; .* --cluster 127.0.0.1:7295'

# Beyond 2^63 - 1.
printf 'x\t9223372036854775807\nx\t10\ny\t5\n' >heavy
expect 0 "$pawl" sketch insert test/s --from heavy --weights --timeout 60
expect 0 "$pawl" sketch query test/s x --timeout 60
said '^x at least 9223372036854775807'
expect 0 "$pawl" sketch query test/s x --timeout 60 --json
said '"capped": *true'
expect 0 "$pawl" sketch query test/s y --timeout 60 --json
said '"capped": *false'
expect 0 "$pawl" sketch top test/s --timeout 60
said '9223372036854775807 or more  x'

kill -KILL "$manager"
wait "$manager" 2>/dev/null || true
expect 0 "$pawl" sketch insert test/s --from lines --timeout 60
complained 'no cluster answers at 127.0.0.1:7295'
