#!/bin/sh
# `pawl-bench filters` runs in a small size: it prints the lines that are promised, and filters change no objective.
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

run() { "$bench" filters "$@" >"$work/out" 2>"$work/err" || fail "'$*' exits with $?"; }

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'

# line SCENE FILTER LINK: a line of those begins so.
line() {
  said="^{\"bench\":\"filters\",\"scene\":\"$1\",\"filter\":\"$2\",\"link\":\"$3\",\"bytes\":[0-9]*,\"bytes_out\":[0-9]*"
  said="$said,\"bytes_in\":[0-9]*,\"ratio\":$number,\"saved_pct\":$number,\"objective\":"
  grep -e "$said" "$work/out" >"$work/line" || fail "no such line in: $(cat "$work/out")"
}

run --json --examples 500 --features 5000 --nonzeros 20 --iterations 5
line keys none tcp
line keys keys shared
line keys keys tcp
line learning none tcp
for filter in keys 'keys | zeros' 'keys | compress(with=zstd)' 'kkt | keys' 'kkt | keys | zeros | compress(with=zstd)'; do
  line learning "$filter" tcp
  grep -q '"objective_off":0.0,.*"violated":0,' "$work/line" || fail "it does not come to the same: $(cat "$work/line")"
done

printf '+1 3:1 7:1\n-1 5:1 7:2\n\n+1 3:2\n-1 5:0.5\n' >"$work/data"
run --data "$work/data" --iterations 3 --l1 0.5
grep -q '^learning  tcp     kkt | keys ' "$work/out" || fail "no table: $(cat "$work/out")"

printf '+1 3:1\n-1 5=1\n' >"$work/data"
"$bench" filters --data "$work/data" >"$work/out" 2>"$work/err" && fail 'that is no LIBSVM'
grep -q 'data:2: not in LIBSVM format' "$work/err" || fail 'it does not say why'
"$bench" filters --data "$work/nothing" >"$work/out" 2>"$work/err" && fail 'there is no such file'

for wrong in '--l1 0' '--l1 1' '--iterations 0' '--nonzeros 0' '--features 0' 'word'; do
  code=0
  # shellcheck disable=SC2086
  "$bench" filters $wrong >"$work/out" 2>"$work/err" || code=$?
  [ "$code" -eq 2 ] || fail "'$wrong' exits with $code"
done
