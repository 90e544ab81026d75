#!/bin/sh
# Graphs of peers from the command line: known figures, files, racks, pictures, and what is refused.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# --- figures ----------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" graph show root --nodes 25
said '^graph         root, 25 nodes$'
said '^edges         50; each node sends to 2 and receives from 2$'
said '^connected     strongly$'
said '^weights       equal: 1/(in-degree + 1), doubly stochastic$'
said '^spectral gap  0.1419$'
said '^diameter      8$'
if grep -q '^bytes' out; then fail "bytes were not asked for: $(cat out)"; fi
expect 0 "$pawl" graph show root --nodes 25 --bytes 1M
said '^bytes         52428800 a round; at most 2097152 out of a node and 2097152 into one$'

# gap_of NAME NODES GAP [OPTION…]
gap_of() {
  name=$1 nodes=$2 gap=$3
  shift 3
  expect 0 "$pawl" graph show "$name" --nodes "$nodes" "$@"
  said "^spectral gap  $gap"
}
gap_of complete 25 '1$'
gap_of ring 25 '0.00788'
gap_of root 6 '0.3333'
gap_of root 64 '0.0601'
gap_of root 1024 '0.00415$'
gap_of star 25 '0.5$'
gap_of star 25 '0.04$' --weights metropolis
gap_of hypercube 64 '0.2857'
gap_of butterfly 24 '0.09691'

expect 0 "$pawl" graph show star --nodes 4
said "not doubly stochastic: those of node 0 add up to 1.75; '--weights metropolis' corrects that"
expect 0 "$pawl" graph show root --nodes 1
said '^graph         root, 1 node$'

# The chain is the one topology that is not strongly connected. Its figures are printed all the same.
expect 1 "$pawl" graph show chain --nodes 25
said '^spectral gap  0.00214$'
said '^connected     not strongly$'
said '^diameter      infinite$'
complained 'not strongly connected: no path leads from node 1 to node 0'

expect 0 "$pawl" graph show racks --nodes 32 --racks 8 --bytes 1000 --json
said '^{"graph":"racks","nodes":32,"edges":128,"out_min":4,"out_max":4,"in_min":4,"in_max":4,"connected":true,'
said '"weights":"equal","doubly_stochastic":true,"gap":0.15[0-9]*,"gap_exact":true,"diameter":5,"diameter_exact":true,'
said '"racks":8,"edges_between_racks":32,"bytes":128000,"bytes_out_max":4000,"bytes_in_max":4000}$'
expect 1 "$pawl" graph show chain --nodes 3 --json
said '"connected":false,.*"diameter":null,"diameter_exact":false,"no_path":\[1,0\]}$'

# --- seeds and the default --------------------------------------------------------------------------------------------------

# A terminal shows what the command computes; other places do not.
if command -v script >/dev/null; then
  TERM=xterm script -qec "'$pawl' graph show root --nodes 300" shown.out </dev/null >/dev/null || fail 'a terminal'
  grep -q 'computing the spectral gap of 300 nodes' shown.out || fail "no progress: $(cat shown.out)"
fi
expect 0 "$pawl" graph show root --nodes 300
[ ! -s err ] || fail "progress without a terminal: $(cat err)"
expect 0 "$pawl" graph show default --nodes 400
said '^graph         root, 400 nodes$'
expect 0 "$pawl" graph show default --nodes 401 --seed 7
said '^graph         random, 401 nodes, seed [0-9]*$'
said '^spectral gap  0.06'
expect 0 "$pawl" graph show random --nodes 50 --degree 3 --seed 4 --save one
expect 0 "$pawl" graph show random --nodes 50 --degree 3 --seed 4 --save again
expect 0 "$pawl" graph show random --nodes 50 --degree 3 --seed 5 --save other
cmp -s one again || fail 'a seed gives two graphs'
if cmp -s one other; then fail 'two seeds give one graph'; fi
# The best of seeds 4 and 5 is one of the two.
expect 0 "$pawl" graph show random --nodes 50 --degree 3 --seed 4 --tries 2 --save best
said 'seed [45]$'
cmp -s best one || cmp -s best other || fail '--tries gives another graph'

