# What tests of `pawl train` share: runs that last long enough to be disturbed. Read after scene.sh with `.`; not run by itself.
#
#   $long      the words after `pawl` of such a run, without its model and log
#   $trainer   the process that set_out has started
#   $victim    the worker that strike has killed
# shellcheck shell=sh

# figure NAME: of the object in out.
figure() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" out | head -n 1; }

# children PID WORD: processes of `pawl WORD` that PID has started.
children() {
  for folder in $(grep -ls "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status); do # one grep: a run may be short
    folder=${folder%/status}
    [ "$(tr '\0' '\n' <"$folder/cmdline" 2>/dev/null | sed -n 2p)" = "$2" ] || continue
    echo "${folder#/proc/}"
  done
}

# set_out NAME ARGUMENT…: trains in the background, to NAME.model and with NAME.jsonl; returns when rounds are being done.
set_out() {
  name=$1
  shift
  rm -f "$name.jsonl"
  # shellcheck disable=SC2086,SC2154 # several words, which the test has set
  "$pawl" $long -o "$name.model" --log "$name.jsonl" "$@" >"$name.out" 2>"$name.log" &
  trainer=$!
  pids="$pids $trainer"
  eventually test -s "$name.jsonl" || fail "$name does not begin"
}

# ends CODE: how what was set out ended.
ends() {
  code=0
  wait "$trainer" || code=$?
  [ "$code" -eq "$1" ] || fail "$name ends with $code, not $1: $(cat "$name.out")"
}

# strike SOON NAME ARGUMENT…: sets out, and kills a worker, $victim, before more than SOON rounds are done. The run
# is short: it stands still meanwhile, but not for so long that it is missed. On a busy machine it may have gone
# further before; then another is set out.
strike() {
  soon=$1
  shift
  tries=50
  while set_out "$@"; do
    kill -STOP "$trainer" 2>/dev/null || true
    victim=$(sed -n 's/^worker \([0-9][0-9]*\) at .* joined.*/\1/p' "$name.log" | head -n 1)
    [ -n "$victim" ] || fail "$name does not name its workers"
    kill -KILL "$victim" 2>/dev/null || true
    if [ "$(lines_of "$name.jsonl")" -le "$soon" ]; then break; fi
    kill -KILL "$trainer" 2>/dev/null || true
    wait "$trainer" 2>/dev/null || true
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "$name is always over before a worker is killed"
  done
  kill -CONT "$trainer"
}

lines_of() { wc -l <"$1" | tr -d ' '; }

# goes_on FILE: more rounds are being done.
goes_on() {
  before=$(lines_of "$1")
  eventually sh -c "[ \"\$(wc -l <$1)\" -gt $((before + 3)) ]" || fail "$1 does not grow"
}
