#!/bin/sh
# A manager with a log on disk, killed and started again; logs that it must not begin with; and a server that an operator
# has leave.
# timeout: 120
set -eu
pawl=${PAWL_COMMAND:?the path of the command}
work=$(mktemp -d)
pids=
unset PAWL_ADDRESS PAWL_DATA PAWL_KEY PAWL_KEY_FILE PAWL_LOG_LEVEL XDG_STATE_HOME

# Ends what this script has started, and nothing else.
finish() {
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
  chmod -R u+rwx "$work" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
cd "$work"

fail() {
  echo "$*" >&2
  for log in *.out; do
    if [ -s "$log" ]; then
      echo "--- $log" >&2
      tail -n 20 "$log" >&2
    fi
  done
  exit 1
}

# expect CODE COMMAND…: the exit code; what was printed is in out and err.
expect() {
  wanted=$1
  shift
  code=0
  timeout 60 "$@" >out 2>err || code=$?
  [ "$code" -eq "$wanted" ] || fail "'$*' exits with $code, not $wanted: $(cat err)"
}

said() { grep -q -e "$1" out || fail "'$1' is not in: $(cat out)"; }
complained() { grep -q -e "$1" err || fail "'$1' is not in: $(cat err)"; }

# within SECONDS COMMAND…: tries until it succeeds.
within() {
  left=$(($1 * 10))
  shift
  until "$@" >/dev/null 2>&1; do
    left=$((left - 1))
    [ $left -gt 0 ] || return 1
    sleep 0.1
  done
}

# start NAME COMMAND…: runs in the background; its pid is in $started, and its ready line in NAME.ready.
start() {
  name=$1
  shift
  : >"$name.ready"
  "$@" --http none --ready-fd 9 >"$name.out" 2>&1 9>"$name.ready" &
  started=$!
  pids="$pids $started"
  within 20 grep -q '^ready address=' "$name.ready" || fail "$name is not ready"
}

is_gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }
is_ready() { "$pawl" status --timeout 1 | grep -q ': ready'; }

# --- where the log is ---

start manager "$pawl" manager --listen 127.0.0.1:0
grep -q 'none, it is kept in memory' manager.out || fail 'a manager at any port does not say that it keeps no log'
kill -KILL "$started"

mkdir home
start manager env HOME="$work/home" "$pawl" manager --listen "unix:$work/socket"
log=$(sed -n 's/^ *its log: *//p' manager.out)
[ -f "$log" ] || fail "there is no log at '$log'"
case $log in "$work/home/.local/state/pawl/"*) ;; *) fail "the log is at $log" ;; esac
[ "$(stat -c %a "$log")" = 600 ] || fail 'others can read the log'
kill -KILL "$started"

# --- a cluster, whose manager is killed ---

start manager "$pawl" manager --listen 127.0.0.1:0 --data "$work/deep/data"
manager=$started
address=$(sed -n 's/^ready address=//p' manager.ready)
export PAWL_ADDRESS="$address"
start first "$pawl" server --join "$address"
first=$started
start second "$pawl" server --join "$address" --shards 2
second=$started
within 20 is_ready || fail 'the cluster is not ready'
expect 0 "$pawl" put a/w --create --size 1000 1=1 500=2 999=3
expect 1 "$pawl" manager --listen 127.0.0.1:0 --http none --data deep/data
complained 'another manager uses the log'
complained '--data'

kill -KILL "$manager"
within 10 is_gone "$manager" || fail 'the manager does not die'
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
manager=$started
grep -q 'goes on with cluster' manager.out || fail 'the manager does not say that it goes on'
within 20 is_ready || fail 'the cluster is not ready again'
expect 0 "$pawl" get a/w 1,500,999
printf '1 1\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"
expect 0 "$pawl" put a/w 1=1

# --- logs that are not begun with ---

kill -KILL "$manager"
within 10 is_gone "$manager" || fail 'the manager does not die'
cp deep/data/manager.log good.log
size=$(stat -c %s good.log)
for at in 3 9 20 60 $((size / 2)) $((size - 1)); do
  cp good.log deep/data/manager.log
  byte=$(od -An -tu1 -j "$at" -N 1 good.log)
  # shellcheck disable=SC2059
  printf "\\$(printf %o $((byte ^ 16)))" | dd of=deep/data/manager.log bs=1 seek="$at" conv=notrunc 2>/dev/null
  cp deep/data/manager.log damaged.log
  expect 1 "$pawl" manager --listen "$address" --http none --data deep/data
  complained 'is damaged, or no log'
  cmp -s deep/data/manager.log damaged.log || fail 'a damaged log was changed'
done
echo 'shopping: milk, eggs' >deep/data/manager.log
expect 1 "$pawl" manager --listen "$address" --http none --data deep/data
complained 'is damaged, or no log'
expect 1 "$pawl" manager --listen "$address" --http none --data good.log
complained '--data'
expect 2 "$pawl" manager --data ''
complained 'is empty'

# A log that is new is another cluster, and one that is too old is not believed: the servers wait for theirs.
rm deep/data/manager.log
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
within 20 grep -q 'manager.other.*CLUSTER_OTHER' first.out || fail 'the server does not say that the manager is another one'
kill -KILL "$started"
within 10 is_gone "$started" || fail 'the manager does not die'
head -c 140 good.log >deep/data/manager.log # its first record or two
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
within 20 grep -q 'manager.stopped.*CLUSTER_HISTORY' manager.out || fail 'the manager does not stop'
kill -KILL "$started"
within 10 is_gone "$started" || fail 'the manager does not die'

# --- with the right one everything goes on ---

cp good.log deep/data/manager.log
start manager "$pawl" manager --listen "$address" --data "$work/deep/data"
manager=$started
within 20 is_ready || fail 'the cluster is not ready with its own log'
expect 0 "$pawl" get a/w 1,500,999
printf '1 2\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"

# --- an operator has a server leave ---

expect 1 "$pawl" server drain 77
complained 'there is no server 77'
expect 2 "$pawl" server drain
expect 0 "$pawl" server drain "$(sed -n 's/^ready address=//p' second.ready)" --json
said '"left":true}$'
within 20 is_gone "$second" || fail 'the server that was drained does not end'
code=0
wait "$second" || code=$?
[ "$code" -eq 0 ] || fail "the server that was drained ends with $code"
grep -q 'drained by an operator' second.out || fail 'it does not say why it ends'
expect 0 "$pawl" get a/w 1,500,999
printf '1 2\n500 2\n999 3\n' | cmp -s - out || fail "other values: $(cat out)"
expect 1 "$pawl" server drain 1
complained 'the only one that is up'
is_gone "$first" && fail 'the first server is gone'

# --- all servers are gone for good: a new cluster ---

kill -KILL "$first"
within 20 grep -q 'servers.gone' manager.out || fail 'the manager does not say that all servers are gone'
kill -KILL "$manager"
within 10 is_gone "$manager" || fail 'the manager does not die'
start manager "$pawl" manager --listen "$address" --data "$work/deep/data" --new
manager=$started
[ -f deep/data/manager.log.old ] || fail 'the old log is not there any more'
start third "$pawl" server --join "$address"
within 20 is_ready || fail 'the new cluster is not ready'
expect 1 "$pawl" get a/w 1
complained 'there is no vector'
kill -TERM "$manager"
code=0
wait "$manager" || code=$?
[ "$code" -eq 0 ] || fail "the manager ends with $code"
