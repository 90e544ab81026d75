#!/bin/sh
# Sketches from the command line: a cluster for one command alone, and one that stays; good input and bad.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

# A thousand words of which word i comes 1000 / i times.
awk 'BEGIN { for (i = 1; i <= 1000; i++) for (k = 0; k < int(1000 / i); k++) print "word" i }' >words
total=$(wc -l <words | tr -d ' ')

# --- a cluster for this command alone ---------------------------------------------------------------------------------------

expect 0 "$pawl" sketch insert $patience --from words --top 3 --distinct
said "added $total to sketch/main"
said '^ *1  *1000  word1$'
said '^ *2  *500  word2$'
said '^ *3  *333  word3$'
said '^\(9[89][0-9]\|10[0-2][0-9]\|1000\) distinct keys'
expect 0 sh -c "cat words | '$pawl' sketch insert --from - --json --top 1 --no-aggregate"
said "^{\"sketch\":\"sketch/main\",\"added\":$total,\"left_out\":0,\"merged\":0,\"pairs\":$total,\"bytes\":[0-9]*,\"bits_per_pair\":[0-9.]*,"
said '^{"rank":1,"key":"word1","count":1000,"error":[0-9.]*,"capped":false}$'

# --- one that stays -----------------------------------------------------------------------------------------------------------

start manager "$pawl" manager --listen 127.0.0.1:0 --http none --data none --replicas 0
PAWL_ADDRESS=$(address_of manager)
export PAWL_ADDRESS
start server "$pawl" server --join "$PAWL_ADDRESS" --http none

expect 0 "$pawl" sketch create $patience web/words --banks 16
expect 1 "$pawl" sketch create $patience web/words
complained 'a sketch or vector web/words already exists'
expect 0 "$pawl" sketch insert $patience web/words --from words
expect 0 "$pawl" sketch insert $patience web/words --from words
expect 0 "$pawl" sketch query $patience web/words word1 word4 nothing
said '^word1 2000 (at most [0-9]* too many)$'
said '^word4 500 '
said '^nothing 0 '
expect 0 "$pawl" sketch query $patience web/words word1 --json
said '^{"key":"word1","count":2000,"error":[0-9.]*,"capped":false}$'
expect 0 "$pawl" sketch top $patience web/words 2
[ "$(wc -l <out | tr -d ' ')" -eq 2 ] || fail "two lines, not: $(cat out)"
said '^ *1  *2000  word1$'
expect 0 "$pawl" sketch distinct $patience web/words --json
said '^{"distinct":[0-9.]*,"error":[0-9.]*}$'

# Weights; bad lines are named, left out, and all others counted.
printf 'apple\t5\npear\nplum\t-3\n\t4\nfig\tmany\nkiwi\t99999999999999999999\napple\t7\nlast\t1' >fruit
expect 1 "$pawl" sketch insert $patience web/fruit --from fruit --weights
complained '^fruit:2: missing weight$'
complained '^fruit:3: the weight is negative, which CountMin cannot count$'
complained '^fruit:4: empty key$'
complained '^fruit:5: the weight is not a whole number$'
complained '^fruit:6: the weight does not fit in 63 bits$'
complained '5 of 8 lines are invalid and were skipped; all others are counted'
said 'added 3 to web/fruit'
expect 0 "$pawl" sketch query $patience web/fruit apple last plum
said '^apple 12 '
said '^last 1 '
said '^plum 0 '
printf 'apple\t5\nplum\t-3\n' >signed
expect 0 "$pawl" sketch insert $patience web/signed --from signed --weights --kind countsketch
expect 0 "$pawl" sketch query $patience web/signed plum
said '^plum -3 (+/-'

# Weights that overflow: nothing of that push is applied.
awk 'BEGIN { for (i = 0; i < 3; i++) print "big\t9223372036854775807" }' >big
expect 1 "$pawl" sketch insert $patience web/big --from big --weights
complained 'does not fit its type'
expect 0 "$pawl" sketch query $patience web/big big
said '^big 0 '

# Numbers.
printf '\007\000\000\000\000\000\000\000\007\000\000\000\000\000\000\000\001' >numbers
expect 1 "$pawl" sketch insert $patience web/numbers --from numbers --binary
complained 'numbers:3: fewer than 8 bytes at the end'
expect 0 "$pawl" sketch query $patience web/numbers --number 7 8
said '^7 2 '
said '^8 0 '

# Time windows, by a column.
awk 'BEGIN { for (t = 1000; t < 1006; t++) print t * 60 "\tx\t" t }' >times.tsv
expect 0 "$pawl" sketch insert $patience web/times --from times.tsv --times --weights --window 60s --windows 3
expect 0 "$pawl" sketch query $patience web/times x
said "^x $((1003 + 1004 + 1005)) "
expect 0 "$pawl" sketch query $patience web/times x --last 1
said '^x 1005 '
expect 0 "$pawl" sketch query $patience web/times x --last 1 --until $((1004 * 60))
said '^x 1004 '
expect 0 "$pawl" sketch query $patience web/times x --until now
said '^x 0 '
expect 0 "$pawl" sketch top $patience web/times --last 2 --json
said '^{"rank":1,"key":"x","count":2009,'
expect 0 sh -c "printf 'a\na\n' | '$pawl' sketch insert web/now $patience --from - --window 1h"
expect 0 "$pawl" sketch query $patience web/now a --until now
said '^a 2 '

# Listing and dropping.
expect 0 "$pawl" sketch list $patience web
said '^web/times  *countmin  *64  *4  *1024  3 of 60 s  *top distinct'
said '^web/words  *countmin  *16 '
expect 0 "$pawl" sketch drop $patience web/words
expect 1 "$pawl" sketch query $patience web/words word1
complained 'sketch web/words not found'
expect 1 "$pawl" sketch drop $patience web/words
complained 'sketch web/words not found'
expect 0 "$pawl" put $patience web/plain --create 1=2
expect 1 "$pawl" sketch top $patience web/plain
complained 'web/plain is a vector, not a sketch'

# What cannot be meant.
expect 1 "$pawl" sketch insert $patience web/new --from nowhere
complained 'cannot read nowhere: No such file'
expect 1 "$pawl" sketch insert $patience web/times --from times.tsv --window 30s --windows 3
complained 'with other options'
expect 1 "$pawl" sketch insert $patience web/fruit --from times.tsv --times
complained 'time windows'
expect 1 "$pawl" sketch create $patience web/odd --columns 1000
complained '1000'
while read -r wrong; do
  # shellcheck disable=SC2086
  expect 2 "$pawl" sketch $wrong
done <<'END'
insert web/x
insert --from words
insert web/x --from words --binary --weights
insert web/x --from words --top 0
insert web/x --from words --top 5 --no-top
insert web/x --from words --window soon
create web/x --windows 5
create web/x --kind other
create web/x --banks 0
create
query web/x
query web/numbers --number seven
top web/x 0
distinct
drop
list a b
count
END
