#!/bin/sh
# Data as it comes from elsewhere: byte order marks, other packings and separators, pipes, text, rows without labels.
# cost: 20
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# rows SEED COUNT: two classes, four columns of numbers and a word; y is the third column.
rows() {
  awk -v seed="$1" -v count="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; i++) {
      a = int(rand() * 100) / 10; b = int(rand() * 100) / 10; c = rand() < 0.5 ? "red" : "blue"
      print a "," b "," (a - b + rand() > (c == "red" ? 1 : -1) ? 1 : 0) "," int(rand() * 5) "," c
    }
  }'
}
{ echo a,b,y,d,colour && rows 1 300; } >train.csv
{ echo a,b,y,d,colour && rows 2 60; } >test.csv
# The objective after some rounds depends on every row and on no clock, so equal objectives show equal data.
train() { expect 0 "$pawl" train logistic "$@" --rounds 10 --seed 1 --workers 1 --json; }
train train.csv --label y -o plain.model
plain=$(figure objective)
same() { [ "$(figure objective)" = "$plain" ] && [ "$(figure rows)" -eq 300 ] || fail "$1: $(cat out)"; }

# --- what a text may begin with, and what may stand between columns ---------------------------------------------------------------

{ printf '\357\273\277' && cat train.csv; } >marked.csv
train marked.csv --label y -o marked.model
same 'a byte order mark'
sed 's/$/\r/' marked.csv >crlf.csv
train crlf.csv --label y -o crlf.model
same 'a byte order mark, and CR LF'
tr ',' ';' <train.csv >semi.csv
train semi.csv --label y -o semi.model
same 'semicolons'
tr ',' ';' <train.csv | tr '.' ',' >german.csv
train german.csv --label y -o german.model
same 'semicolons, and decimal commas'
tr ',' '\t' <train.csv >tabs.tsv
train tabs.tsv --label y -o tabs.model
same 'tabs'
tr ',' '|' <train.csv >bars.psv
train bars.psv --separator bar --label y -o bars.model
same '--separator'
expect 2 "$pawl" train logistic train.csv --separator 5
complained "invalid value '5' for --separator; expected one character"
if command -v iconv >/dev/null; then
  iconv -f UTF-8 -t UTF-16 train.csv >wide.csv
  expect 1 "$pawl" train logistic wide.csv --label y
  complained 'wide.csv: the text is UTF-16, not UTF-8; convert it with iconv'
fi

# --- packings ----------------------------------------------------------------------------------------------------------------------

for packer in gzip xz bzip2 zstd; do
  command -v $packer >/dev/null || continue
  $packer -c <train.csv >train.packed
  train train.packed --label y -o packed.model
  same $packer
  head -c "$(($(wc -c <train.packed) - 20))" train.packed >short.packed
  expect 1 "$pawl" train logistic short.packed --label y
  complained "short.packed: the $packer data is truncated"
  { head -c 60 train.packed && printf 'xxxxxxxx' && tail -c +69 train.packed; } >hurt.packed
  expect 1 "$pawl" train logistic hurt.packed --label y
  complained "hurt.packed: the $packer data is damaged near byte"
done
[ "$("$pawl" train logistic --help | grep -c separator)" -eq 1 ] || fail 'help does not speak of --separator'
cp train.csv b.csv.xz # its name says nothing
train b.csv.xz --label y
said '"model":"b.model"'

# --- pipes -------------------------------------------------------------------------------------------------------------------------

mkdir tmp
TMPDIR=$work/tmp
export TMPDIR
code=0
"$pawl" train logistic - --label y --rounds 10 --seed 1 --workers 1 --json -o piped.model <train.csv >out 2>err || code=$?
[ $code -eq 0 ] || fail "training from a pipe: $code"
same 'standard input'
complained 'copied standard input to .*/pawl-stdin-'
mkfifo fifo
gzip -c <train.csv >fifo &
train fifo --label y -o fifo.model
same 'a FIFO'
"$pawl" predict plain.model - <test.csv >out 2>err || fail 'predicting from a pipe'
said '^rows  *60$'
"$pawl" predict plain.model /dev/stdin <test.csv >out 2>err || fail 'predicting from /dev/stdin'
# shellcheck disable=SC2002 # a pipe, and not a file
cat train.csv | "$pawl" convert - --label y -o piped.cache >out 2>err || fail 'converting from a pipe'
said '300 rows'
: | "$pawl" convert - -o empty.cache >out 2>err && fail 'nothing was converted'
complained 'standard input: the input is empty'
echo '1,2,1' >one
"$pawl" train logistic - --valid - <one >out 2>err && fail 'standard input, twice'
complained 'standard input can be read only once'
expect 1 "$pawl" train logistic - </dev/null
complained 'standard input: the input is empty'
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# --- rows without labels -------------------------------------------------------------------------------------------------------------

