#!/bin/sh
# Data files become caches, and bad ones are named.
set -eu
# shellcheck source=tests/cli/scene.sh
. "${0%/*}/scene.sh"

awk 'BEGIN { for (i = 1; i <= 1000; i++) print (i % 2 ? "+1" : "-1"), i ":0.5", i + 1 ":2" }' >rows.svm
gzip -c rows.svm >rows.svm.gz

expect 0 "$pawl" convert rows.svm -o rows.cache
said '^rows.cache: 1000 rows, 2000 entries, features up to 1001$'
said '^read 0.0 MB of libsvm in 1 file, wrote '
said '^next: pawl train logistic rows.cache$'
[ ! -s err ] || fail 'something is said without a terminal'
[ ! -e rows.cache.new ] || fail 'the unfinished file is left'

# Packed, or several, or a cache itself: the same rows, and the same cache.
expect 0 "$pawl" convert rows.svm.gz -o packed.cache --threads 2
cmp rows.cache packed.cache || fail 'a cache depends on how the text was packed'
expect 0 "$pawl" convert rows.cache -o again.cache
cmp rows.cache again.cache || fail 'a cache of a cache differs'
expect 0 "$pawl" convert 'rows.*' -o all.cache --json
said '^{"cache":"all.cache","format":"cache","files":3,"rows":3000,"entries":6000,"max_id":1001,"skipped":0,"unknown":0,"bytes_read":[0-9]*,'

# Bad rows are named; as many as were allowed are left out.
printf '1 1:1\n1 2:x\n\n-1 :3\n-1 4:4\n' >bad.svm
expect 1 "$pawl" convert bad.svm -o bad.cache
complained '^pawl convert: bad.svm:2:5: expected a number$'
complained '^skip up to N bad rows with --skip-bad N$'
[ ! -e bad.cache ] || fail 'there is a cache of bad data'
expect 1 "$pawl" convert bad.svm -o bad.cache --skip-bad 1
complained '^pawl convert: bad.svm:4:4: expected a feature id before the colon$'
expect 0 "$pawl" convert bad.svm -o bad.cache --skip-bad 2
said '^skipped 2 bad rows, the first: bad.svm:2:5: expected a number$'

# Files that are none.
expect 1 "$pawl" convert nowhere.svm -o x.cache
complained '^pawl convert: nowhere.svm: No such file or directory$'
: >empty.svm
expect 1 "$pawl" convert empty.svm -o x.cache
complained '^pawl convert: empty.svm: the file is empty$'
expect 1 "$pawl" convert rows.cache -o rows.cache
complained '^pawl convert: rows.cache: this file is also an input$'
expect 1 "$pawl" convert rows.svm -o no/where.cache
complained '^pawl convert: no/where.cache.new: No such file or directory$'
head -c 1000 rows.cache >cut.cache
expect 1 "$pawl" convert cut.cache -o x.cache
complained '^pawl convert: cut.cache: the cache is truncated$'

# A table, by the name of its label.
printf 'colour,size,clicked\nred,2,1\nblue,,0\n' >table.csv
expect 0 "$pawl" convert table.csv --label clicked -o table.cache --json
said '"format":"csv","files":1,"rows":2,"entries":3,'
expect 1 "$pawl" convert table.csv --label bought -o table.cache
complained 'table.csv: no column has the name or number given for the label'

# Documents: three ways to write the same ones.
printf '2 0:2 1:1\n0\n1 2:3\n' >three.ldac
printf '3\n3\n3\n1 1 2\n1 2 1\n3 3 3\n' >three.uci
printf 'Apple, apple; bear.\n\nCAT cat dog cat\n' >three.txt
printf 'apple\nbear\ncat\n' >three.words
expect 0 "$pawl" convert three.ldac --vocab three.words -o ldac.cache
said '^ldac.cache: 3 rows, 3 entries, features up to 3$'
said '^next: pawl train lda ldac.cache$'
expect 0 "$pawl" convert three.uci -o uci.cache
said '^uci.cache: 2 rows, 3 entries, features up to 3$'
expect 0 "$pawl" convert three.txt --format text --vocab three.words -o text.cache
said '^skipped 1 word not in the vocabulary$'
cmp ldac.cache text.cache || fail 'a text is not the documents that are in it'
expect 0 "$pawl" convert three.txt --format text --vocab three.words -o text.cache --json
said '"format":"text".*"unknown":1,'
printf 'apple\nbear\n' >two.words
expect 1 "$pawl" convert three.ldac --vocab two.words -o x.cache
complained 'three.ldac:3:3: word 2 is not in the vocabulary, which has 2 words, counted from 0'
printf 'apple\nbear\napple\n' >twice.words
expect 1 "$pawl" convert three.ldac --vocab twice.words -o x.cache
complained 'twice.words:3: duplicate of the word in line 1'
head -n 5 three.uci >early.uci
expect 1 "$pawl" convert early.uci -o x.cache
complained 'early.uci: the file is truncated: it has 2 of 3 entries'
expect 1 "$pawl" convert three.txt -o x.cache --format ldac
complained 'three.txt:1:1: expected the number of words, a whole number'
