#!/bin/sh
# MLNet's figures at reduced size, and the size of a simulated cluster.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"
# shellcheck source=tests/cli/sim_scene.sh
. "${0%/*}/sim_scene.sh"
verb='sim mlnet'
small='--ports 4 --workers 12 --bytes 1' # 16 hosts in 8 racks

# 12 workers send half a GB each to 2 servers: 6 GB at 1.25 GB/s, up and down, take 9.6 s.
# shellcheck disable=SC2086 # several words
expect 0 "$pawl" sim mlnet --figure 1a $small --servers 2,12 --ecmp even --svg picture.svg
said 'fat tree of 16 hosts in 8 racks, 10 Gbit/s, ECMP even, 1:1'
said '      2  baseline  *9.6[01] .* 100.0 %'
said ' 12  binary, rotated'
grep -q '<polyline.*points="[0-9.,]* [0-9.,]* "/>' picture.svg || fail "no lines in the picture: $(cat picture.svg)"

# Over-subscribed, at another tier, by message, with incast.
# shellcheck disable=SC2086
expect 0 "$pawl" sim mlnet --figure 1b $small --servers 2 --tier core --aggregation message --incast 4 --json
said '"figure":"1b","workers":12,"servers":2,"setup":"baseline","push_bytes":1e9,"over":4.0,'
said '"setup":"near, rotated"'

# The size of a push is calibrated: with it, the published point holds.
expect 0 "$pawl" sim mlnet --figure 1a --servers 50
said ' 50  binary, rotated .* 22.0 %'
expect 1 "$pawl" sim mlnet --figure 1a --servers 50 --calibrate fixed --aggregation message
complained "no size of a push gives 22 % with 'binary, fixed'"

# shellcheck disable=SC2086
expect 0 "$pawl" sim mlnet --figure 2 $small --servers 4
said 'baseline  .* [0-9.]* '
# shellcheck disable=SC2086
expect 0 "$pawl" sim mlnet --figure 3 $small --servers 4 --models 5 --rounds 2 --json
said '"setup":"priorities"'
said '"setup":"binary, rotated + prio."'
[ "$(grep -c '"median_change_by_priorities":-' out)" -eq 5 ] || fail "priorities shorten no median: $(cat out)"

expect 2 "$pawl" sim mlnet
complained 'figure is needed'
refuses '1a, 1b, 2 or 3' --figure 4
refuses 'an even number' --figure 2 --ports 5
refuses 'do not fit on the 16 hosts' --figure 2 --ports 4 --workers 17
refuses 'numbers with commas' --figure 2 --servers 1,,2
refuses 'hosts, racks or core' --figure 2 --tier top
refuses 'hash or even' --figure 2 --ecmp best
refuses 'number from 1 to 1000' --figure 2 --over 0.5
refuses 'number from 1e-06' --figure 2 --bytes none
# shellcheck disable=SC2086
expect 1 "$pawl" sim mlnet --figure 2 $small --servers 2 --svg no/such/folder/x.svg
complained 'cannot write no/such/folder/x.svg: No such file or directory'

# Real roles on the data centre.
expect 0 "$pawl" sim scale --nodes 30 --servers 5 --json
said '"nodes":30,"servers":5,"clients":24,"phase":"join","complete":true,"clients_ready":24,'
said '"phase":"push and pull","complete":true,"clients_ready":24,'
verb='sim scale'
refuses 'whole number from 3' --nodes 2
refuses 'leave no room' --nodes 10 --servers 9
