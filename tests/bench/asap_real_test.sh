#!/bin/sh
# `pawl-bench asap --real` and `pawl-bench reduce` run between a few processes and print the lines that are promised. No
# figure is judged but that notify-ack uses all inputs.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"
bench=${PAWL_BENCH:?the path of pawl-bench}

expect 0 "$bench" asap --figure 8 --real --workers 3 --seconds 0.2
said 'notify-ack .* 100.0 %'
said 'The paper leaves open'
expect 0 "$bench" asap --figure 8 --real --workers 3 --seconds 0.2 --json
[ "$(grep -c '"real":true' out)" -eq 3 ] || fail "there are not three objects: $(cat out)"

set -- --figure 5 --real --workers 2 --examples 600 --features 60 --lambda 5e-3 --batch 5 --rounds 200
expect 0 "$bench" asap "$@" --accuracy 20 --svg real.svg
said 'reduce, complete'
said 'reduce, root'
said 'servers'
said 'MPI_Allreduce'
grep -q '^</svg>' real.svg || fail 'the picture has no end'
expect 1 "$bench" asap "$@" --accuracy 0.00001
said 'was not reached'
expect 2 "$bench" asap --figure 6 --real

expect 0 "$bench" reduce --size 1k --peers 2 --seconds 0.05 --rounds 1 --json
said '"bench":"reduce".*"cpu_us":[0-9.]*[1-9]'
expect 0 "$bench" collective --size 1k --peers 2 --seconds 0.05 --rounds 1 --json
said '"bench":"collective"'
said '"of_memcpy":'
for bad in '--size 3' '--size 1g' '--peers 0' '--peers 64' '--rounds 16'; do
  # shellcheck disable=SC2086
  expect 2 "$bench" reduce $bad
done
