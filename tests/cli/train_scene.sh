# What tests of `pawl train` share: runs that last long enough to be disturbed. Read after scene.sh with `.`; not run by itself.
#
#   $long      the words after `pawl` of such a run, without its model and log
#   $trainer   the process that set_out has started
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

lines_of() { wc -l <"$1" | tr -d ' '; }

# goes_on FILE: more rounds are being done.
goes_on() {
  before=$(lines_of "$1")
  eventually sh -c "[ \"\$(wc -l <$1)\" -gt $((before + 3)) ]" || fail "$1 does not grow"
}
