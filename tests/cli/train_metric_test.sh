#!/bin/sh
# Metrics from the command line: training on rows and on images, classes of rows, the matrix as text; good input and bad.
# timeout: 240
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Rows whose class is in two of eight features, the others are noise; in two formats. Images whose class is the place of a bar.
python3 - <<'END'
import random, struct
random.seed(4)
names = ('cat', '7', '-3')
def row(i):
    x = [random.gauss(0, 2) for _ in range(8)]
    x[0] = i % 3 + random.gauss(0, 0.3)
    x[1] = (i % 3 == 1) + random.gauss(0, 0.3)
    return names[i % 3], x
rows = [row(i) for i in range(360)]
svm = lambda label, x: label + ''.join(f' {3 * i + 1}:{v:.5f}' for i, v in enumerate(x))
csv = lambda label, x: label + ''.join(f',{v:.5f}' for v in x)
write = lambda name, lines: open(name, 'w').write('\n'.join(lines) + '\n')
head = 'kind,' + ','.join('abcdefgh')
write('train.svm', [svm(*r) for r in rows[:300]])
write('test.svm', [svm(*r) for r in rows[300:]])
write('train.csv', [head] + [csv(*r) for r in rows[:300]])
write('bare.csv', [','.join('abcdefgh')] + [csv('', r[1])[1:] for r in rows[300:]])
write('gaps.csv', [head] + [csv(r[0] if i % 10 else '', r[1]) for i, r in enumerate(rows[:300])])
write('none.csv', [head] + [csv('', r[1]) for r in rows[:30]])
write('one.svm', ['1 1:%d' % i for i in range(20)])
write('flat.svm', ['%d 1:3 2:5' % (i % 2) for i in range(20)])
write('easy.svm', ['%d 1:%d' % (i % 2, i % 2 * 100 + i % 10) for i in range(60)])
def images(name, count):
    pixels, labels = b'', b''
    for i in range(count):
        bar = i % 4
        pixels += bytes(random.randrange(200) + (50 if x == 2 * bar else 0) for y in range(8) for x in range(8))
        labels += bytes([bar])
    open(name + '-idx3', 'wb').write(struct.pack('>IIII', 0x803, count, 8, 8) + pixels)
    open(name + '-idx1', 'wb').write(struct.pack('>II', 0x801, count) + labels)
images('bars', 200)
images('more', 40)
END

# --- training ----------------------------------------------------------------------------------------------------------------------

run='--batch 32 --epochs 40'
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" train metric train.svm $run --test test.svm -o rows.model --log rows.jsonl
said '^done.* after [0-9]* epochs$'
said '^  metric  *rank 8 of 8 features; 3 classes, k = 3$'
said '^  pairs  *1200 similar and 1200 dissimilar ones$'
said '^  held-out  *[0-9.]* % of 60 rows by the metric, [0-9.]* % by Euclidean distance, [0-9.]* % by PCA$'
said '^  test  *[0-9.]* % of 60 rows by the metric, [0-9.]* % by Euclidean distance, [0-9.]* % by PCA$'
said '^next:  pawl predict rows.model DATA -o classes.txt$'
complained '^epoch 1/40  objective [0-9.]*  held-out error [0-9.]* %  best [0-9.]* %  .* pairs/s'
grep -q '"epoch":1,"epochs":40,"objective":[0-9.]*,"error":[0-9.]*,"best_error":[0-9.]*,"rate":0\.3,"undone":false' rows.jsonl ||
  fail "the log: $(cat rows.jsonl)"
for threads in 1 3; do
  # shellcheck disable=SC2086
  expect 0 "$pawl" train metric train.svm $run -o again.model --threads $threads --quiet
  if [ -s out ] || [ -s err ]; then fail 'quiet is not quiet'; fi
  cmp -s rows.model again.model || fail "$threads threads give another model"
done
# shellcheck disable=SC2086
expect 0 "$pawl" train metric train.csv $run --rank 4 --k 5 --neighbours 4 --margin 0.4 --weight 1 --seed 2 -o csv.model --json
said '"model":"csv.model","rank":4,"features":8,"rows":300,"classes":3,"k":5,.*"better":true,"advice":null,'
said '"held_out":60,"error":0.*,"euclidean_error":0.*,"pca_error":0.*,"test_rows":0,"test_error":null'
# shellcheck disable=SC2086
expect 0 "$pawl" train metric gaps.csv $run -o gaps.model
said '^  left out  *30 rows without a label$'
"$pawl" train metric bars-idx3 bars-idx1 --rank 60 --batch 16 --test more-idx3 --test more-idx1 -o bars.model --json >out 2>err ||
  [ $? -eq 3 ] || fail 'images are not learned'
said '"features":64,"rows":200,"classes":4,.*"test_rows":40'

