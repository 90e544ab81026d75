#!/bin/sh
# Factorised ratings from the command line: training, what is shown, logged and written, predictions, recommendations,
# checkpoints; good input and bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Ratings of two kinds of users and two kinds of films, some of them as test ratings, in each format.
python3 - <<'END'
import gzip, random
random.seed(3)
rows = []
for user in range(1, 41):
    for film in range(1, 31):
        if random.random() < 0.5 and (user, film) != (1, 2):
            liked = user % 2 == film % 2
            rows.append((user, 10 * film, round(min(5, max(0.5, (4.4 if liked else 1.6) + random.gauss(0, 0.4))) * 2) / 2))
random.shuffle(rows)
test, train = rows[:80], rows[80:]
def write(name, rows, make, head=''):
    open(name, 'w').write(head + ''.join(make(*row) + '\n' for row in rows))
csv = lambda u, i, r: f'{u},{i},{r},1112486027'
head = 'userId,movieId,rating,timestamp\n'
write('all.csv', rows, csv, head)
write('train.csv', train, csv, head)
write('test.csv', test, csv, head)
gzip.open('train.csv.gz', 'wt').write(open('train.csv').read())
write('train.tsv', train, lambda u, i, r: f'{u}\t{i}\t{r}')
write('train.dat', train, lambda u, i, r: f'{u}::{i}::{r}::1')
write('train.mtx', train, lambda u, i, r: f'{u} {i} {r}', f'%%MatrixMarket matrix coordinate real general\n40 300 {len(train)}\n')
open('movies.csv', 'w').write('movieId,title,genres\n' + ''.join(f'{10 * i},"Film, {i}",Drama\n' for i in range(1, 31)))
END

# --- training ----------------------------------------------------------------------------------------------------------------------

short='--rank 4 --iterations 30 --burn-in 5'
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" train bpmf train.csv --test test.csv $short -o films.model --log films.jsonl
said '^done after 30 iterations$'
said '^  rows  *rank 4 for 40 users and 30 items; 20 of 25 samples kept$'
said '^  train RMSE  *0\.[0-9]*, of the mean of all samples; 0\.[0-9]* of the last one alone; [0-9]* ratings$'
said '^  test RMSE  *0\.[45][0-9]*, of the mean of all samples; .* 80 ratings$'
said '^  time  .* sampling with [0-9]* threads*, .* ratings/s$'
said '^  model  *films.model$'
said '^next:  pawl recommend films.model USER$'
complained '^iteration 1/30 (burn-in)  train RMSE [0-9.]*  test RMSE [0-9.]*  .* ratings/s'
complained '^iteration 30/30  train RMSE [0-9.]*  test RMSE [0-9.]*, of the mean [0-9.]*  '
[ "$(wc -l <films.jsonl)" -eq 30 ] || fail 'the log has not thirty lines'
grep -q '"iteration":5,"iterations":30,"burn_in":true,.*"mean_test_rmse":null,' films.jsonl || fail "the log: $(cat films.jsonl)"
grep -q '"iteration":30,"iterations":30,"burn_in":false,.*"mean_test_rmse":0' films.jsonl || fail "the log: $(cat films.jsonl)"

# Any number of threads and any format give the same model; another seed gives another one.
for data in 'train.csv --threads 1' 'train.csv.gz --threads 3' 'train.tsv --threads 2' 'train.dat' \
  'train.mtx --threads 64'; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" train bpmf $data --test test.csv $short -o again.model --quiet
  [ ! -s out ] && [ ! -s err ] || fail 'quiet is not quiet'
  cmp -s films.model again.model || fail "$data gives another model"
done
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf all.csv --test-split 0.1 $short --seed 2 --json --no-train-rmse
said '"model":"all.model","rank":4,"users":40,"items":30,"ratings":[0-9]*,"test_ratings":[0-9]*,"why":"iterations","iterations":30,'
said '"train_rmse":null,"test_rmse":0[0-9.]*,"mean_train_rmse":null,"mean_test_rmse":0'
said '"skipped":0,"duplicates":0,"test_skipped":0,"test_duplicates":0,"test_unknown":0,"resumed":0,"threads":[0-9]*,"kernel":"'
cmp -s films.model all.model && fail 'another seed gives the same model'

