#!/bin/sh
# What was trained, and what it was trained on, is never lost: files whose ids begin at 0, formats that cannot say a model, disks that
# are full, names of files that are read.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# rows SEED COUNT FIRST: rows of two classes, with features numbered from FIRST. The first of them is in every other row.
rows() {
  awk -v seed="$1" -v count="$2" -v first="$3" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; i++) {
      line = ""; score = 0
      for (j = 0; j < 12; j++)
        if (j ? rand() < 0.4 : i % 2) { line = line " " (j + first) ":1"; score += (j % 2 ? 1 : -1) }
      print (score + rand() - 0.5 > 0 ? "+1" : "-1") line
    }
  }'
}
rows 1 400 0 >zero.svm
rows 1 400 1 >one.svm
rows 2 100 0 >test.svm
rows 2 100 1 >test_one.svm
grep -v ' 0:1' test.svm >without.svm # a test file in which the id 0 does not occur
grep -v ' 1:1' test_one.svm >without_one.svm

# --- ids that begin at 0 --------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic one.svm --seed 3 --tolerance 1e-8 --workers 1 --json -o one.model
objective=$(figure objective)
expect 0 "$pawl" train logistic zero.svm --seed 3 --tolerance 1e-8 --workers 1 --json -o zero.model
said '"features":12,'
awk -v a="$objective" -v b="$(figure objective)" 'BEGIN { exit !(a - b < a * 1e-3 && b - a < a * 1e-3) }' ||
  fail "the same rows, and another objective: $objective and $(figure objective)"

# Whatever finds the id 0: any number of workers and pieces, every method, a cache.
expect 0 "$pawl" train logistic zero.svm --workers 2 -q -o two.model
"$pawl" convert zero.svm -o zero.cache >/dev/null
expect 0 "$pawl" train svm zero.cache -q -o svm.model
expect 0 "$pawl" train linear zero.svm -q -o linear.model
for method in sgd adagrad ftrl subgradient; do
  expect 0 "$pawl" train logistic zero.svm --method $method -q -o $method.model
done
for name in zero two svm linear sgd adagrad ftrl subgradient; do
  expect 0 "$pawl" model show $name.model --top 20
  said '^features  *12, numbered from 0$'
  said '^  *0  *[-0-9.e]*$'
done

# The same scores as with ids that are one higher, also of data without the id 0.
for data in test without; do
  expect 0 "$pawl" predict zero.model $data.svm --scores -o zero.scores
  if grep -q 'unknown features' out; then fail "unknown features in $data.svm: $(cat out)"; fi
  one=test_one.svm
  [ $data = test ] || one=without_one.svm
  expect 0 "$pawl" predict one.model $one --scores -o one.scores
  paste zero.scores one.scores | awk '{ d = $1 - $2; if (d > 0.02 || d < -0.02) exit 1 }' || fail "other scores of $data.svm"
done

# A model of ids from 1, and data with an id 0, do not fit.
expect 0 "$pawl" predict one.model test.svm
complained 'features with id 0, but those of one.model begin at 1'

# Other formats, there and back, and a start.
for name in m.liblinear m.npy m.model; do
  expect 0 "$pawl" model export zero.model -o "$name"
  case $name in *.liblinear) complained 'feature 0 becomes feature 1' ;; esac
  expect 0 "$pawl" predict "$name" test.svm --scores -o back.scores
  expect 0 "$pawl" predict zero.model test.svm --scores -o zero.scores
  cmp -s back.scores zero.scores || fail "$name has other scores"
  expect 0 "$pawl" train logistic zero.svm --start "$name" -q -o again.model
done
[ "$(sed -n 's/^nr_feature //p' m.liblinear)" -eq 12 ] || fail 'LIBLINEAR should have 12 features'

# Words of a vocabulary are named from the same number on.
for i in 0 1 2 3 4 5 6 7 8 9 10 11; do echo "name$i"; done >names
expect 0 "$pawl" model show zero.model --vocabulary names --top 20
said '^  *0  .*  name0$'
said '^  *11  .*  name11$'

# A file whose feature 0 never occurs is zero-based if somebody says so.
grep -v ' 0:1' zero.svm >sparse.svm
expect 0 "$pawl" train logistic sparse.svm -q -o sparse.model
expect 0 "$pawl" model show sparse.model
said '^features  *11$'
expect 0 "$pawl" train logistic sparse.svm --zero-based -q -o sparse.model
expect 0 "$pawl" model show sparse.model --json
said '"features":12,"zero_based":true'

