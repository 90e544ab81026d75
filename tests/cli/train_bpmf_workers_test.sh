#!/bin/sh
# Factorised ratings by several workers from the command line: the model is that of one process, by items and by servers; workers
# that die; checkpoints; options that do not fit together.
# timeout: 600
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

python3 - <<'END'
import random
random.seed(3)
rows = [(u, i, (3 if u % 2 == i % 2 else 0) + random.randrange(1, 5) / 2)
        for u in range(120) for i in range(80) if random.random() < 0.3 or u == 0]
random.shuffle(rows)
for name, part in (('train', rows[300:]), ('test', rows[:300])):
    open(name + '.tsv', 'w').write(''.join(f'u{u}\ti{i}\t{r}\n' for u, i, r in part))
open('few.tsv', 'w').write('a\tx\t1\nb\ty\t2\nc\tx\t5\n')
END
bpmf='train bpmf train.tsv --test test.tsv --rank 6 --iterations 24'

# --- the model of one process --------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # several words
expect 0 "$pawl" $bpmf -o alone.model --log alone.jsonl --quiet
for how in '--workers 2' '--workers 3 --variant pull --threads 2' '--share items --workers 1' '--share servers --workers 2' \
  '--workers 1:2' '--workers 2 --servers 2'; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" $bpmf -o shared.model --log shared.jsonl $how
  cmp -s alone.model shared.model || fail "another model with $how"
  [ "$(lines_of shared.jsonl)" -eq 24 ] || fail "the log has not 24 lines with $how"
  rmse='s/.*\("iteration":[0-9]*,\).*\("train_rmse".*\)"seconds".*/\1\2/p'
  [ "$(sed -n "$rmse" alone.jsonl)" = "$(sed -n "$rmse" shared.jsonl)" ] || fail "other errors with $how: $(cat shared.jsonl)"
done
said '^  workers  *2 finished, 0 lost; shared by servers$'
said '^  *[0-9.]* s computing, [0-9.]* s getting rows of others; of all workers together$'
said '^  network  .* sent, .* received by workers$'
# shellcheck disable=SC2086
expect 0 "$pawl" $bpmf -o slack.model --workers 2 --slack 2 --json
said '"share":"items","variant":"push","slack":2,"workers":2,"workers_lost":0,"repeated":0,"wait_seconds":[0-9.]*,'
expect 0 "$pawl" predict slack.model test.tsv

# Workers leave out the test ratings of strangers, too.
(cat test.tsv && printf 'nobody\ti1\t3\nu1\tnothing\t3\n') >strange.tsv
for how in items servers; do
  expect 0 "$pawl" train bpmf train.tsv --test strange.tsv --rank 6 --iterations 24 -o strange.model --workers 2 --share $how --json
  said '"test_ratings":300,.*"test_unknown":2,'
  complained 'left out 2 test ratings of unknown users or items, the first: strange.tsv:301: user nobody has no training rating'
  cmp -s alone.model strange.model || fail "another model with strangers, by $how"
done

# --- losses and interruptions --------------------------------------------------------------------------------------

# The model of a run with many iterations, in which a worker is killed, is that of one process.
many='train bpmf train.tsv --test test.tsv --rank 24 --iterations 400'
# shellcheck disable=SC2086
expect 0 "$pawl" $many -o many.model --quiet
long=$many
for how in items servers; do
  strike 200 killed-$how --workers 2 --share $how
  ends 0
  grep -q "worker $victim at .* was lost" killed-$how.log || fail "no word about the lost worker: $(cat killed-$how.log)"
  grep -q '^  workers  *2 finished, 1 lost' killed-$how.out || fail "the summary: $(cat killed-$how.out)"
  cmp -s many.model killed-$how.model || fail "another model after the loss of a worker with $how"
  [ "$(lines_of killed-$how.jsonl)" -eq 400 ] || fail 'iterations are logged twice'
done

# Ctrl-C saves the model and the state; another number of workers goes on.
long='train bpmf train.tsv --test test.tsv --rank 6 --iterations 100000'
set_out stopped --workers 2 --checkpoint stopped.state
kill -INT "$trainer"
ends 130
grep -q 'the unfinished model was saved to stopped.model; continue with --resume' stopped.log || fail "no word: $(cat stopped.log)"
expect 0 "$pawl" predict stopped.model test.tsv
set_out resumed --workers 3 --checkpoint stopped.state --resume
kill -INT "$trainer"
ends 130
grep -q '"iteration":1,' resumed.jsonl && fail 'a resumed run begins anew'

# --- bad input -----------------------------------------------------------------------------------------------------

# refuses CODE TEXT ARGUMENT…
refuses() {
  code=$1
  text=$2
  shift 2
  # shellcheck disable=SC2086
  expect "$code" "$pawl" $bpmf -o no.model "$@"
  complained "$text"
  [ ! -e no.model ] || fail "'$*' writes a model"
}
refuses 2 "invalid value 'reduce' for --share; expected items or servers" --share reduce
refuses 2 "invalid value 'mail' for --variant; expected push or pull" --workers 2 --variant mail
refuses 2 "invalid value '-1' for --slack; expected a number of iterations, up to 1000000" --workers 2 --slack=-1
refuses 2 'workers always pull from servers; --variant needs --share items' --workers 2 --share servers --variant pull
refuses 2 '--share items uses no servers; omit --servers and --replicas' --workers 2 --share items --servers 2
refuses 2 'several workers have to share rows' --workers 2 --share none
refuses 2 'one process shares nothing' --share none --slack 1
refuses 1 'the rows can be divided among at most 60 workers, but there are 61; use --workers 60' --workers 61
expect 1 "$pawl" train bpmf few.tsv -o no.model --workers 4
complained 'the rows can be divided among at most 3 workers, but there are 4; use --workers 3'