# --- models ------------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" model show films.model
said '^rows  *rank 4, for 40 users and 30 items$'
said '^trained  *30 iterations, 5 of them burn-in; alpha 0.915[0-9]*, seed 1$'
said '^test RMSE  *0\.[45]'
expect 0 "$pawl" model show films.model --json
said '"kind":"bpmf","rank":4,"users":40,'

expect 0 "$pawl" predict films.model test.csv
said '^pairs  *80$'
said '^RMSE  *0\.[45][0-9]* on 80 ratings$'
expect 0 "$pawl" predict films.model test.csv -o predictions --json
said '^{"pairs":80,"unknown":0,"skipped":0,"rated":80,"rmse":0\.[45]'
[ "$(awk 'NF == 2 && $1 >= 0.5 && $1 <= 5 && $2 > 0.7' predictions | wc -l)" -eq 80 ] || fail "predictions: $(head -n 3 predictions)"
printf '1,10\n1,20\n77,10\n1,11\n1,10\n' >pairs.csv
expect 0 "$pawl" predict films.model pairs.csv -o -
[ "$(wc -l <out)" -eq 5 ] || fail "not a line for each pair: $(cat out)"
[ "$(sed -n 3p out)" = 'nan nan' ] && [ "$(sed -n 4p out)" = 'nan nan' ] || fail "strangers: $(cat out)"
awk 'NR == 1 { liked = $1 } NR == 2 { exit !(liked > $1 + 1) }' out || fail "tastes: $(cat out)"
complained '2 of 5 pairs name a user or an item that the model does not know, the first at pairs.csv:3'
expect 0 "$pawl" predict films.model pairs.csv
complained 'no known pair has a rating'

expect 0 "$pawl" recommend films.model 1 --top 4 --titles movies.csv
[ "$(wc -l <out)" -eq 5 ] || fail "not four items: $(cat out)"
said '^  *rating  *deviation  item$'
said '^   [45]\.[0-9]*  *[01]\.[0-9]*  [0-9]*  Film, [0-9]*[13579]$'
awk -F, '$1 == 1 { print $2 }' all.csv >rated
expect 0 "$pawl" recommend films.model 1 --top 1000 --json
python3 - <<'END'
import json
answer = json.load(open('out'))
rated = set(open('rated').read().split())
items = [item['item'] for item in answer['items']]
ratings = [item['rating'] for item in answer['items']]
assert answer['user'] == '1' and answer['rated'] == len(rated), answer
assert not rated & set(items) and len(items) == 30 - len(rated), items
assert ratings == sorted(ratings, reverse=True), ratings
END
expect 1 "$pawl" recommend films.model 999
complained "the model does not know the user '999'"
[ ! -s out ] || fail 'an unknown user gets recommendations'
expect 1 "$pawl" recommend films.model 1 --titles nothing.csv
complained 'nothing.csv'
expect 2 "$pawl" recommend films.model 1 --top 0
complained "invalid value '0' for --top; expected a number of items"
expect 2 "$pawl" recommend films.model
complained 'MODEL USER'

# --- checkpoints -------------------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086
"$pawl" train bpmf train.csv --test test.csv --rank 4 --iterations 2000000 --burn-in 5 -o long.model --checkpoint-every 1000000 \
  --log long.jsonl --threads 1 >long.out 2>long.log &
trainer=$!
pids="$pids $trainer"
eventually test -s long.jsonl || fail 'the long run does not begin'
kill -INT "$trainer"
code=0
wait "$trainer" || code=$?
[ "$code" -eq 130 ] || fail "an interrupted run exits with $code"
grep -q 'the unfinished model was saved to long.model; continue with --resume' long.log || fail "no word about the model: $(cat long.log)"
expect 0 "$pawl" model show long.model
[ -s long.model.checkpoint ] || fail 'no checkpoint'
expect 1 "$pawl" train bpmf train.csv --test test.csv --rank 5 --iterations 2000000 --burn-in 5 -o long.model --resume
complained 'cannot resume from long.model.checkpoint: this checkpoint belongs to another training: --rank was 4 and is now 5'
expect 1 "$pawl" train bpmf all.csv --rank 4 --iterations 2000000 --burn-in 5 -o long.model --resume
complained 'this checkpoint belongs to a training with other ratings'
expect 1 "$pawl" train bpmf train.csv -o none.model --resume
complained 'cannot read none.model.checkpoint: No such file'