# The label's column is found where it was in training.
expect 0 "$pawl" predict plain.model test.csv --scores -o with.scores --json
said '"unlabelled":0'
cut -d, -f1,2,4,5 test.csv >bare.csv # without the column
expect 0 "$pawl" predict plain.model bare.csv --scores -o bare.scores
cmp -s with.scores bare.scores || fail 'other scores without the label column'
said '^without a label  *60 rows$'
if grep -q -e accuracy -e AUC -e objective out; then fail "figures without labels: $(cat out)"; fi
tail -n +2 bare.csv >headless.csv
expect 0 "$pawl" predict plain.model headless.csv --scores -o headless.scores
cmp -s with.scores headless.scores || fail 'other scores without the head line'
awk -F, 'NR > 1 { $3 = ""; } { print }' OFS=, test.csv >blank.csv # with an empty column
expect 0 "$pawl" predict plain.model blank.csv --scores -o blank.scores
cmp -s with.scores blank.scores || fail 'other scores with empty labels'
expect 0 "$pawl" predict plain.model bare.csv
complained 'no row has a label, so the model cannot be evaluated; write its predictions with -o FILE'
expect 0 "$pawl" predict plain.model bare.csv --json
said '"accuracy":null'
said '"unlabelled":60'
awk -F, '{ print $3, $1, $2, $4, $5 }' OFS=, test.csv >moved.csv
expect 0 "$pawl" predict plain.model moved.csv --label y
complained 'the label is in column 1 here, but was in column 3 in training; is the order of columns different?'
cut -d, -f1,3 test.csv >narrow.csv
expect 0 "$pawl" predict plain.model narrow.csv --label y
complained 'the data has 2 columns, but plain.model was trained on 5'

awk 'BEGIN { for (i = 0; i < 200; i++) print (i % 3 ? 1 : -1), (i % 3 + 1) ":1", "7:" i / 100 }' >train.svm
expect 0 "$pawl" train logistic train.svm -q -o svm.model
cut -d' ' -f2- train.svm >bare.svm
expect 0 "$pawl" predict svm.model train.svm -o with.labels
expect 0 "$pawl" predict svm.model bare.svm -o bare.labels
cmp -s with.labels bare.labels || fail 'other predictions of rows without labels'
said '^without a label  *200 rows$'
head -n 50 train.svm | cat - bare.svm >half.svm
expect 0 "$pawl" predict svm.model half.svm
said '^accuracy '
said '^without a label  *200 rows$'
expect 1 "$pawl" train logistic bare.svm
complained 'bare.svm:1:1: expected a label before the features'
awk 'BEGIN { for (i = 0; i < 200; i++) print (i % 3 ? 1 : -1) " |f w" i % 3 " x:" i / 100 }' >train.vw
expect 0 "$pawl" train linear train.vw -q -o vw.model
sed 's/^[-0-9]* //' train.vw >bare.vw
expect 0 "$pawl" predict vw.model train.vw --scores -o with.scores
expect 0 "$pawl" predict vw.model bare.vw --scores -o bare.scores
cmp -s with.scores bare.scores || fail 'other predictions of vw rows without labels'
if grep -q -e RMSE -e R2 out; then fail "figures of regression without labels: $(cat out)"; fi

# --- text -----------------------------------------------------------------------------------------------------------------------------

awk 'BEGIN { for (i = 0; i < 40; i++) print (i % 2 ? "Cats, dogs and birds eat; they sleep." : "Stocks | bonds and shares fall, they rise.") }' >pets.txt
expect 0 "$pawl" train lda pets.txt --topics 2 --sweeps 5 -o pets.model --max-share 1
expect 0 "$pawl" lda infer pets.model pets.txt
gzip -c <pets.txt >pets.txt.gz
expect 0 "$pawl" train lda pets.txt.gz --topics 2 --sweeps 5 -o pets2.model --max-share 1
cp pets.txt pets.log
expect 1 "$pawl" train lda pets.log --topics 2
complained 'give --format ldac, uci or text'
for i in 1 2 3 4; do echo '2 0:1 1:2'; done >numbers.txt # not text: LDA-C
expect 0 "$pawl" train lda numbers.txt --topics 2 --sweeps 3 -o numbers.model --json
said '"words":2'
"$pawl" train lda - --format text --topics 2 --sweeps 3 -o piped.model --max-share 1 <pets.txt >out 2>err || fail 'topics from a pipe'
"$pawl" lda infer pets.model - --format text <pets.txt >out 2>err || fail 'documents from a pipe'
[ -z "$(ls tmp)" ] || fail "left behind: $(ls tmp)"

