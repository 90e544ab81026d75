#!/bin/sh
# A job whose scheduler is killed and started again goes on from its checkpoint, with the same processes as workers.
# timeout: 600
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) { s = 0; line = ""
  for (j = 1; j <= 20; j++) if (rand() < 0.3) { line = line " " j ":1"; s += j % 2 ? 1 : -1 }
  print (s + rand() - 0.5 > 0 ? "1" : "2") line } }' >train.svm

start manager "$pawl" manager --listen tcp://127.0.0.1:0 --http none
cluster=$(address_of manager)
for i in 1 2; do start "server$i" "$pawl" server --join "$cluster" --listen tcp://127.0.0.1:0 --http none; done

# worker NAME ARGUMENT…: in the background; its pid is in $started.
worker() {
  name=$1
  shift
  "$pawl" worker --cluster "$cluster" $patience --listen 127.0.0.1:0 "$@" >"$name.out" 2>"$name.log" &
  started=$!
  pids="$pids $started"
}
worker one
one=$started
worker two
two=$started
worker short --stay 0
short=$started

# By the log, all three work.
long="train logistic train.svm --cluster $cluster $patience --workers 0 --l2 2 --tolerance 1e-15 --rounds 1000000
  --checkpoint saved --checkpoint-every 0.001"
set_out lost
eventually grep -q '"workers":3,' lost.jsonl || fail 'three workers do not meet'
eventually test -s saved/train.json || fail 'no checkpoint'
kill -9 "$trainer"
wait "$trainer" 2>/dev/null || true
eventually is_gone "$short" || fail 'a worker that is not to stay does'
wait "$short" && fail 'a worker that lost its job exits with 0' || [ $? -eq 1 ] || fail 'not 1'
for name in one two; do
  eventually grep -q 'waiting for the job up to 60 s' "$name.log" || fail "$name does not say that it waits"
done

set_out again --resume
eventually grep -q '"workers":2,' again.jsonl || fail 'the workers that stayed do not meet'
kill -INT "$trainer"
ends 130
grep -q 'resuming from round' again.log || fail 'the run begins anew'
for pid in $one $two; do
  wait "$pid" || fail "a worker that stayed exits with $?"
done
"$pawl" model show again.model >/dev/null || fail 'no model'

# Nobody starts the job again.
worker three --stay 0.2
three=$started
set_out last
kill -9 "$trainer"
wait "$trainer" 2>/dev/null || true
wait "$three" && fail 'a worker that waited in vain exits with 0' || [ $? -eq 1 ] || fail 'not 1'
grep -q 'nobody started it again within 0.2 s' three.log || fail "the worker does not say why it ends"
