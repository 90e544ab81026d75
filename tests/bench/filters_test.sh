#!/bin/sh
# `pawl-bench filters` runs in a small size: it prints the lines that are promised, and filters change no objective.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

run() { "$bench" filters "$@" >out 2>err || fail "'$*' exits with $?"; }

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'

# line SCENE FILTER LINK: a line of those begins so.
line() {
  said="^{\"bench\":\"filters\",\"scene\":\"$1\",\"filter\":\"$2\",\"link\":\"$3\",\"bytes\":[0-9]*,\"bytes_out\":[0-9]*"
  said="$said,\"bytes_in\":[0-9]*,\"ratio\":$number,\"saved_pct\":$number,\"objective\":"
  grep -e "$said" out >line || fail "no such line in: $(cat out)"
}

run --json --examples 500 --features 5000 --nonzeros 20 --iterations 5 --svg curve.svg
line keys none tcp
line keys keys shared
line keys keys tcp
line learning none tcp
for filter in keys 'keys | zeros' 'keys | compress(with=zstd)' 'kkt | keys' 'kkt | keys | zeros | compress(with=zstd)'; do
  line learning "$filter" tcp
  grep -q '"objective_off":0.0,.*"violated":0,' line || fail "it does not come to the same: $(cat line)"
done

# What kkt leaves out, iteration by iteration (figure 12 of OSDI'14).
curve="\"left_out_by_iteration_pct\":\[$number,$number,$number,$number,$number\]"
[ "$(grep -c -e "$curve" out)" -eq 2 ] || fail "no curve of five iterations: $(cat out)"
[ "$(grep -c '<polyline' curve.svg)" -eq 2 ] || fail "two chains have kkt: $(cat curve.svg)"
"$bench" filters --examples 50 --features 500 --iterations 1 --svg no/such/folder.svg >out 2>err && fail 'no such folder'

printf '+1 3:1 7:1\n-1 5:1 7:2\n\n+1 3:2\n-1 5:0.5\n' >data
run --data data --iterations 3 --l1 0.5
grep -q '^learning  tcp     kkt | keys ' out || fail "no table: $(cat out)"

printf '+1 3:1\n-1 5=1\n' >data
"$bench" filters --data data >out 2>err && fail 'that is no LIBSVM'
grep -q 'data:2: not in LIBSVM format' err || fail 'it does not say why'
"$bench" filters --data nothing >out 2>err && fail 'there is no such file'

for wrong in '--l1 0' '--l1 1' '--iterations 0' '--nonzeros 0' '--features 0' 'word'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" filters $wrong
done