# --- models that cannot be written where they should ----------------------------------------------------------------------------

# Labels that are not whole cannot be said in LIBLINEAR's format: nobody knows before the data is read.
sed 's/^+1/0.5/' one.svm >half.svm
expect 1 "$pawl" train logistic half.svm -o half.txt
complained "half.txt: LIBLINEAR's labels are whole numbers"
complained 'the model was saved to half.txt.rescued'
expect 0 "$pawl" predict half.txt.rescued half.svm

expect 1 "$pawl" train logistic one.svm -o gone/model
complained 'cannot write the model to gone/'
expect 1 "$pawl" train logistic one.svm -o "$(printf '%0250d' 0)" # its draft has a longer name
complained 'cannot write the model to 0*: File name too long'
if [ -w /dev/full ]; then
  expect 1 "$pawl" train logistic one.svm -o /dev/full
  complained 'cannot write /dev/full: No space left on device; the model was saved to '
  kept=$(sed -n 's/.*the model was saved to \(.*\) instead$/\1/p' err)
  expect 0 "$pawl" predict "$kept" one.svm
  rm -f "$kept"
  for i in 1 2 3 4 5 6 7 8 9 10; do echo '3 0:2 1:1 2:5'; done >docs.ldac
  expect 1 "$pawl" train lda docs.ldac --topics 2 --sweeps 3 -o /dev/full --dir run
  kept=$(sed -n 's/.*the model was saved to \(.*\) instead$/\1/p' err)
  [ -n "$kept" ] || fail 'the topic model is lost'
  expect 0 "$pawl" lda topics "$kept"
  rm -f "$kept"
fi

# The folder goes while the model is trained.
mkdir folder
cp one.svm folder-data.svm
"$pawl" train logistic folder-data.svm -o folder/m.model --rounds 1000000 --tolerance 1e-15 --log folder.jsonl >folder.out 2>folder.log &
trainer=$!
pids="$pids $trainer"
eventually test -s folder.jsonl || fail 'it does not begin'
rm -r folder
kill -INT $trainer
code=0
wait $trainer || code=$?
[ $code -ne 0 ] || fail 'a model that is not where it should be is no success'
kept=$(sed -n 's/.*the model was saved to \(.*\) instead$/\1/p' folder.log)
[ -n "$kept" ] || fail 'the model is lost'
expect 0 "$pawl" predict "$kept" one.svm

# --- files that are read are not replaced -----------------------------------------------------------------------------------------

# keeps FILE WHAT ARGUMENT…: the command refuses to let WHAT replace FILE, and does not.
keeps() {
  file=$1
  what=$2
  shift 2
  cp "$file" before
  expect 2 "$pawl" "$@"
  complained "the $what would replace the data in "
  cmp -s "$file" before || fail "'$*' has replaced $file"
}
ln -s one.svm link.svm
for i in 1 2 3 4 5 6 7 8 9 10; do echo '3 0:2 1:1 2:5'; done >docs.ldac
for method in svm logistic linear multiclass metric sparse-coding; do
  keeps one.svm model train $method one.svm -o one.svm
  keeps one.svm log train $method one.svm --log ./link.svm -o no.model
done
keeps test.svm model train logistic one.svm --valid test.svm -o test.svm
keeps test.svm model train multiclass one.svm --test test.svm -o test.svm
keeps docs.ldac model train lda docs.ldac --topics 2 -o docs.ldac
keeps names model train lda docs.ldac --topics 2 --vocab names -o names
keeps one.svm output predict one.model one.svm --scores -o link.svm
keeps one.model output predict one.model one.svm --scores -o one.model
keeps one.model output model export one.model -o one.model
[ ! -e no.model ] || fail 'a refused training has written a model'

# A checkpoint replaces an earlier one, and nothing else.
for method in multiclass metric sparse-coding; do
  cp one.svm notes
  expect 1 "$pawl" train $method one.svm --checkpoint notes -o some.model
  complained 'notes is there already and is no checkpoint of this method'
  cmp -s one.svm notes || fail "a checkpoint of $method has replaced a file"
done