# Words that say nothing, and short ones, are left out.
expect 0 "$pawl" train lda pets.txt --topics 2 --sweeps 3 -o stopped.model --max-share 1 --stop-words english --min-length 5
expect 0 "$pawl" lda topics stopped.model
said 'birds'
said 'sleep'
if grep -q -w -e and -e they -e eat -e cats out; then fail "stop words, or short ones: $(cat out)"; fi
printf 'birds\nsleep\n' >stop.txt
expect 0 "$pawl" train lda pets.txt --topics 2 --sweeps 3 -o stopped.model --max-share 1 --stop-words english --stop-words stop.txt
expect 0 "$pawl" lda topics stopped.model
said 'cats'
if grep -q -w -e and -e birds -e sleep out; then fail "words of both lists: $(cat out)"; fi
expect 2 "$pawl" train lda numbers.txt --topics 2 --stop-words english
complained 'the words of ldac already have numbers'

# --- weights of classes, and a crowd ---------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic train.svm --class-weight 1=10,-1=2 --json -o weighed.model
both=$(figure objective)
expect 0 "$pawl" train logistic train.svm --class-weight 1=10 --class-weight -1=2 --json -o weighed.model
[ "$(figure objective)" = "$both" ] || fail "a list is not the same as two options: $both and $(figure objective)"
expect 2 "$pawl" train logistic train.svm --class-weight 1=10,1=2
expect 2 "$pawl" train logistic train.svm --class-weight 1=10,
expect 0 "$pawl" train logistic train.svm --workers 9 -o crowd.model
[ "$(nproc)" -ge 9 ] || complained '9 workers share [0-9]* processors*;'

# --- rows that are held out ---------------------------------------------------------------------------------------------------------------

for workers in 1 2; do
  expect 0 "$pawl" train logistic train.csv --label y --valid-split 0.2 --seed 5 --workers $workers --rounds 10 --json -o split$workers.model
  [ "$(figure rows)" -lt 270 ] && [ "$(figure rows)" -gt 210 ] || fail "a fifth of 300 rows: $(cat out)"
  [ "$(figure valid_loss)" != null ] || fail "no validation loss: $(cat out)"
  figure rows >rows.$workers
done
cmp -s rows.1 rows.2 || fail 'which rows are held out depends on workers'
expect 0 "$pawl" train logistic train.csv --label y --valid-split 0.2 --seed 6 --rounds 10 --json -o split.model
expect 0 "$pawl" train logistic train.csv --label y --valid-split 0.2 --early-stop 3 -o split.model
said '^  validation  '
expect 2 "$pawl" train logistic train.csv --label y --valid-split 0.2 --valid test.csv
complained 'give one of the two'
expect 2 "$pawl" train logistic train.csv --valid-split 1
expect 1 "$pawl" train logistic train.csv --label y --valid-split 0.000001
complained 'holds out no row'
expect 0 "$pawl" train logistic train.csv --label y --valid-split 0.2 --method ftrl --passes 2 -o split.model

# --- names of features -----------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train logistic semi.csv --label y -q -o named.model
expect 0 "$pawl" model show named.model --top 20
for name in a b d colour=red colour=blue; do said "  $name\$"; done
expect 0 "$pawl" model show named.model --json
said '"name":"colour=red"'
expect 0 "$pawl" model export named.model -o copy.model
expect 0 "$pawl" model show copy.model
said '  colour=red$'
expect 0 "$pawl" model show vw.model
said '  f^w0$'
said '  f^x$'
expect 0 "$pawl" train logistic train.vw --l1 0.1 -q --method ftrl -o vw.model
expect 0 "$pawl" model show vw.model
said '  f^w0$'
awk 'BEGIN { for (i = 0; i < 90; i++) { printf "%d", i % 2; for (j = 1; j <= 13; j++) printf "\t%s", j == 3 ? i % 2 * 5 : ""; for (j = 1; j <= 26; j++) printf "\t%s", j == 5 ? "w" i % 3 : ""; print "" } }' >log.tsv
expect 0 "$pawl" train logistic log.tsv -q -o log.model
expect 0 "$pawl" model show log.model
said '  I3$'
said '  C5=w1$'