# --- files ------------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" graph show root --nodes 9 --save root9
[ "$(sed -n 1,2p root9)" = "$(printf 'nodes 9\n0: 1 3')" ] || fail "root9 is: $(cat root9)"
expect 0 "$pawl" graph check root9 --nodes 9
said '^graph         root9, 9 nodes$'
said '^spectral gap  0.3435$'
expect 1 "$pawl" graph check root9 --nodes 8
complained 'root9 has 9 nodes, not 8'
expect 1 "$pawl" graph check nothing
complained 'cannot read nothing: No such file'
printf '# two rings\nnodes 4\n0: 1\n1: 0\n2: 3\n3: 2\n' >two
expect 1 "$pawl" graph check two
complained 'no path leads from node 0 to node 2'
printf 'nodes 3\n0: 1\n1: 2\n2: 3\n' >wrong
expect 1 "$pawl" graph check wrong
complained '^pawl graph check: wrong:4: node 3 does not exist: the last node is 2$'
printf 'nodes 3\n0: 1 2\n1: 2\n2: 0\n' >uneven
expect 0 "$pawl" graph check uneven
said 'not doubly stochastic'
expect 1 "$pawl" graph check uneven --weights metropolis
complained 'metropolis weights need as many edges out of a node as into it, but node 0 has 2 out and 1 in'

# --- racks ------------------------------------------------------------------------------------------------------------------

printf 'north\nnorth\nsouth # new\nsouth\n  east\neast\n' >racks
expect 0 "$pawl" graph show racks --racks racks
said '^graph         racks, 6 nodes$'
said '^racks         3; 6 edges lead from one to another$'
expect 0 "$pawl" graph show ring --nodes 6 --racks racks
said '^racks         3; 3 edges lead from one to another$'
expect 1 "$pawl" graph show racks --nodes 7 --racks racks
complained 'racks has 6 lines, but there are 7 nodes'
printf 'north\n\nsouth\n' >gap
expect 1 "$pawl" graph show racks --racks gap
complained 'gap:2: no rack; expected the name of the rack of node 1'
: >empty
expect 1 "$pawl" graph show racks --racks empty
complained 'empty: the file is empty'
expect 1 "$pawl" graph show racks --racks nowhere
complained 'cannot read nowhere: No such file'

# --- pictures ---------------------------------------------------------------------------------------------------------------

# picture FILE NODES ARROWS TITLE: a well-formed picture with so many nodes and heads of arrows.
picture() {
  python3 - "$@" <<'END' || fail "the picture $1 is wrong"
import sys, xml.etree.ElementTree as tree
file, nodes, arrows, title = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
root = tree.parse(file).getroot()
name = lambda element: element.tag.split('}')[1]
all_of = lambda word: [e for e in root.iter() if name(e) == word]
texts = [''.join(e.itertext()) for e in all_of('text')]
heads = [e for e in all_of('path') if e.get('d').endswith('Z')]
assert name(root) == 'svg' and title in texts[1], texts
assert len(all_of('circle')) == nodes, len(all_of('circle'))
assert len(heads) == arrows, len(heads)
for circle in all_of('circle'):
    assert 0 < float(circle.get('cx')) < 760 and 0 < float(circle.get('cy')) < 850
assert 'nan' not in open(file).read()
END
}
expect 0 "$pawl" graph show root --nodes 25 --svg root.svg
picture root.svg 25 50 'spectral gap 0.1419, 50 edges, diameter 8'
expect 0 "$pawl" graph show complete --nodes 8 --svg complete.svg
picture complete.svg 8 56 '56 edges'
expect 0 "$pawl" graph show racks --nodes 32 --racks 6 --svg racks.svg
picture racks.svg 32 170 '170 edges'
expect 0 "$pawl" graph show ring --nodes 1 --svg single.svg
picture single.svg 1 0 '0 edges'
printf 'nodes 2\n0: 1\n1: 0\n' >'a<b>&c'
expect 0 "$pawl" graph check 'a<b>&c' --svg names.svg
picture names.svg 2 2 'diameter 1'
expect 1 "$pawl" graph show ring --nodes 257 --svg large.svg
complained 'draws at most 256 nodes and 10000 edges, not 257 and 257'
expect 1 "$pawl" graph show ring --nodes 5 --svg nowhere/ring.svg
complained 'cannot write nowhere/ring.svg: No such file'
expect 1 "$pawl" graph show ring --nodes 5 --save nowhere/ring
complained 'cannot write nowhere/ring: No such file'

