#!/bin/sh
# The README's "Train a model", as a newcomer types it: the commands are taken from there and run one after another, and what
# they print is what the README says they do.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
command -v pgrep >/dev/null || { echo 'pgrep is not here (package procps)'; exit 77; }

# As after `make demo`, in a folder of its own.
ln -s "$PAWL_SOURCE/examples" examples
mkdir build
ln -s "$pawl" build/pawl

# What stands after "$ " in the section, with the lines that continue it.
sed -n '/^## Train a model/,/^## A cluster/p' "$PAWL_SOURCE/README.md" |
  sed -n '/^\$ /{s///;:more;/\\$/{N;b more};p;}' >commands
[ "$(grep -c '^build/pawl' commands)" -eq 6 ] || fail "not the commands that this test knows: $(cat commands)"
[ "$(grep -c '^kill -9 ' commands)" -eq 3 ] || fail "not the accidents that this test knows: $(cat commands)"

# A newcomer waits a few seconds before a kill, and before looking: until a further checkpoint is there, and what is to be read is.
cat >wait_a_little <<'END'
newest() { ls long.model.checkpoints 2>/dev/null | sed -n 's/^checkpoint-0*\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1; }
more=$(newest) left=3000
more=$((${more:-0} + 2))
while [ "$(newest || true)" -lt $more ] 2>/dev/null || [ -z "$(newest)" ]; do
  [ $left -gt 0 ] && kill -0 $! || { echo 'no further checkpoint'; exit 1; }
  sleep 0.1
  left=$((left - 1))
done
END
sed -e '/^kill /i. ./wait_a_little' -e '/^cat /i. ./wait_a_little' commands >script
printf 'trap - EXIT\necho "everything was run"\n' >>script
sed -i '1i trap "kill -9 \\$! 2>/dev/null || true" EXIT' script
expect 0 sh -eu script

# What it says of each.
said '^converged after [0-9]* rounds'
said '^accuracy  *\(69\|7[0-9]\)\.[0-9]* %'
said '^  *[0-9][0-9]*  *[-0-9.]*  [a-z_]*$'
said '^worker [0-9]* at .* joined; 2 now'
said '^worker [0-9]* at .* was lost; 1 left'
said '^worker [0-9]* (process [0-9]*) ended: signal 9'
said '^a server was lost, 1 so far'
complained '^resuming from round [0-9]* with objective '
said '^everything was run$'
[ "$(grep -c '^accuracy  *7' out)" -eq 2 ] || fail "two predictions, not: $(cat out)"
for model in words.model long.model; do [ -s $model ] || fail "there is no $model"; done

# The figures in the README are those of the data as it is; how many digits of them a run reproduces is the method's business.
for figure in '  objective    414[5-9]\.' '  non-zeros    1[0-9]* of 2773 features' '  accuracy     79\.' 'rows              1941$'; do
  grep -q -e "^$figure" "$PAWL_SOURCE/README.md" || fail "the README does not say '$figure'"
  said "^$figure"
done
