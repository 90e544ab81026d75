#!/bin/sh
# pawl-bench and pawl-storm explain their commands and refuse what they do not know.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/../cli/scene.sh"

# explains PROGRAM COMMAND WORD…: --help exits with 0 and names every word.
explains() {
  program=$1 command=$2
  shift 2
  # shellcheck disable=SC2086
  expect 0 "$program" $command --help
  for word in "$@"; do said "$word"; done
}
bench=${PAWL_BENCH:?the path of pawl-bench}
storm=${PAWL_STORM:?the path of pawl-storm}
explains "$bench" '' 'usage: pawl-bench COMMAND' 'pawl-bench net' 'pawl-bench kv' 'pawl-bench failover' 'pawl-bench wait'
explains "$bench" lapser --figure --tcp --sim --gigabits --svg --json
explains "$bench" sfb --figure --staleness --magnify --pair-ms --svg --json
explains "$bench" net 'usage: pawl-bench net' --transport --size --op --peers --json
explains "$bench" kv --case --workers --servers --transport --json
explains "$bench" failover --servers --workers --replicas --kills --mode --gigabytes --seed --json
explains "$bench" relay --cluster --members --ticks --size --name --json
explains "$bench" sketch --seconds --things --data --kill --transport --json
explains "$bench" asap --figure --workers --data --accuracy --real --seed --svg --json
explains "$bench" reduce --size --peers --seconds --rounds --json
explains "$bench" collective --size --peers --seconds --rounds --json
explains "$storm" '' 'pawl-storm work' 'pawl-storm verify'
explains "$storm" work --worker --journal --plant --cluster
explains "$storm" verify JOURNAL --cluster --json

# refuses HINT PROGRAM WORD…: exit code 2, nothing on standard output, and where to read more.
refuses() {
  hint=$1
  shift
  expect 2 "$@"
  complained "$hint"
  complained "^try 'pawl-.*--help'"
  [ ! -s out ] || fail "'$*' is refused and prints: $(cat out)"
}
refuses 'no command given' "$bench"
refuses "did you mean 'net'" "$bench" nte
refuses "'pigeon'" "$bench" net --transport pigeon
refuses "'1g'" "$bench" net --size 1g
refuses "'16'" "$bench" net --rounds 16
refuses "'poke'" "$bench" net --op poke
refuses "'0'" "$bench" net --op put --peers 0
refuses "'257'" "$bench" net --op put --peers 257
refuses '--peers needs --op' "$bench" net --peers 2
refuses 'unexpected argument' "$bench" net here
refuses 'no command given' "$storm"