# A checkpoint at every iteration, whose run is killed on the way: resumed, it gives the model of a run that was not.
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf train.csv --test test.csv --rank 4 --iterations 3000 --burn-in 5 -o whole.model --quiet
"$pawl" train bpmf train.csv --test test.csv --rank 4 --iterations 3000 --burn-in 5 -o killed.model --checkpoint killed.state \
  --checkpoint-every 3 --threads 1 >killed.out 2>killed.log &
trainer=$!
pids="$pids $trainer"
eventually test -s killed.state || fail 'no checkpoint is written'
kill -KILL "$trainer" 2>/dev/null || true
wait "$trainer" || true
expect 0 "$pawl" train bpmf train.csv --test test.csv --rank 4 --iterations 3000 --burn-in 5 -o killed.model --checkpoint killed.state \
  --checkpoint-every 1000 --resume --json
said '"why":"iterations","iterations":3000,'
cmp -s whole.model killed.model || fail 'a resumed run gives another model'

# --- files that cannot be written --------------------------------------------------------------------------------------------------

# refuses CODE TEXT ARGUMENT…: the exit code and the message; no model is written.
refuses() {
  code=$1
  text=$2
  shift 2
  rm -f no.model
  expect "$code" "$pawl" "$@"
  complained "$text"
  [ ! -e no.model ] || fail "'$*' writes a model"
}

# They are found before the first iteration, and no file is destroyed.
refuses 1 'cannot write the log /nonexistent/log: No such file' train bpmf train.csv --log /nonexistent/log -o no.model --quiet
refuses 1 'cannot write the log \.: Is a directory' train bpmf train.csv --log . -o no.model
refuses 1 'cannot write the checkpoint to /nonexistent/' train bpmf train.csv --checkpoint /nonexistent/state -o no.model
cp train.csv data.model
cp train.csv kept.csv
refuses 2 'the model would replace the data in data.model' train bpmf data.model
refuses 2 'the log would replace the data in ./train.csv' train bpmf train.csv --log ./train.csv -o no.model
refuses 2 'the model and the checkpoint cannot both be no.model' train bpmf train.csv --checkpoint no.model -o no.model
refuses 2 'the checkpoint and the log cannot both be x' train bpmf train.csv --checkpoint x --log x -o no.model
cmp -s train.csv kept.csv && cmp -s data.model kept.csv || fail 'data were replaced'
expect 0 "$pawl" train bpmf train.csv --log /nonexistent/log --help
if [ -w /dev/full ]; then
  refuses 1 'cannot write /dev/full: No space left' train bpmf train.csv --checkpoint /dev/full -o no.model
  # shellcheck disable=SC2086
  expect 1 "$pawl" train bpmf train.csv --log /dev/full $short -o logged.model --quiet
  complained 'the log /dev/full is incomplete: No space left'
fi

# A disk that is full later does not end the training. A limit for files stands for it: a checkpoint is first 10,000 bytes
# and then 14,500 and more, the model 12,400.
cat >limited.py <<'END'
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (13400, 13400))
os.execv(sys.argv[1], sys.argv[1:])
END
expect 1 python3 limited.py "$pawl" train bpmf train.csv --test test.csv --rank 16 --iterations 40 --burn-in 10 --keep 2 \
  -o full.model --checkpoint full.state
complained 'cannot write full.state: File too large; training goes on without a new checkpoint'
complained 'full.state: File too large; the model was saved to full.model, but --resume cannot go on from it'
expect 0 "$pawl" predict full.model test.csv

