#!/bin/sh
# Topic models from the command line: from all formats, with what is shown, logged and written; kills on the way; good input and bad.
# Counts are compared with the corpus wherever a model is made.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/train_scene.sh
. "${0%/*}/train_scene.sh"

# Documents of three topics with ten words each, of which no two share one: as LDA-C, as UCI's bag of words and as text.
awk 'BEGIN {
  srand(7)
  split("red green blue", names, " ")
  letters = "abcdefghij"
  for (t = 1; t <= 3; t++) for (i = 1; i <= 10; i++) print names[t] substr(letters, i, 1) >"vocab"
  for (d = 0; d < 120; d++) {
    line = ""; text = ""; count = 0
    for (i = 0; i < 10; i++) {
      n = int(rand() * 5)
      if (!n) continue
      word = d % 3 * 10 + i
      line = line " " word ":" n
      print d + 1, word + 1, n >"body"
      for (j = 0; j < n; j++) text = text " " names[d % 3 + 1] substr(letters, i + 1, 1)
      count++; entries++
    }
    print count line >"docs.ldac"
    print text >"docs.txt"
  }
  print 120 "\n" 30 "\n" entries >"head"
}'
cat head body >docs.uci
tokens=$(awk '{ sum += $3 } END { print sum }' body)

long='train lda docs.ldac --vocab vocab --topics 3 --sweeps 10000000 --measure-every 1 --workers 2'

# --- all formats ---------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train lda docs.ldac --vocab vocab --topics 3 --sweeps 60 --workers 2 --check
said '^done after 60 sweeps$'
said "^  documents  *120, with $tokens tokens of 30 words$"
said '^  likelihood  *-[0-9.]* per token'
said '^  counts  *exact'
said '^  time  .* sampling, .* tokens/s$'
said '^  network  .* bytes per token and sweep$'
said '^  memory  .*at most .*B in a worker'
said '^  model  *docs.model (choose another name with -o)$'
said '% *\(red\|green\|blue\)[a-j] \(red\|green\|blue\)[a-j] '
said '^next:  pawl lda topics docs.model$'
complained '^sweep [0-9]*/60  .*2 workers  left '
[ -s docs.model ] || fail 'there is no model'
[ ! -e docs.model.run ] || fail 'the directory of the run stays'
if grep -q "$(printf '\033')" out err; then fail 'a progress line where there is no terminal'; fi

if command -v script >/dev/null; then # a terminal
  TERM=xterm timeout 400 script -qec "'$pawl' train lda docs.ldac --topics 3 --sweeps 20 -o shown.model" shown.out </dev/null >/dev/null || fail 'a terminal'
  grep -q "$(printf '\033')\[K.*sweep [0-9]*/20  " shown.out || fail "no progress line: $(cat shown.out)"
fi

expect 0 "$pawl" train lda docs.uci --vocab vocab --topics 3 --sweeps 20 --workers 1 --check --json -o uci.model --held-out docs.ldac --log uci.jsonl \
  --evaluate-every 10 --optimise --tensorboard board
[ "$(lines_of out)" -eq 1 ] || fail "one line, not: $(cat out)"
for name in model method topics why sweeps seconds sample_seconds tokens_per_s log_likelihood perplexity documents empty tokens words \
  skipped unknown bytes_sent bytes_received bytes_per_token worker_memory workers_lost exact directory total_seconds; do
  said "\"$name\":"
done
said '"model":"uci.model"'
said '"exact":true'
said '"directory":null'
[ "$(figure tokens)" -eq "$tokens" ] || fail "$(figure tokens) tokens, not $tokens"
awk -v is="$(figure perplexity)" 'BEGIN { exit !(is > 5 && is < 20) }' || fail "documents of 10 words each have a perplexity of $(figure perplexity)"
for name in stage sweep sweeps part log_likelihood perplexity alpha_sum beta documents tokens words seconds left_s tokens_per_s \
  bytes_sent bytes_received workers each host pid wait_pct; do
  tail -n 1 uci.jsonl | grep -q "\"$name\":" || fail "'$name' is not in the log: $(tail -n 1 uci.jsonl)"
done
tail -n 1 uci.jsonl | grep -q '"sweep":20' || fail "the last round is not in the log: $(cat uci.jsonl)"
set -- board/events.out.tfevents.*
grep -q 'log-likelihood' "$1" || fail 'the event file has no likelihood'