# What is no better says so.
expect 3 "$pawl" train metric easy.svm -o easy.model
complained 'easy.model is NO BETTER than Euclidean distance on the held-out rows (0.00 % and 0.00 %); try Euclidean distance: it makes no'
expect 3 "$pawl" train metric easy.svm --rate 1e9 --epochs 2 -o easy.model --json
said '"better":false,.*"undone":2'
complained 'no epoch lowered the objective'

# --- models and classes ------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" model show rows.model
said '^model  *metric for nearest neighbours$'
said '^rank  *8 of 8 features$'
said '^error  *[0-9.]* % of 60 held-out rows, k = 3; [0-9.]* % by Euclidean distance, [0-9.]* % by PCA$'
said '^rows  *300, of 3 classes$'
said '^  *cat  *100$'
expect 0 "$pawl" model show csv.model --json
said '"kind":"metric","rank":4,"features":8,"rows":300,"k":5,.*"classes":\[{"label":"-3","rows":100}'
expect 0 "$pawl" predict rows.model test.svm -o classes.txt --json
python3 - <<'END'
import json
figures, lines = json.load(open('out')), open('classes.txt').read().split()
own = [line.split()[0] for line in open('test.svm')]
wrong = sum(a != b for a, b in zip(lines, own))
assert len(lines) == 60 and figures['judged'] == 60 and figures['wrong'] == wrong and wrong < 15, figures
END
expect 0 "$pawl" predict csv.model bare.csv -o - # no labels
[ "$(grep -c -x -e cat -e 7 -e -3 out)" -eq 60 ] || fail "not a class for each row: $(cat out)"
expect 0 "$pawl" predict csv.model bare.csv
complained 'no row has a label of the model'
expect 0 "$pawl" predict bars.model more-idx3 more-idx1
said '^rows  *40$'
said '^accuracy  '
expect 0 "$pawl" model export csv.model -o matrix.txt --json
said '"format":"text","rank":4,"features":8'
awk 'NF != 8 { exit 1 } END { exit NR != 5 }' matrix.txt || fail "not 5 lines of 8: $(cat matrix.txt)"
printf 'dog 1:1\ncat 99:1\n' >strange.svm
expect 0 "$pawl" predict rows.model strange.svm
said '^unknown labels  *1 rows$'
said '^unknown features  *1 values$'

# --- interruptions -----------------------------------------------------------------------------------------------------------------

"$pawl" train metric train.svm --batch 1 --epochs 100000000 --rate 1e-9 -o long.model --log long.jsonl >long.out 2>long.log &
trainer=$!
pids="$pids $trainer"
eventually test -s long.jsonl || fail 'the long run does not begin'
kill -INT "$trainer" 2>/dev/null || true
code=0
wait "$trainer" || code=$?
if [ "$code" -eq 130 ]; then
  grep -q 'the best model so far was saved to long.model' long.log || fail "no word about the model: $(tail -n 3 long.log)"
else
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || fail "an interrupted run exits with $code: $(tail -n 3 long.log)" # it was over before
fi
expect 0 "$pawl" predict long.model test.svm

# --- bad input ---------------------------------------------------------------------------------------------------------------------

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

refuses 1 "all rows have the same label, '1'" train metric one.svm -o no.model
refuses 1 'all rows are equal' train metric flat.svm -o no.model
head -n 2 train.svm >two.svm
refuses 1 'only 2 rows have a label' train metric two.svm -o no.model
refuses 1 'the rank 9 is above the number of features, 8' train metric train.svm --rank 9 -o no.model
refuses 1 'no row has a label' train metric none.csv -o no.model
(cat train.svm; echo 'cat 1:nan') >bad.svm
refuses 1 'bad.svm:301:' train metric bad.svm -o no.model
refuses 1 'nothing.svm' train metric nothing.svm -o no.model
refuses 1 'cannot write the model to nowhere' train metric train.svm -o nowhere/no.model
grep -q epoch err && fail 'the output is looked at after the work'
refuses 2 'expected a number from 0 to 1' train metric train.svm --margin 2 -o no.model
refuses 2 'expected a fraction from 0.01 to 0.9' train metric train.svm --valid-split 1 -o no.model
refuses 2 'the files are images' train metric bars-idx3 --binary -o no.model
refuses 1 'labels' train metric bars-idx3 -o no.model
refuses 1 'idx' predict bars.model test.svm
refuses 2 'rows.model is a metric; --scores' predict rows.model test.svm --scores -o no.model
refuses 2 'omit --format' model export rows.model --format npy -o no.model
refuses 1 'cannot write nowhere/classes' predict rows.model test.svm -o nowhere/classes
head -c 900 rows.model >cut.model
refuses 1 'cut.model: ' predict cut.model test.svm
