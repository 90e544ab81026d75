#!/bin/sh
# Completion: bash runs what the command prints, and offers every command and option that there is.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

command -v bash >/dev/null || exit 77
expect 2 "$pawl" completion tcsh
complained "unknown shell 'tcsh'; expected bash, zsh or fish"
"$pawl" completion bash >pawl.bash
touch data.svm

# offers WORD…: what bash would offer for the last of the words.
offers() {
  cat >ask.bash <<'END'
. ./pawl.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_pawl
printf '%s\n' "${COMPREPLY[@]}"
END
  bash ask.bash "$@" >out || fail "completing '$*'"
}
has() { grep -qx -e "$1" out || fail "'$1' is not offered: $(cat out)"; }
has_not() { if grep -qx -e "$1" out; then fail "'$1' is offered"; fi; }

offers pawl ''
for word in demo train predict model lda completion help; do has $word; done
offers pawl tr
[ "$(cat out)" = train ] || fail "train, not: $(cat out)"
offers pawl train ''
for word in logistic svm linear lda; do has $word; done
offers pawl train logistic --
for word in --l1 --zero-based --separator --valid --resume --json --help --verbose; do has $word; done
has_not --topics
offers pawl train lda --stop
has --stop-words
offers pawl train logistic dat
has data.svm
offers pawl train logistic data.svm --l1 1 --no-
has --no-bias
offers pawl train logistic --valid da
has data.svm
offers pawl help tra
has train
offers pawl --ver
has --version
offers pawl server dr
has drain
offers pawl server forget --
has --all-lost
has_not --shards

# Whatever help speaks of is offered.
"$pawl" train lda --help | sed -n 's/^  \(-., \)\{0,1\} *--\([a-z0-9-]*\).*/--\2/p' | sort -u >wanted
offers pawl train lda --
sort -u out >offered
comm -23 wanted offered >missing
[ -s wanted ] && [ ! -s missing ] || fail "not offered: $(cat missing)"

for shell in zsh fish; do
  "$pawl" completion $shell >script
  grep -q -e 'stop-words' script || fail "$shell is told nothing"
  if command -v $shell >/dev/null; then $shell -n script || fail "$shell does not read it"; fi
done