expect 0 "$pawl" train lda docs.txt --format text --topics 3 --sweeps 20 --check --json -o text.model
[ "$(figure words)" -eq 30 ] || fail "$(figure words) words, not 30"
[ "$(figure tokens)" -eq "$tokens" ] || fail "$(figure tokens) tokens, not $tokens"
expect 0 "$pawl" train lda docs.txt --format text --topics 3 --max-words 20 --sweeps 5 --check --json -o fewer.model
[ "$(figure words)" -eq 20 ] || fail "$(figure words) words, not 20"
[ "$(($(figure tokens) + $(figure unknown)))" -eq "$tokens" ] || fail "words are lost: $(cat out)"
expect 0 "$pawl" train lda docs.ldac --topics 3 --sweeps 5 --quiet --check -o quiet.model
[ "$(cat out err | wc -c)" -eq 0 ] || fail "--quiet prints: $(cat out err)"

# A model to begin with says how many topics there are, and its topics stay.
expect 0 "$pawl" train lda docs.ldac --vocab vocab --start docs.model --sweeps 2 --check --json -o started.model
said '"topics":3'

# --- directories ---------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" train lda docs.ldac --topics 3 --sweeps 5 --keep-dir -q -o kept.model
[ -d kept.model.run ] || fail '--keep-dir does not keep it'
expect 1 "$pawl" train lda docs.ldac --topics 3 --sweeps 5 -q -o kept.model
complained 'kept.model.run is not empty; continue its run with --resume'
expect 0 "$pawl" train lda docs.ldac --topics 3 --sweeps 9 --dir here --json -o named.model
said '"directory":".*/here"'
[ -d here ] || fail 'a directory that was named goes'
expect 0 "$pawl" train lda docs.ldac --topics 3 --sweeps 12 --dir here --resume --check --json -o named.model
complained 'resuming after 9 sweeps'
said '"sweeps":12'
[ -d here ] || fail 'a directory that was named goes'
find here -type f -exec cksum {} + | sort >before
expect 1 "$pawl" train lda docs.ldac --topics 4 --sweeps 20 --dir here --resume -o named.model
complained '\-\-topics was 3 and is now 4'
expect 1 "$pawl" train lda docs.uci --topics 3 --sweeps 20 --dir here --resume -o named.model
complained 'found .*docs.uci instead of .*docs.ldac'
find here -type f -exec cksum {} + | sort >after
cmp -s before after || fail 'a run that was refused has changed the directory'
expect 1 "$pawl" train lda docs.ldac --topics 3 --resume -o nothing.model
complained 'nothing to resume in .*nothing.model.run'

# --- bad input -----------------------------------------------------------------------------------------------------------------------

# refused CODE TEXT ARGUMENT…: says it, once, and leaves nothing behind.
refused() {
  wanted=$1
  text=$2
  shift 2
  expect "$wanted" "$pawl" train lda "$@" -o bad.model
  complained "$text"
  # The last words of a worker that ended before its report was read come besides.
  [ "$(grep -v '^worker [0-9]*: ' err | grep -c -e "$text")" -eq 1 ] || fail "'$*' is complained of more than once: $(cat err)"
  [ ! -e bad.model ] || fail "'$*' leaves a model"
  [ ! -e bad.model.run ] || fail "'$*' leaves a directory"
}

head -n 5 vocab >short
refused 1 'docs.ldac:[0-9]*:.*not in the vocabulary' docs.ldac --topics 3 --vocab short
refused 1 'docs.uci:.*not in the vocabulary' docs.uci --topics 3 --vocab short
printf 'other\nwords\n' >other
refused 1 'none of their words is in the vocabulary' docs.txt --format text --topics 3 --vocab other
printf 'reda redb\nbl\377ue\nredb redc\n' >broken.txt
refused 1 'broken.txt:2:.*UTF-8' broken.txt --format text --topics 3
expect 0 "$pawl" train lda broken.txt --format text --topics 2 --min-documents 1 --max-share 1 --skip-bad 1 --sweeps 5 --check -o skipped.model
said '^  skipped  *1 bad document$'
{ cat docs.ldac; echo '1 0:2147483649'; } >huge.ldac
refused 1 'huge.ldac:121:.*count' huge.ldac --topics 3
{ cat docs.ldac; printf '0\n0\n'; } >empty.ldac
expect 0 "$pawl" train lda empty.ldac --topics 3 --sweeps 5 --check -o empty.model
said '^  empty  *2 of them'
printf '0\n0\n' >none.ldac
refused 1 'the corpus has no words' none.ldac --format ldac --topics 3
printf 'red\nred\n' >twice
refused 1 'twice:2: ' docs.ldac --topics 3 --vocab twice
refused 1 'nowhere: No such file' docs.ldac --topics 3 --vocab nowhere
refused 1 'nowhere: No such file' nowhere --topics 3
refused 1 'nowhere: No such file' docs.ldac --topics 3 --held-out nowhere
refused 1 'docs.model has 3 topics, but --topics is 5' docs.ldac --topics 5 --start docs.model
refused 1 'docs.model has 30 words, but the vocabulary has 5' docs.ldac --start docs.model --vocab short
refused 1 'docs.ldac: not a' docs.ldac --start docs.ldac
printf '+1 1:1 2:1\n-1 3:1\n' >rows.svm
refused 1 'rows.svm looks like libsvm' rows.svm --topics 3
refused 2 'number of topics' docs.ldac --topics 0
refused 2 'number of topics' docs.ldac --topics 65001
refused 2 'which hold documents' docs.ldac --format libsvm
refused 2 'already have numbers' docs.ldac --min-documents 3
refused 2 'exclude --vocab' docs.txt --format text --vocab vocab --max-words 3
refused 2 'need --method svi' docs.ldac --batch 3
refused 2 'held-out FILE' docs.ldac --evaluate-every 3
expect 1 "$pawl" train lda docs.ldac --topics 3 -o nowhere/bad.model
complained 'cannot write the model to nowhere'

