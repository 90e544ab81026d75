#!/bin/sh
# There is no manager where a command looks for one: each command says so by itself, soon, once, and with what to do.
# cost: 25
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# once TEXT: what the last command complained of is one line, and that has the text.
once() {
  complained "$1"
  [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
}

command -v python3 >/dev/null || {
  echo 'there is no python3' >&2
  exit 77
}

# A port at which nobody listens, nor can: somebody has it.
python3 -c 'if True:
  import signal, socket
  s = socket.socket()
  s.bind(("127.0.0.1", 0))
  print("has", s.getsockname()[1], flush=True)
  signal.pause()' >holder.log 2>&1 &
holder=$!
pids="$pids $holder"
eventually grep -q '^has' holder.log || fail 'nobody has a port'
port=$(sed -n 's/^has //p' holder.log)

# ask TEXT ARGUMENT…: starts a command in the background, which is to complain once, of TEXT. `asked` waits for all of them:
# each takes seconds, and all take as long as one.
count=0
ask() {
  count=$((count + 1))
  echo "$1" >"text.$count"
  shift
  echo "$*" >"words.$count"
  timeout 400 "$pawl" "$@" >"out.$count" 2>"err.$count" &
  eval "asked$count=\$!"
  pids="$pids $!"
}
asked() {
  i=0
  while [ $i -lt $count ]; do
    i=$((i + 1))
    code=0
    eval "wait \$asked$i" || code=$?
    cp "err.$i" err
    # shellcheck disable=SC2046 # several words
    ! is_cut_short || grep -q -e "$(cat "text.$i")" err || gives_up "$(cat "text.$i")" "$pawl" $(cat "words.$i")
    [ $code -eq 1 ] || fail "a command that was to complain of '$(cat "text.$i")' exits with $code: $(cat "out.$i")"
    once "$(cat "text.$i")"
  done
}

printf '1 2\n' >rows
for command in status 'get a/b' 'put a/b rows' 'vector list' 'sketch list' 'server drain 1' 'server forget 1' \
  'checkpoint save /tmp'; do
  # shellcheck disable=SC2086
  ask "no manager answers at 127.0.0.1:$port" $command --cluster "127.0.0.1:$port"
  # shellcheck disable=SC2086
  ask 'nobody-is-called-that.invalid:7295: unknown host' $command --cluster nobody-is-called-that.invalid:7295
done
asked

# --- somebody else listens there: one that speaks first, one that speaks when asked, and one that hangs up ---

cat >service.py <<'PYTHON'
import socket, sys, threading, time

def serve(connection):
    if sys.argv[1] == "ssh":
        connection.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
    elif sys.argv[1] == "http":
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    time.sleep(0.05)
    connection.close()

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(16)
print("listening at", listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
PYTHON

for service in ssh http silent; do
  python3 service.py "$service" >"$service.log" 2>&1 &
  pids="$pids $!"
  eventually grep -q 'listening at' "$service.log" || fail "$service does not listen"
  other=$(sed -n 's/listening at //p' "$service.log")
  gives_up "the process at 127.0.0.1:$other is not a manager" "$pawl" status --cluster "127.0.0.1:$other"
  once "the process at 127.0.0.1:$other is not a manager"
done

# --- a manager that is about to start is waited for, where a time is given ---

kill -KILL "$holder"
eventually is_gone "$holder" || fail 'the port is not free'
(
  sleep 2
  exec "$pawl" manager --listen "127.0.0.1:$port" --http none --data none >late.log 2>&1
) &
pids="$pids $!"
expect 0 "$pawl" status --cluster "127.0.0.1:$port" --timeout 200
said 'no servers'
expect 1 "$pawl" vector list --cluster "127.0.0.1:$port" --timeout 20
complained 'has no servers yet'
