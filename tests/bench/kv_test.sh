#!/bin/sh
# Every case of `pawl-bench kv` runs, in small sizes, and prints the lines that are promised. No figure is judged.
# cost: 40
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

number='-\{0,1\}[0-9][0-9.]*\(e[-+]\{0,1\}[0-9]*\)\{0,1\}'
maybe="\\($number\\|null\\)"

# line CASE OP UNIT WORKERS TRANSPORT: one line of the output, from its first character to its last.
line() {
  said="^{\"bench\":\"kv\",\"case\":\"$1\",\"op\":\"$2\",\"workers\":$4,\"servers\":[0-9]*,\"shards\":[0-9]*"
  said="$said,\"replicas\":[0-9]*,\"outstanding\":$maybe,\"transport\":\"$5\""
  said="$said,\"value\":$number,\"unit\":\"$3\",\"limit\":$maybe,\"p99\":$maybe"
  said="$said,\"cpu_s_per_unit\":$maybe\\(,\"[a-z_]*\":$number\\)*\\(,\"[a-z]*\":\"[a-z0-9]*\"\\)*}\$"
  grep -q -e "$said" out || fail "no line of $1 $2 in: $(cat out)"
}

run() { "$bench" kv --quick --json "$@" >out 2>err || fail "'$*' exits with $?"; }

count() { [ "$(wc -l <out)" -eq "$1" ] || fail "not $1 lines: $(cat out)"; }

run
grep -q '^{"bench":"machine","processor":".*","cores":[1-9].*}$' out || fail "no machine: $(cat out)"
for op in push pull pushpull; do
  line dense4m $op GB/s 1 auto
  line dense16m $op GB/s 1 auto
  line cached1e5 $op Mkeys/s 1 auto
  line cached1e6 $op Mkeys/s 1 auto
done
for op in push pull; do
  line fresh1e6 $op Mkeys/s 1 auto
  line onekey $op us 1 auto
  line onekey64 $op kops/s 1 auto
done
line random1e6 push Mkeys/s 1 auto
grep -q '"case":"random1e6".*"placement":"mixed"}$' out || fail 'no mixed placement'
grep -q '"case":"random1e6".*"placement":"ordered"}$' out || fail 'no ordered placement'
line balance pull max/mean 1 auto
for load in ids zipf; do
  for of in bytes requests; do
    grep -q "\"case\":\"balance\".*\"load\":\"$load\",\"of\":\"$of\"}\$" out || fail "no $of of $load"
  done
done
line memory push ratio 1 auto
line replicas push GB/s 1 auto
line replicas push Mkeys/s 1 auto
line together push GB/s 8 auto
line together push Mkeys/s 8 auto
for of in dense4m cached1e6; do
  grep -q "\"case\":\"together\".*\"ratio\":$number,\"passed_ratio\":$number,\"of\":\"$of\"}\$" out || fail "no ratio of $of"
done
count 32

# Several workers and servers, without shared memory, and one operation only.
run --case dense4m,onekey --op pull --workers 2 --servers 2 --shards 2 --transport tcp
line dense4m pull GB/s 2 tcp
line onekey pull us 2 tcp
count 3

"$bench" kv --quick --case onekey --op push >out 2>err || fail 'no table'
grep -q '^case  *op  *value' out || fail "no head: $(cat out)"
grep -q '^onekey  *push  *[0-9.]* us ' out || fail "no row: $(cat out)"

for wrong in '--case nothing' '--workers 0' '--workers many' '--transport ether' '--seconds -1' '--op poke' 'word'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" kv $wrong
done
"$bench" kv --quick --case onekey --cluster 127.0.0.1:1 >out 2>err && fail 'nobody is there'
grep -q 'pawl-bench kv: cannot ' err || fail 'it does not say why'
