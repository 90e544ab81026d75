#!/bin/sh
# Topic models from the command line: what is in them, topics of documents in all formats, perplexity, matrices, and what is refused.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# Seven words: cat 60, dog 30, horse 10 in topic 0; sun 50, moon 30, star 15, the 25 in topic 1; alpha 0.1 and 0.2, beta 0.01.
cp "$PAWL_SOURCE/fuzz/corpus/topics_fuzz/animals" animals.model
printf 'cat\ndog\nhorse\nsun\nmoon\nstar\nthe\n' >animals.vocab
# Four words that are numbers, three topics.
cp "$PAWL_SOURCE/fuzz/corpus/topics_fuzz/numbers" numbers.model

# --- topics -------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" lda topics animals.model --top 3
said '^topics *2 of 7 words$'
said '^trained *gibbs, 50 sweeps over 20 documents with 220 tokens$'
said '^alpha *0.3 in total, beta 0.01$'
said '^likelihood *-2 per token'
said '^topic 1  54.55 % of tokens  alpha 0.2$'
said '^    sun 0.4165  moon 0.2499  the 0.2083$'
said '^    cat 0.5997  dog 0.2999  horse 0.1000$'
[ "$(grep -c '^topic ' out)" -eq 2 ] || fail "two topics: $(cat out)"
grep '^topic ' out | head -1 | grep -q '^topic 1 ' || fail "the larger topic comes first: $(cat out)"
expect 0 "$pawl" lda topics animals.model --sort number
grep '^topic ' out | head -1 | grep -q '^topic 0 ' || fail "by number: $(cat out)"
expect 0 "$pawl" lda topics animals.model --topic 0 --top 4
said '^    cat 0.5997  dog 0.2999  horse 0.1000  sun 0.0001$'
if grep -q '^topic 1' out; then fail 'only topic 0 was asked for'; fi
expect 0 "$pawl" lda topics animals.model --topic 0 --top 1 --json
said '^{"topic":0,"share":0.4545[0-9]*,"tokens":100.0,"alpha":0.1[0-9]*,"words":\[{"number":0,"phi":0.59968[0-9]*,"word":"cat"}\]}$'
expect 0 "$pawl" lda topics numbers.model --top 1
said '^topics *3 of 4 words, which have numbers only$'
said '^    3 1.0000$'

# How well words go together: cat and dog in two of three documents, sun and moon never in the same.
printf 'cat dog\nthe cat, the dog and the sun\nmoon\n' >three.txt
expect 0 "$pawl" lda topics animals.model --top 2 --data three.txt --format text --sort coherence
said '^topic 0  .*  coherence npmi 1.000, umass 0.405$'
said '^topic 1  .*  coherence npmi -1.000, umass 0.000$'
grep '^topic ' out | head -1 | grep -q '^topic 0 ' || fail "the better topic comes first: $(cat out)"
expect 0 "$pawl" lda topics animals.model --top 2 --format text --json --data three.txt three.txt
said '"npmi":1.0,"umass":0.223'

# --- topics of documents ------------------------------------------------------------------------------------------------------

printf 'The cat and the dog; cats are no dogs.\nSun, moon: a star!\nzebra\n' >some.txt
expect 0 "$pawl" lda infer animals.model some.txt --format text
said '^2: 1 0.96[0-9]*, 0 0.03'
said '^3: no known word$'
complained '^pawl lda infer: 7 tokens are words not in animals.model$'
complained '^pawl lda infer: 1 of 3 documents has no known word$'
cp out text.out
# The same documents as LDA-C, UCI's and LIBSVM's rows; word 7 is nobody's.
printf '3 0:1 1:1 6:2\n3 3:1 4:1 5:1\n1 7:1\n' >some.ldac
printf '3\n8\n7\n1 1 1\n1 2 1\n1 7 2\n2 4 1\n2 5 1\n2 6 1\n3 8 1\n' >some.uci
printf '0 1:1 2:1 7:2\n0 4:1 5:1 6:1\n0 8:1\n' >some.svm
for format in ldac uci libsvm; do
  file=some.$format
  [ $format != libsvm ] || file=some.svm
  expect 0 "$pawl" lda infer animals.model $file --format $format
  cmp -s out text.out || fail "$format: other topics than those of the text: $(diff out text.out)"
  complained '^pawl lda infer: 1 token is a word'
