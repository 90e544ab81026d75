#!/bin/sh
# tools/layers on a small tree with planted violations: each is reported, and nothing else.
set -eu
layers=$PAWL_SOURCE/tools/layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# Adds a line to a file of the tree. With a third argument, what must be reported for that line.
line() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >>"$tree/$1"
  if [ $# = 3 ]; then
    printf '%s:%d: %s\n' "$1" "$(wc -l <"$tree/$1")" "$3" >>"$tree/expected"
  fi
}

# What is there to be included.
for header in base/log net/net wire/frame store/store ring/ring graph/graph sync/task peer/item role/server sim/sim \
  host/http api/api cli/cmd; do
  line "src/$header.h" '/* a header */'
done
line include/pawl/pawl.h '#include <pawl/range.h>'
line include/pawl/range.h '#include <stdint.h>'
: >"$tree/expected"

# The sound part: every line below is allowed.
line src/base/hash.c '#include "base/log.h"'
line src/base/hash.c '#include <xxhash.h>'
line src/net/tcp/tcp.c '#include "net/net.h"'
line src/net/tcp/tcp.c '#include "../net.h"'
line src/net/tcp/tcp.c '#include "base/log.h"'
line src/net/tcp/tcp.c '#include <net/if.h>' # the system's, not the room's
line src/net/tcp/tcp.c '#include <pawl/pawl.h>'
line src/net/tcp/tcp.c '/* #include "wire/frame.h" in a comment */'
line src/net/tcp_test.c '#include "wire/frame.h"'
line src/net/tcp_test.c '#include "cli/cmd.h"'
line src/server/server.c '#include "peer/item.h"'
line src/server/server.c '#include "store/store.h"'
line src/sim/sim.c '#include "server/server.h"'
line src/host/http/http.c '#include "sim/sim.h"'
line src/api/node.c '#include "host/http/http.h"'
line src/cli/main.c '#include "sim/sim.h"'
line apps/lda/lda.c '#include <pawl/pawl.h>'
line apps/lda/lda.c '#include "lda.h"'
line apps/lda/lda.h '#include <math.h>'
line tests/whole.c '#include "cli/cmd.h"'
line bench/keys.c '#include "wire/frame.h"'
line fuzz/frame_fuzz.c '#include "wire/frame.h"'

# The planted part.
line src/base/bad.c '#include "base/log.h"'
line src/base/bad.c '#include "net/net.h"' 'room base may not look into room net'
line src/net/bad.c '#include "wire/frame.h"' 'room net may not look into room wire'
line src/wire/bad.h '#  include "net/net.h"' 'room wire may not look into room net'
line src/wire/deep/bad.c '#include "../../net/net.h"' 'room wire may not look into room net'
line src/store/bad.c '#include "ring/ring.h"' 'room store may not look into room ring'
line src/sync/bad.c '#include <graph/graph.h>' 'room sync may not look into room graph'
line src/graph/bad.c '#include "sync/not_written_yet.h"' 'room graph may not look into room sync'
line src/peer/bad.c '#include "server/server.h"' 'room peer may not look into room role'
line src/role/bad.c '#include "sim/sim.h" /* why not? */' 'room role may not look into room sim'
line src/sim/bad.c '#include "host/http/http.h"' 'room sim may not look into room host'
line src/host/bad.c '#include "api/api.h"' 'room host may not look into room api'
line src/api/bad.c '#include "cli/cmd.h"' 'room api may not look into room cli'
line src/api/bad.c '#include "../../tests/help.h"' 'room api may not look into room tests'
line src/cli/bad.c '#include "net/tcp_test.c"' 'room cli may not include a test, net/tcp_test.c'
line src/attic/bad.c '#include <stdio.h>' 'room attic is not in the list of rooms'
line src/stray.c '#include <stdio.h>' 'a source outside every room'
line include/pawl/bad.h '#include "base/log.h"' 'room include may not look into room base'
line include/pawl/bad.h '#include <openssl/ssl.h>' \
  'room include may only look into the C library, not into <openssl/ssl.h>'
line apps/lda/bad.c '#include "base/log.h"' 'room apps may not look into room base'
line examples/bad.c '#include "../src/net/net.h"' 'room examples may not look into room net'
line python/bad.c '#include "api/api.h"' 'room python may not look into room api'

LC_ALL=C sort "$tree/expected" >"$tree/wanted"
if "$layers" "$tree" >"$tree/reported"; then
  echo "tools/layers took a tree with violations for a clean one"
  exit 1
fi
LC_ALL=C sort "$tree/reported" | diff -u "$tree/wanted" - || exit 1
echo "$(wc -l <"$tree/wanted") planted violations, all found"

# Without them the tree is clean.
find "$tree" -name 'bad.*' -delete
rm "$tree/src/stray.c"
"$layers" "$tree"