# --- accidents -----------------------------------------------------------------------------------------------------------------------

# sweeps_of FILE: how far it got.
sweeps_of() { sed -n 's/.*"sweep":\([0-9]*\).*/\1/p' "$1" | tail -n 1; }

# goes_to_end NAME: resumes, and the counts are exact.
goes_to_end() {
  end=$(($(sweeps_of "$1.jsonl") + 1000))
  expect 0 "$pawl" train lda docs.ldac --vocab vocab --topics 3 --sweeps $end --workers 2 --resume --check --json -o "$1.model" --log "$1.jsonl"
  complained 'resuming after [1-9][0-9]* sweeps'
  said '"exact":true'
  [ "$(figure tokens)" -eq "$tokens" ] || fail "$(figure tokens) tokens, not $tokens"
  [ ! -e "$1.model.run" ] || fail 'the directory of the run stays'
}

# Ctrl-C: there is a model, and how to go on is said.
set_out stopped
goes_on stopped.jsonl
kill -INT "$trainer"
ends 130
grep -q '^interrupted after [1-9][0-9]* sweeps$' stopped.out || fail "what ended it is not said: $(cat stopped.out)"
grep -q 'saved to stopped.model' stopped.log || fail 'that the model is saved is not said'
grep -q 'the same command and --resume' stopped.log || fail 'how to go on is not said'
[ -s stopped.model ] || fail 'there is no model'
goes_to_end stopped

# A worker is killed: another takes its place.
set_out replaced
kill -KILL "$(children "$trainer" worker | head -n 1)"
eventually grep -q 'ended: signal 9' replaced.log || fail 'the loss is not told'
eventually sh -c "tail -n 1 replaced.jsonl | grep -q '\"workers\":2'" || fail 'nobody takes its place'
goes_on replaced.jsonl
kill -INT "$trainer"
ends 130
goes_to_end replaced

# The scheduler is killed, and with it everything.
set_out murdered
goes_on murdered.jsonl
children "$trainer" worker >left
children "$trainer" server >>left
[ "$(lines_of left)" -eq 3 ] || fail "two workers and a server, not: $(cat left)"
kill -KILL "$trainer"
ends 137
while read -r pid; do eventually is_gone "$pid" || fail "process $pid stays behind"; done <left
[ ! -e murdered.model ] || fail 'a run that was killed has written a model'
before=$(lines_of murdered.jsonl)
goes_to_end murdered
[ "$(lines_of murdered.jsonl)" -gt "$before" ] || fail 'the log does not go on'

# A server without copies is killed: there is nothing to wait for, and what was sampled is not lost.
set_out served
goes_on served.jsonl
kill -KILL "$(children "$trainer" server | head -n 1)"
ends 1
grep -q 'no other server has a copy of its data.*--resume' served.log || fail 'how to go on is not said'
goes_to_end served

# --- a cluster -----------------------------------------------------------------------------------------------------------------------

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --data none --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server "$pawl" server --join "$PAWL_ADDRESS" --http none
"$pawl" worker $patience --job words >worker.log 2>&1 & # which is told what kind of job it is
worker=$!
pids="$pids $worker"
expect 0 "$pawl" train lda docs.ldac $patience --topics 3 --sweeps 20 --check --job words --workers 0 --json -o cluster.model
said '"exact":true'
wait $worker || fail "a worker fails at the end: $(cat worker.log)"