done
expect 0 "$pawl" lda infer animals.model some.ldac --vocab animals.vocab --top 1 --out topics.txt
[ ! -s out ] || fail "the topics are in a file: $(cat out)"
[ "$(sed -n 2p topics.txt)" = "$(sed -n 's/^\(2: 1 [0-9.]*\),.*/\1/p' text.out)" ] || fail "--top 1: $(cat topics.txt)"
expect 0 "$pawl" lda infer animals.model some.ldac --all
awk 'NF != 3 || $1 != NR || $2 + $3 < 0.9999 || $2 + $3 > 1.0001 { exit 1 }' out || fail "--all: $(cat out)"
said '^3 0.333333 0.666667$'
expect 0 "$pawl" lda infer animals.model some.ldac --all --alpha 1
said '^3 0.5 0.5$'
expect 0 "$pawl" lda infer animals.model some.ldac --json --top 1
said '^{"document":2,"tokens":3.0,"topics":\[{"topic":1,"share":0.96[0-9]*}\]}$'
said '^{"document":3,"tokens":0.0,"topics":\[\]}$'
expect 0 "$pawl" lda infer animals.model some.ldac --json --all
said '^{"document":3,"tokens":0.0,"theta":\[0.33333[0-9]*,0.66666[0-9]*\]}$'

# A vocabulary that is another one.
printf 'cat\ndog\nhouse\nsun\nmoon\nstar\nthe\n' >other.vocab
expect 1 "$pawl" lda infer animals.model some.ldac --vocab other.vocab
complained "line 3 of other.vocab is 'house', but 'horse' in animals.model"
printf 'cat\ndog\n' >short.vocab
expect 1 "$pawl" lda evaluate animals.model some.ldac --vocab short.vocab
complained 'short.vocab has 2 words, but animals.model has 7'
expect 1 "$pawl" lda infer numbers.model some.txt --format text
complained 'have numbers only; to read text, give their vocabulary with --vocab'
printf 'cat\ndog\nhorse\nsun\n' >four.vocab
expect 0 "$pawl" lda infer numbers.model some.txt --format text --vocab four.vocab
said '^1: '
expect 0 "$pawl" lda topics numbers.model --top 1 --vocab four.vocab
said '^    sun 1.0000$'

# --- perplexity ---------------------------------------------------------------------------------------------------------------

awk 'BEGIN { for (d = 0; d < 400; d++) print d % 2 ? "0 1:12 2:6 3:2" : "0 4:10 5:6 6:3 7:5" }' >many.svm
expect 0 "$pawl" lda evaluate animals.model many.svm --json
cp out first
# About exp of the entropy of either topic, 2.6 and 3.6, by the tokens of each.
awk -F '[:,]' '{ exit !($2 > 2.7 && $2 < 3.4) }' out || fail "perplexity: $(cat out)"
said '"documents":400,"tokens":4[0-9]*,"unknown":0,"empty":0,"skipped":0}$'
expect 0 "$pawl" lda evaluate animals.model many.svm --json --threads 3
cmp -s out first || fail "the perplexity depends on threads: $(cat out first)"
expect 0 "$pawl" lda evaluate animals.model many.svm --json --seed 7
if cmp -s out first; then fail 'another seed, and the same halves'; fi
expect 0 "$pawl" lda evaluate animals.model some.svm
said '^perplexity '
said '^unknown *1 tokens of words that are not in the model$'
said '^empty *1 documents without a known word$'
printf '0 8:5\n' >strange.svm
expect 1 "$pawl" lda evaluate animals.model strange.svm
complained 'nothing to score'
printf '0 1:0.5\n' >half.svm
expect 1 "$pawl" lda evaluate animals.model half.svm
complained 'a value is not a count'

