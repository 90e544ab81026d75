#!/bin/sh
# A server that is dead: what only it had waits for it, until an operator gives it up.
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

is_ready() { "$pawl" status --timeout 1 | grep -q ': ready'; }

# --- three servers, one copy of everything ---

start manager "$pawl" manager --listen 127.0.0.1:0 --first-servers 3 --replicas 0
PAWL_ADDRESS=$(sed -n 's/^ready address=//p' manager.ready)
export PAWL_ADDRESS
for name in first second third; do
  start "$name" "$pawl" server --join "$PAWL_ADDRESS"
done
third=$started
dead=$(sed -n 's/^ready address=//p' third.ready)
within 20 is_ready || fail 'the cluster is not ready'
# shellcheck disable=SC2046
expect 0 "$pawl" put a/w --create --size 1000 $(seq -f %.0f=7 0 999)
expect 1 "$pawl" server forget "$dead"
complained 'is not down'
expect 1 "$pawl" server forget 77
complained 'there is no server 77'
expect 2 "$pawl" server forget

# --- one is dead, and not yet given up ---

kill -KILL "$third"
waits() { "$pawl" status | grep -q '8 arcs wait for a server that is down'; }
within 20 waits || fail 'nobody waits'
expect 0 "$pawl" status --json
said '"waiting":8,'
said '"whole":false'
expect 1 "$pawl" server forget "$dead"
complained 'only copy of 8 arcs, 33.3 % of all keys'
complained 'LOST'
expect 0 "$pawl" status --json
said '"waiting":8,'

# --- given up ---

expect 0 "$pawl" server forget "$dead" --lose-data
said '8 arcs that only it had, 33.3 % of all keys, begin anew'
grep -q 'error manager data.lost begin=' manager.out || fail 'the manager does not say it aloud'
within 20 is_ready || fail 'the cluster is not ready'
expect 1 "$pawl" server forget "$dead" --lose-data
complained 'there is no server'
expect 0 "$pawl" get a/w 0:1000 --limit 0
kept=$(grep -c ' 7$' out) || true
lost=$(grep -c ' 0$' out) || true
[ "$kept" -gt 600 ] || fail "kept $kept"
[ "$lost" -gt 300 ] || fail "lost $lost"
[ $((kept + lost)) -eq 1000 ] || fail "kept $kept, lost $lost"
# shellcheck disable=SC2046
expect 0 "$pawl" put a/w $(seq -f %.0f=1 0 999)
expect 0 "$pawl" get a/w 0:1000 --limit 0
[ "$(grep -c ' 8$' out)" -eq "$kept" ] || fail 'what was kept does not go on'
[ "$(grep -c ' 1$' out)" -eq "$lost" ] || fail 'what was lost does not begin anew'
expect 0 "$pawl" status --json
said '"lost":'