# --- the list, and what cannot be meant -------------------------------------------------------------------------------------

expect 0 "$pawl" graph list
for name in default complete star ring chain root random hypercube butterfly racks; do said "^$name "; done
expect 0 "$pawl" graph list --json
said '^{"graph":"root","nodes":"any","degree":"2","summary":'

expect 2 "$pawl" graph show rot --nodes 5
complained "unknown graph 'rot'; did you mean 'root'?"
expect 2 "$pawl" graph show root
complained 'missing --nodes N'
expect 2 "$pawl" graph show butterfly --nodes 60
complained 'such as 24 or 64, not 60'
expect 2 "$pawl" graph show complete --nodes 100000
complained '9999900000 edges are more than 67108864; choose a sparser topology or fewer nodes'
while read -r wrong; do
  # shellcheck disable=SC2086
  expect 2 "$pawl" graph $wrong
done <<'END'
show
show root --nodes 0
show root --nodes many
show root --nodes 2000000
show ring --nodes 5 --degree 2
show ring --nodes 5 --seed 2
show default --nodes 500 --tries 2
show random --nodes 5 --degree 5
show random --nodes 5 --degree 0
show random --nodes 5 --tries 0
show hypercube --nodes 12
show racks --nodes 8
show racks --nodes 8 --racks 9
show racks --nodes 8 --racks 0
show racks --racks 2
show racks --nodes 8 --racks 2 --degree 5
show root --nodes 8 --weights heavy
show root --nodes 8 --bytes 0
show root --nodes 100 --bytes 16383P
check
check a b
draw
END

# --- short paths ------------------------------------------------------------------------------------------------------------

expect 0 "$pawl" graph optimise --nodes 8 --save short8 --svg short8.svg --staleness 3
said '^optimised             106 .* 3 '
said '^root                  1[0-9][0-9] '
said '^lower bound           104$'
said '^proven       no graph has a smaller sum: branch and bound'
said '^staleness    a worker lacks at most 11 clocks of any other, if links allow 3$'
grep -q '<svg' short8.svg || fail 'no picture was drawn'
expect 0 "$pawl" graph check short8 --nodes 8
said '^edges         16; '
said '^diameter      3$'
expect 0 "$pawl" graph optimise --nodes 1000 --steps 20 --balanced --json
said '"balanced":true,.*"in_min":2,"in_max":2,"lower_bound":7987000,.*"proven":false,.*"others":{"root":{"sum":30532000,'
[ "$(sed 's/.*"sum":\([0-9]*\),"mean".*"others".*/\1/' out)" -le 8336994 ] || fail "the sum is above kautz: $(cat out)"
expect 0 "$pawl" graph optimise --nodes 300 --steps 1000000000 --seconds 1 --save stopped
said '^not proven   a smaller sum, down to [0-9]*, has not been ruled out; the search was stopped$'
expect 0 "$pawl" graph check stopped --nodes 300
said '^connected     strongly$'
expect 0 "$pawl" graph optimise --nodes 9 --degree 8
said '^proven       no graph has a smaller sum: it is the lower bound$'
expect 2 "$pawl" graph optimise --nodes 9 --degree 9
complained 'a node of 9 sends to at least 1 and at most 8 others, not to 9'
expect 2 "$pawl" graph optimise --nodes 1
complained 'expected a number of nodes, 2 to 2048'
expect 2 "$pawl" graph optimise
complained 'missing --nodes N'
expect 1 "$pawl" graph optimise --nodes 5 --save nowhere/graph
complained 'cannot write nowhere/graph: No such file'