# --- matrices -----------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" lda export animals.model --out phi.txt
said '^wrote phi.txt: phi of 2 topics (rows) and 7 words (columns), as text$'
awk '{ sum = 0; for (i = 1; i <= NF; i++) sum += $i; if (NF != 7 || sum < 0.99999 || sum > 1.00001) exit 1 } END { exit NR != 2 }' \
  phi.txt || fail "phi: $(cat phi.txt)"
expect 0 "$pawl" lda export animals.model --counts -o counts.txt
printf '60 30 10 0 0 0 0\n0 0 0 50 30 15 25\n' | cmp -s - counts.txt || fail "counts: $(cat counts.txt)"
expect 0 "$pawl" lda export animals.model -o phi.npy --json
said '^{"file":"phi.npy","what":"phi","type":"float32","topics":2,"words":7}$'
[ "$(wc -c <phi.npy)" -eq $((128 + 2 * 7 * 4)) ] || fail "the size of phi.npy: $(wc -c phi.npy)"
head -c 128 phi.npy | grep -q "'descr': '<f4', 'fortran_order': False, 'shape': (2, 7)" || fail 'the head of phi.npy'
expect 0 "$pawl" lda export animals.model -o counts.npy --counts
[ "$(tail -c +129 counts.npy | od -An -v -t d4 | tr -s ' \n' ' ')" = ' 60 30 10 0 0 0 0 0 0 0 50 30 15 25 ' ] || fail 'counts.npy'
expect 0 "$pawl" lda export numbers.model -o weights.npy --counts
head -c 128 weights.npy | grep -q "'<f4'" || fail 'weights are floats'

# --- models of the other kind, and no models ------------------------------------------------------------------------------------

expect 1 "$pawl" model show animals.model
complained "animals.model: this is a topic model, not a linear model; use 'pawl lda topics'"
expect 1 "$pawl" predict animals.model some.svm
complained "this is a topic model.*'pawl lda infer'"
printf '1 1:1\n-1 2:1\n' >rows.svm
expect 0 "$pawl" train logistic rows.svm --workers 1 --rounds 1 -o linear.model
expect 1 "$pawl" lda topics linear.model
complained "linear.model: this is a linear model, not a topic model; use 'pawl model show'"
expect 1 "$pawl" lda infer some.ldac some.ldac
complained 'some.ldac: not a topic model'
expect 1 "$pawl" lda export nowhere -o x.npy
complained 'cannot read nowhere: No such file'
head -c 300 animals.model >cut.model
expect 1 "$pawl" lda topics cut.model
complained 'cut.model: the file ends'
expect 1 "$pawl" lda topics animals.model --topic 2
complained 'unknown topic 2 in animals.model; expected 0 to 1'
expect 1 "$pawl" lda infer animals.model nowhere.ldac
complained 'nowhere.ldac'
expect 1 "$pawl" lda infer animals.model some.ldac -o no/such/file
complained 'cannot write no/such/file'
expect 1 "$pawl" lda export animals.model -o no/such/file.npy
complained 'cannot write no/such/file.npy'
printf '1 0:1\nx\n' >bad.ldac
expect 1 "$pawl" lda infer animals.model bad.ldac
complained 'bad.ldac:2:'
expect 0 "$pawl" lda infer animals.model bad.ldac --skip-bad 1
complained '1 bad document was skipped, the first at bad.ldac:2:'

while read -r wrong; do
  # shellcheck disable=SC2086
  expect 2 "$pawl" $wrong
done <<'END_OF_WRONG'
lda
lda topics
lda topics animals.model more
lda topics animals.model --top many
lda topics animals.model --top 1001
lda topics animals.model --topic first
lda topics animals.model --sort words
lda topics animals.model --sort coherence
lda infer animals.model
lda infer animals.model some.ldac --top 0
lda infer animals.model some.ldac --alpha 0
lda infer animals.model some.ldac --iterations 0
lda infer animals.model some.ldac --format word
lda infer animals.model some.ldac --threads 0
lda evaluate animals.model
lda evaluate animals.model some.ldac --seed first
lda evaluate animals.model some.ldac --skip-bad -1
lda export animals.model
lda export animals.model -o phi.csv
END_OF_WRONG
