#!/bin/sh
# Training under mpirun: the first process is the scheduler, the others are workers.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

if ! command -v mpirun >/dev/null; then
  echo 'skipped: there is no mpirun here'
  exit 77
fi
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
if ! timeout 60 mpirun --oversubscribe --host localhost:3 -n 3 true 2>err; then
  echo "skipped: mpirun does not work here: $(cat err)"
  exit 77
fi

awk 'BEGIN {
  srand(3)
  for (i = 0; i < 300; i++) { a = rand(); b = rand(); print (a > b ? "+1" : "-1"), "1:" a, "2:" b }
}' >data.svm

# Which process would be what.
timeout 400 mpirun --oversubscribe --host localhost:3 -n 3 "$pawl" env --json >out
[ "$(grep -c '"role":"scheduler"' out)" -eq 1 ] || fail "one scheduler, not: $(cat out)"
[ "$(grep -c '"role":"worker"' out)" -eq 2 ] || fail "two workers, not: $(cat out)"

expect 0 mpirun --oversubscribe --host localhost:3 -n 3 "$pawl" train logistic data.svm -o launched.model --json --log log.jsonl
[ "$(grep -c '"objective":' out)" -eq 1 ] || fail "one result, not: $(cat out)"
[ -s launched.model ] || fail 'there is no model'
grep -q '"workers":2' log.jsonl || fail "two workers, not: $(cat log.jsonl)"
for left in .pawl-*; do [ ! -e "$left" ] || fail "$left is left behind"; done

# The same as without it.
accuracy=$(sed -n 's/.*"accuracy":\([^,}]*\).*/\1/p' out)
expect 0 "$pawl" train logistic data.svm -o alone.model --workers 2 --json
said "\"accuracy\":$accuracy,"

# Workers that average: no server is started, and they find one another as in any other run.
# Images of 16 x 16 pixels with a bright bar, whose place is the label.
python3 - <<'END'
import random, struct
random.seed(7)
labels = bytes(random.randrange(4) for _ in range(120))
pixels = bytes(random.randrange(120) + (110 if at // 64 == label else 0) for label in labels for at in range(256))
open('images', 'wb').write(struct.pack('>4I', 0x803, 120, 16, 16) + pixels)
open('labels', 'wb').write(struct.pack('>2I', 0x801, 120) + labels)
END
launch() { expect 0 mpirun --oversubscribe --host localhost:4 -n 4 "$pawl" "$@"; }
launch train svm data.svm --method sgd --share reduce --graph root --passes 10 -o svm.model --json
said '"share":"reduce","workers":3,"workers_lost":0'
expect 0 "$pawl" predict svm.model data.svm
launch train cnn --model lenet images labels --epochs 2 --batch 16 --rate 0.001 --share reduce --graph complete -o net.model --json
said '"steps":16,.*"share":"reduce","workers":3,"workers_lost":0'
launched=$(sed -n 's/.*"loss":\([^,}]*\).*/\1/p' out)
expect 0 "$pawl" train cnn --model lenet images labels --epochs 2 --batch 16 --rate 0.001 -o alone.model --json
awk -v a="$launched" -v b="$(sed -n 's/.*"loss":\([^,}]*\).*/\1/p' out)" 'BEGIN { d = a - b; exit !(d * d < 1e-6) }' ||
  fail "the loss is $launched under mpirun, but: $(cat out)"
for mode in bsp notify-ack async; do
  launch train cnn --model lenet images labels --epochs 1 --batch 16 --share servers --mode $mode -o net.model --json
  said '"share":"servers","workers":3,"workers_lost":0'
done
for left in .pawl-*; do [ ! -e "$left" ] || fail "$left is left behind"; done

# The number of workers is the launcher's.
expect 2 mpirun --oversubscribe --host localhost:3 -n 3 "$pawl" train logistic data.svm --workers 2
complained 'omit --workers'
# What the first one finds wrong ends them all.
expect 1 mpirun --oversubscribe --host localhost:3 -n 3 "$pawl" train logistic nowhere.svm
complained 'nowhere.svm'
