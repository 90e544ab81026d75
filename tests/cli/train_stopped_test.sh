#!/bin/sh
# The manager of a temporary cluster is stopped before the workers reach it, for longer than a command waits by itself: they
# go on when it does.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

awk 'BEGIN { srand(7); for (i = 0; i < 400; i++) { line = ""
  for (j = 1; j <= 20; j++) if (rand() < 0.3) line = line " " j ":1"
  print (rand() < 0.5 ? "1" : "2") line } }' >train.svm

# What runs instead of pawl: the first worker stops the manager before it begins.
cat >pawl_and_stop <<'END'
#!/bin/sh
. "$TRAIN_SCENE"
if [ "$1" = worker ] && mkdir "$SCENE/once" 2>/dev/null; then
  manager=$(children $PPID manager)
  kill -STOP "$manager"
  echo "$manager" >"$SCENE/stopped.pid"
fi
exec "$PAWL" "$@"
END
chmod +x pawl_and_stop

SCENE=$PWD PAWL=$pawl TRAIN_SCENE=${0%/*}/train_scene.sh PAWL_COMMAND=$PWD/pawl_and_stop \
  "$pawl" train logistic train.svm --workers 2 --l2 2 --tolerance 1e-15 --rounds 1000000 -o stopped.model \
  --log stopped.jsonl >stopped.out 2>stopped.log &
name=stopped
trainer=$!
pids="$pids $trainer"
eventually test -s stopped.pid || fail 'no worker began'
manager=$(cat stopped.pid)
pids="$pids $manager"
sleep 7 # a command waits 5 s
kill -CONT "$manager"
eventually test -s stopped.jsonl || fail "no round: $(cat stopped.log)"
kill -INT "$trainer"
ends 130
! grep 'ended: exit code' stopped.log || fail 'a worker has given up'
