#!/bin/sh
# OSDI'14's figures at reduced size.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/sim_scene.sh
. "${0%/*}/sim_scene.sh"
verb='sim osdi'
small='--blocks 4 --workers 2'

# shellcheck disable=SC2086 # several words
expect 0 "$pawl" sim osdi --figure 13 $small --tau 0,adaptive --svg picture.svg
said ' 0 .* %'
said 'adaptive .*the last bound is'
grep -q '</svg>' picture.svg || fail "no picture: $(cat picture.svg)"
# shellcheck disable=SC2086
expect 0 "$pawl" sim osdi --figure 10 $small --tau 2
said ' A .* %'
said ' B .* %'
said 'tau 2 .* %'
[ "$(grep -c 'worker *[01]: computing' out)" -eq 6 ] || fail "a worker is missing: $(cat out)"
# shellcheck disable=SC2086
expect 0 "$pawl" sim osdi --figure 10 $small --tau 2 --json
said '"sim":"osdi","system":"A","wait_pct":'

# 16 workers sample 1,000 tokens each at 1 per ms: a sweep takes a second, and as long on any number of machines if there
# are as many tokens for each. Twice the machines are twice as fast as long as sampling takes longer than sending.
expect 0 "$pawl" sim osdi --figure 14 --machines 20,40 --users 0.001 --tokens 16 --words 0.01 --sampling 0.001 --svg picture.svg
said ' 20 *4 .* 1.00 .* 1.00 '
said ' 40 *8 .* 0.50 .* \(1.9[0-9]\|2.0[0-9]\) '
# With links that are too slow for the rows, more machines hardly help.
expect 0 "$pawl" sim osdi --figure 14 --machines 20,40 --users 0.001 --tokens 16 --words 0.001 --sampling 0.001 --link 0.001 --json
said '"machines":40,"servers":8,"calibrated":false,'
said '"speedup":1\.[56]'
expect 1 "$pawl" sim osdi --figure 14 --users 0.001 --words 0.001 --row-bytes 1 --tokens 1000000 --link 10000 --machines 20
complained 'give --sampling'

# 4 servers of 10 million items a second; the network would take 2 machines * 1 Gbit/s / 50 bits = 40 million.
expect 0 "$pawl" sim osdi --figure table5 --machines 2 --servers 2 --items 10 --link 10 --pair-bits 50 --seconds 4 --json
said '"server_items_per_s":1e7,'
said '"peak_per_s":4.*e7,"average_per_s":2.9[0-9]*e7,'
expect 0 "$pawl" sim osdi --figure table5 --machines 2 --servers 2 --items 100 --link 1 --pair-bits 50 --seconds 4 --gap 0
said 'peak, billion items a second  *0.04'
expect 0 "$pawl" sim osdi --figure table5 --seconds 4 --svg picture.svg
said 'peak, billion items a second  *1.3'

expect 2 "$pawl" sim osdi
complained 'figure is needed'
refuses '10, 13, 14 or table5' --figure 12
refuses 'inf or adaptive' --figure 13 --tau 0,,1
refuses 'whole number from 1 to 32' --figure 13 --workers 33
refuses 'each from 2 to 20000' --figure 14 --machines 1
refuses 'number from 0.001' --figure 14 --sampling 0
refuses 'number from 2 to 3600' --figure table5 --seconds 1
expect 1 "$pawl" sim osdi --figure table5 --seconds 2 --svg no/such/folder/x.svg
complained 'cannot write no/such/folder/x.svg: No such file or directory'
