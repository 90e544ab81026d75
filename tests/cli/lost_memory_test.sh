#!/bin/sh
# All processes of a cluster are stopped and started again: the manager remembers who was there, and what was in memory is gone.
# Every command says so, and how to begin anew; and a time-out is one.
# cost: 45
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
always='--http none'

begin() {
  start manager "$pawl" manager --listen 127.0.0.1:0 --data "$work/log"
  PAWL_ADDRESS=$(address_of manager)
  export PAWL_ADDRESS
  start one "$pawl" server --join "$PAWL_ADDRESS"
  one=$started
  start two "$pawl" server --join "$PAWL_ADDRESS"
  two=$started
}
kill_all() {
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  pids=
}
is_ready() { "$pawl" status $patience | grep -q ': ready'; }

begin
expect 0 "$pawl" put $patience demo/w --create --size 1000 17=0.5
expect 0 "$pawl" sketch create $patience demo/s
expect 0 "$pawl" checkpoint save $patience "$work/saved"
awk 'BEGIN { for (i = 1; i <= 200; i++) print (i % 2 ? "1 1:1 3:1" : "-1 2:1 3:1") }' >data.svm
awk 'BEGIN { for (i = 1; i <= 20; i++) print "apple pear plum apple", "wheel brake gear wheel" }' >data.txt
echo thing >things
kill_all
begin
waits() { "$pawl" status $patience | grep -q 'arcs wait for'; }
# Before both are marked down, clients do not know whom they wait for.
both_down() { [ "$("$pawl" status $patience | grep -c '^ *[0-9]* down ')" -eq 2 ]; }
eventually both_down || fail "not both are down: $("$pawl" status)"
eventually waits || fail "nobody waits: $("$pawl" status)"

# Every command says it, once, with the way out. Those that need the data fail, and keep their time-out.
# A command that waited for the data for ever would be ended by `expect`, with another exit code.
says_so() {
  gives_up 'have the only copy' "$@"
  is_told
  ! grep -q 'goes on' err || fail "nothing goes on: $(cat err)"
}
is_told() {
  complained 'have the only copy'
  complained 'pawl server forget --all-lost'
  complained 'pawl checkpoint load DIR --lose-data'
  [ "$(grep -c 'all-lost' err)" -eq 1 ] || fail "it is said more than once: $(cat err)"
}
says_so "$pawl" put demo/w 17=1 --timeout 2
says_so "$pawl" get demo/w 17 --timeout 2
says_so "$pawl" get demo/w --timeout 2
says_so "$pawl" put demo/more --create --size 10 1=1 --timeout 2
says_so "$pawl" sketch query demo/s x --timeout 2
says_so "$pawl" sketch top demo/s --timeout 2
says_so "$pawl" sketch distinct demo/s --timeout 2
says_so "$pawl" sketch insert demo/s --from things --timeout 2
says_so "$pawl" sketch insert demo/made --from things --timeout 2
says_so "$pawl" checkpoint save "$work/saved" --timeout 2 # 10 s, so that a server may come back
says_so "$pawl" train logistic data.svm --workers 1 --timeout 2
says_so "$pawl" train svm data.svm --workers 1 --timeout 2
says_so "$pawl" train linear data.svm --workers 1 --timeout 2
says_so "$pawl" train lda data.txt --topics 2 --workers 1 --timeout 2
says_so "$pawl" worker --wait 3
says_so "${PAWL_BENCH:-$(dirname "$pawl")/pawl-bench}" kv --cluster "$PAWL_ADDRESS" --seconds 1
gives_up 'give them up with --lose-data' "$pawl" checkpoint load "$work/saved" --timeout 2
complained 'have the only copy'

# The manager answers for itself: these do what they are asked, and say it too.
for words in 'vector list' 'vector show demo/w' 'sketch list' 'sketch create demo/t' 'sketch drop demo/t' 'vector delete demo/more --yes'; do
  # shellcheck disable=SC2086 # several words
  expect 0 "$pawl" $words $patience
  is_told
done
expect 0 "$pawl" status $patience
said 'pawl server forget --all-lost'
expect 0 "$pawl" vector list $patience
said 'demo/w'

# Begin anew: with nothing,
expect 0 "$pawl" server forget --all-lost $patience
said 'forgot 2 shards of lost servers'
eventually is_ready || fail "the cluster is not ready: $("$pawl" status)"
expect 0 "$pawl" put $patience demo/w 17=2
expect 0 "$pawl" get $patience demo/w 17
said '17 2'
expect 0 "$pawl" server forget --all-lost $patience --json
said '"forgotten": *0'

# or with what was saved.
kill_all
begin
eventually waits || fail "nobody waits: $("$pawl" status)"
expect 0 "$pawl" checkpoint load "$work/saved" --lose-data $patience
expect 0 "$pawl" get $patience demo/w 17
said '17 0.5'

# A training that is under way when all servers go says whom it waits for.
"$pawl" train logistic data.svm --workers 1 --method subgradient --tolerance 1e-15 --rounds 100000000 $patience \
  -o long.model >train.log 2>&1 &
training=$!
pids="$pids $training"
trains() { "$pawl" status $patience | grep -q '^train/w'; }
eventually trains || fail "nobody trains: $("$pawl" status)"
kill -KILL "$one" "$two"
eventually grep -q 'training waits: .*have the only copy.*pawl server forget --all-lost' train.log ||
  fail "the training is silent: $(cat train.log)"
kill -KILL "$training"

# A server that is only away comes back, and nobody is told to give it up in vain: the call that waited is answered.
kill_all
start manager "$pawl" manager --listen 127.0.0.1:0 --data none --replicas 0
PAWL_ADDRESS=$(address_of manager)
start alone "$pawl" server --join "$PAWL_ADDRESS"
alone=$started
expect 0 "$pawl" put $patience demo/w --create --size 1000 17=0.5
kill -STOP "$alone"
eventually waits || fail "nobody waits: $("$pawl" status)"
"$pawl" put $patience demo/w 17=1 >waited 2>&1 &
waiting=$!
sleep 1
kill -CONT "$alone"
wait "$waiting" || fail "the push did not land: $(cat waited)"
expect 0 "$pawl" get $patience demo/w 17
said '17 1.5'
expect 2 "$pawl" server forget --all-lost 3
expect 2 "$pawl" server forget
