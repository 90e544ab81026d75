# What tests of the command share: a folder of their own, processes that end with them, and what is expected of a command.
# Read by the tests with `.`; not run by itself.
#
#   $pawl     the path of the command
#   $work     the folder, in which the test is
#   $always   options that `start` gives to every process
#   $patience  options of a command that must get an answer: on a busy machine its own 5 s may pass
# shellcheck shell=sh

pawl=${PAWL_COMMAND:?the path of the command}
work=$(mktemp -d)
pids=
always=
# shellcheck disable=SC2034 # for tests
patience='--timeout 200'
unset PAWL_ADDRESS PAWL_DATA PAWL_KEY PAWL_KEY_FILE PAWL_LOG_LEVEL PAWL_RACK XDG_STATE_HOME

# Ends what the test has started, and nothing else.
finish() {
  for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  chmod -R u+rwx "$work" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
cd "$work"

# fail TEXT…: says it, with the end of what everybody has printed.
fail() {
  echo "$*" >&2
  for log in err *.log; do
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
  timeout 400 "$@" >out 2>err || code=$? # it hangs
  [ "$code" -eq "$wanted" ] || fail "'$*' exits with $code, not $wanted: $(cat out)"
}

said() { grep -q -e "$1" out || fail "'$1' is not in: $(cat out)"; }
complained() { grep -q -e "$1" err || fail "'$1' is not in: $(cat err)"; }

# is_cut_short: the command that `expect` ran had no answer of the manager in its time, in whichever words.
is_cut_short() {
  grep -q -e 'the manager at .* does not answer' -e 'no answer from the manager' -e 'no manager answers' -e 'is not a manager' \
    -e 'has no servers yet' -e 'status of the cluster at ' err
}

# gives_up TEXT COMMAND…: the command, whose time-out is short, exits with 1 and complains of TEXT. On a busy machine
# it may have been cut short before it came to that; then it is run again.
gives_up() {
  text=$1
  shift
  tries=100
  expect 1 "$@"
  until grep -q -e "$text" err || ! is_cut_short; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "'$*' is always cut short: $(cat err)"
    expect 1 "$@"
  done
  complained "$text"
}

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

# eventually COMMAND…: the same, with a limit that only ends a test that hangs, on however busy a machine.
eventually() { within 200 "$@"; }

# start NAME COMMAND…: runs in the background; its pid is in $started, its ready line in NAME.ready, what it prints in NAME.log.
# A server or relay waits for its manager until the test hangs.
start() {
  name=$1
  shift
  case " $* " in *' --join '*) set -- "$@" --join-timeout 200 ;; esac
  : >"$name.ready"
  # shellcheck disable=SC2086 # several options, or none
  "$@" $always --ready-fd 9 >"$name.log" 2>&1 9>"$name.ready" &
  started=$!
  pids="$pids $started"
  eventually grep -q '^ready address=' "$name.ready" || fail "$name is not ready"
}

# The address of what was started under this name.
address_of() { sed -n 's/^ready address=//p' "$1.ready"; }

# Also if nobody has asked yet how it ended.
is_gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }
