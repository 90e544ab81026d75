#!/bin/sh
# `pawl-bench checkpoint` runs in a small size and prints the line that is promised. No figure is judged.
# timeout: 120
set -eu
bench=${PAWL_BENCH:?the path of pawl-bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PAWL_ADDRESS PAWL_KEY PAWL_KEY_FILE PAWL_LOG_LEVEL

fail() {
  echo "$*" >&2
  if [ -s "$work/err" ]; then cat "$work/err" >&2; fi
  exit 1
}

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'
mkdir "$work/saved"

run() {
  "$bench" checkpoint --gigabytes 0.04 --seconds 0.1 --rounds 2 --dir "$work/saved" "$@" \
    >"$work/out" 2>"$work/err" || fail "'$*' exits with $?"
  [ -z "$(ls "$work/saved")" ] || fail "something is left: $(ls "$work/saved")"
}

run --json
said='^{"bench":"checkpoint","servers":2,"bytes":[0-9]*'
for name in save_gbps load_gbps rate rate_reached rounds push_gbps push_gbps_saving slowdown extra_cpu; do
  said="$said,\"$name\":$number"
done
grep -q -e "$said}\$" "$work/out" || fail "no such line in: $(cat "$work/out")"
run --servers 1
grep -q 'in the median of 2 rounds' "$work/out" || fail "no such words in: $(cat "$work/out")"

for wrong in '--servers 0' '--gigabytes 0' '--rounds 0' '--rounds 1000' '--rate fast' '--dir here' 'word'; do
  code=0
  # shellcheck disable=SC2086
  "$bench" checkpoint $wrong >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq 2 ] || fail "'$wrong' exits with $code"
done