# Ratings that nothing can learn: the model is written, and the exit code tells what it is worth.
awk -F, 'BEGIN { OFS = ","; srand(7) } NR > 1 { $3 = 1 + int(9 * rand()) / 2 } { print }' all.csv >noise.csv
# shellcheck disable=SC2086
expect 3 "$pawl" train bpmf noise.csv --test-split 0.3 $short -o noise.model
said '^NO BETTER THAN GUESSING after 30 iterations$'
complained 'noise.model is NO BETTER THAN GUESSING the mean rating, whose test RMSE is [0-9.]*; try more ratings'
# shellcheck disable=SC2086
expect 3 "$pawl" train bpmf noise.csv --test-split 0.3 $short -o noise.model --json
said '"why":"guessing","iterations":30,'
# shellcheck disable=SC2086
expect 3 "$pawl" train bpmf noise.csv --test-split 0.3 $short -o noise.model --quiet
complained 'noise.model is NO BETTER THAN GUESSING'
[ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] || fail "quiet is not quiet: $(cat out err)"

# --- bad input ---------------------------------------------------------------------------------------------------------------------

(cat train.csv; echo '1,x,nan'; echo 'broken') >bad.csv
lines=$(wc -l <train.csv)
refuses 1 "bad.csv:$((lines + 1)): the rating 'nan' is not finite" train bpmf bad.csv -o no.model
refuses 1 "bad.csv:$((lines + 2)): expected user, item and rating, found 1 field" train bpmf bad.csv --skip-bad 1 -o no.model
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf bad.csv --skip-bad 5 --test test.csv $short -o skipped.model
complained "skipped 2 bad lines, the first: bad.csv:$((lines + 1)): the rating 'nan' is not finite"
(cat train.csv; tail -n 1 train.csv) >twice.csv
refuses 1 "twice.csv:$((lines + 1)): user .* rates item .* again, first at twice.csv:$lines; choose with --duplicates last or mean" \
  train bpmf twice.csv -o no.model
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf twice.csv --duplicates last $short -o twice.model
complained '1 duplicate ratings were replaced by later ones'
printf '1,10,3\nstranger,10,4\n1,stranger,4\n' >strange.csv
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf train.csv --test strange.csv $short -o strange.model
complained 'left out 2 test ratings of unknown users or items, the first: strange.csv:2: user stranger has no training rating'
printf 'stranger,10,4\n1,stranger,4\n' >strangers.csv # nothing is left to compare with
# shellcheck disable=SC2086
expect 0 "$pawl" train bpmf train.csv --test strangers.csv $short -o strangers.model --json
said '"test_ratings":0,"why":"iterations",.*"test_rmse":null,.*"plain_test_rmse":null,.*"test_unknown":2,'
expect 1 "$pawl" recommend strangers.model stranger
complained "the model does not know the user 'stranger': it has no training rating of that user"
refuses 1 'nothing.csv: No such file' train bpmf nothing.csv -o no.model
refuses 1 'the rating .* is not a number\|expected' train bpmf movies.csv -o no.model
refuses 1 'cannot write the model' train bpmf train.csv -o /nonexistent/no.model
refuses 2 'test ratings come from --test or from --test-split, not from both' train bpmf train.csv --test test.csv --test-split 0.1 -o no.model
refuses 2 "invalid value '0' for --rank; expected a rank from 1 to 1024" train bpmf train.csv --rank 0
refuses 2 "invalid value '1' for --test-split; expected a share above 0 and below 1" train bpmf train.csv --test-split 1
refuses 2 "invalid value 'first' for --duplicates; expected refuse, last or mean" train bpmf train.csv --duplicates first
refuses 2 "invalid value 'idx' for --format; expected csv, triples or mtx" train bpmf train.csv --format idx
refuses 2 'the burn-in must be shorter than all iterations' train bpmf train.csv --iterations 5 --burn-in 5
refuses 2 'FILE' train bpmf
refuses 2 'films.model predicts ratings; of the options only' predict films.model test.csv --hash-bits 20
refuses 1 "this is a model of kind 'bpmf', not a linear model" model export films.model -o no.liblinear
refuses 1 "this is a model of kind 'linear', not 'bpmf'\|not a model" recommend train.csv 1
head -c 3000 films.model >cut.model
refuses 1 'cut.model: ' predict cut.model test.csv
