#!/bin/sh
# A program in C++ that calls Lapser as the listings of chapter 4 of the thesis do is compiled against <pawl/lapser.h>,
# without a change, and runs as one process and as three. So does one with several contexts, in C and in C++, against
# <pawl/multilapser.h>. The headers are also compiled alone.
# labels: nosan
set -eu
folder=$(mktemp -d)
children=
# shellcheck disable=SC2086 # one word per process
trap 'kill $children 2>/dev/null; rm -rf "$folder"' EXIT
unset PAWL_ADDRESS
cxx=${CXX:-c++}
if ! command -v "$cxx" >/dev/null; then
  echo "skipped: there is no C++ compiler here"
  exit 77
fi

fail() {
  echo "$1"
  if [ $# -gt 1 ]; then cat "$2"; fi
  exit 1
}

for header in lapser multilapser; do
  echo "#include <pawl/$header.h>" >"$folder/header.c"
  cp "$folder/header.c" "$folder/header.cc"
  for standard in c11 c17; do
    "${CC:-cc}" -std=$standard -pedantic -Wall -Wextra -Wconversion -Werror -I "$PAWL_SOURCE/include" -fsyntax-only \
      "$folder/header.c" || fail "$header.h is not good C ($standard)"
  done
  for standard in c++11 c++17; do
    "$cxx" -std=$standard -pedantic -Wall -Wextra -Wconversion -Werror -I "$PAWL_SOURCE/include" -fsyntax-only \
      "$folder/header.cc" || fail "$header.h is not good C++ ($standard)"
  done
done
printf '#include <pawl/lapser.h>\n#include <pawl/multilapser.h>\n' >"$folder/both.c"
if "${CC:-cc}" -I "$PAWL_SOURCE/include" -fsyntax-only "$folder/both.c" 2>"$folder/said"; then
  fail "both headers in one file should be refused"
fi
grep -q 'include <pawl/multilapser.h> instead' "$folder/said" || fail "the compiler should say what to do:" "$folder/said"

# Users and movies are items; the keys of movies begin behind those of users, and those of sums behind both. The numbers
# mean nothing: each row says whose it is and of which iteration.
cat >"$folder/program.cc" <<'END'
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <unordered_set>
#include <vector>
#include "lapser.h"

static const int num_latent = 4, users = 30, movies = 20, update_freq = 2;
static int procid, nprocs, iter;
static std::vector<Key> global_to_produce, global_to_consume, sums_to_produce, sums_to_consume;

struct Sys {
  int count, adjustment, other_offset;
  std::vector<double> items;
  std::vector<Key> to_produce, to_consume;
  double *items_ptr = nullptr;

  Sys(int rows, int first, int other) : count(rows), adjustment(first), other_offset(other), items(rows * num_latent) {
    items_ptr = items.data();
  }
  int from() const { return count * procid / nprocs; }
  int to() const { return count * (procid + 1) / nprocs; }

  void build_conn(Sys &other) {
    to_produce.resize(to() - from());
    std::iota(to_produce.begin(), to_produce.end(), from() + adjustment);
    std::unordered_set<Key> temp;
    for (int idx = from(); idx < to(); ++idx)
      for (int row = idx % 3; row < other.count; row += 3) {
        if (other.from() <= row && row < other.to()) continue;
        temp.insert(row + other_offset);
      }
    other.to_consume.assign(temp.begin(), temp.end());
    global_to_produce.insert(global_to_produce.end(), to_produce.begin(), to_produce.end());
    global_to_consume.insert(global_to_consume.end(), temp.begin(), temp.end());
  }

  void send_item(int i) {
    for (int k = 0; k < num_latent; ++k) items_ptr[i * num_latent + k] = (i + adjustment) * 100.0 + iter + 1;
    auto size = num_latent * sizeof(double);
    auto offset = i * size;
    lapser_set(i + adjustment, ((Byte *)items_ptr) + offset, size, iter + 1);
  }

  void get_items() {
#pragma omp parallel for
    for (size_t i = 0; i < to_consume.size(); ++i) {
      Key k = to_consume[i];
      int row = k - adjustment;
      size_t item_offset = row * num_latent;
      auto res = lapser_get(k, &items_ptr[item_offset], sizeof(double) * num_latent, iter + 1, update_freq);
      assert(0 == res);
      double age = k * 100.0 + iter + 1 - items_ptr[item_offset];
      bool is_default = items_ptr[item_offset] == 0 && iter + 1 <= update_freq;
      if (res != 0 || (!is_default && age > update_freq)) abort();
    }
  }
};

int main() {
  uint32_t rank, size;
  if (pawl_lapser_rank(&rank, &size)) return 1;
  procid = rank;
  nprocs = size;
  Sys u(users, 0, users), m(movies, users, 0);
  u.build_conn(m);
  m.build_conn(u);
  sums_to_produce = {(Key)(users + movies + procid)};
  for (int i = 0; i < nprocs; ++i)
    if (i != procid) sums_to_consume.push_back(users + movies + i);
  global_to_produce.insert(global_to_produce.end(), sums_to_produce.begin(), sums_to_produce.end());
  global_to_consume.insert(global_to_consume.end(), sums_to_consume.begin(), sums_to_consume.end());
  int total_items = users + movies + nprocs;
  if (lapser_init(total_items, sizeof(double) * num_latent, global_to_produce.data(), global_to_produce.size(),
                  global_to_consume.data(), global_to_consume.size(), update_freq))
    return 1;
  double last = 0;
  for (iter = 0; iter < 25; ++iter) {
    for (Sys *sys : {&u, &m}) {
      for (int i = sys->from(); i < sys->to(); ++i) sys->send_item(i);
      sys->get_items();
    }
    std::vector<double> sum(num_latent, procid + 1), temp_sum(num_latent);
    size_t item_size = sizeof(double) * num_latent;
    lapser_set(sums_to_produce[0], sum.data(), item_size, iter + 1);
    for (size_t i = 0; i < sums_to_consume.size(); ++i) {
      lapser_get(sums_to_consume[i], temp_sum.data(), item_size, iter + 1, 0);
      sum[0] += temp_sum[0];
    }
    last = sum[0];
  }
  printf("the sum of %d processes is %g\n", nprocs, last);
  return lapser_finish();
}
END

openmp=
echo 'int main() { return 0; }' >"$folder/probe.cc"
if "$cxx" -fopenmp "$folder/probe.cc" -o "$folder/probe" 2>/dev/null; then openmp=-fopenmp; fi
build() { # OUTPUT [FLAG]...
  output=$1
  shift
  # shellcheck disable=SC2086 # perhaps no word
  "$cxx" -std=c++17 -O1 -Wall -Wextra -Wno-unknown-pragmas -Werror $openmp "$@" -I "$PAWL_SOURCE/include" \
    -I "$PAWL_SOURCE/include/pawl" -L "$PAWL_BUILD" -Wl,-rpath,"$PAWL_BUILD" -o "$output" -lpawl
}
build "$folder/program" "$folder/program.cc" || fail "the program is not compiled"
"$folder/program" >"$folder/alone" 2>&1 || fail "the program fails as one process:" "$folder/alone"
grep -q 'the sum of 1 processes is 1$' "$folder/alone" || fail "the program prints:" "$folder/alone"

# Two contexts with the same keys and other values: in the first one a process reads its right neighbour, in the second
# one its left neighbour.
cat >"$folder/contexts.c" <<'END'
#include <assert.h>
#include "multilapser.h"

static void check(int is_right) {
  if (!is_right) abort();
}

static void use(lapser_ctx *context, Key own, Key other, Clock clock, Byte sign) {
  Byte value = (Byte)(own + clock + sign), read = 0;
  check(lapser_set(own, &value, sizeof value, (int64_t)clock, context) == 0);
  size_t res = lapser_get(other, &read, sizeof read, (int64_t)clock, 0, context);
  check(res == 0 && read == (Byte)(other + clock + sign));
}

static void ignore(void *context, const char *call, pawl_status status, const char *text) {
  (void)call;
  (void)text;
  *(int *)context = status;
}

/* Values that the calls return, and nothing but these. */
static void misuse(lapser_ctx *open, lapser_ctx *freed, Key own, Key foreign) {
  int last = 0;
  Byte value = 0;
  pawl_lapser_on_failure(ignore, &last);
  check(lapser_get(own, &value, 1, 1, 0, NULL) == (size_t)-PAWL_INVALID && last == PAWL_INVALID);
  check(lapser_set(foreign, &value, 1, 9, open) == PAWL_NOT_FOUND);
  check(lapser_init(1, 1, &own, 1, NULL, 0, 0, open) == PAWL_EXISTS);
  check(lapser_free_ctx(open) == PAWL_INVALID);
  check(lapser_free_ctx(freed) == PAWL_INVALID);
  check(lapser_finish(freed) == PAWL_INVALID);
  pawl_lapser_on_failure(NULL, NULL);
}

int main(void) {
  uint32_t rank, processes;
  lapser_ctx *right_ones = NULL, *left_ones = NULL, *spare = NULL;
  if (pawl_lapser_rank(&rank, &processes)) return 1;
  Key own = rank, right = (rank + 1) % processes, left = (rank + processes - 1) % processes;
  for (int turn = 0; turn < 3; turn++) { /* the numbers of contexts are used again */
    check(lapser_init_config_ctx(&right_ones) == 0);
    check(lapser_init(processes, sizeof(Byte), &own, 1, &right, 1, 0, right_ones) == 0);
    check(lapser_init(processes, sizeof(Byte), &own, 1, &left, 1, 0, &left_ones) == 0);
    check(left_ones != right_ones);
    for (Clock clock = 1; clock <= 20; clock++) {
      use(right_ones, own, right, clock, 1);
      use(left_ones, own, left, clock, 100);
    }
    check(lapser_init_config_ctx(&spare) == 0 && lapser_free_ctx(spare) == 0);
    misuse(right_ones, spare, own, processes);
    check(lapser_finish(left_ones) == 0);
    check(lapser_finish(right_ones) == 0);
    check(lapser_free_ctx(right_ones) == 0);
  }
  puts("the contexts are apart");
  return 0;
}
END

"$PAWL_COMMAND" manager --listen 127.0.0.1:0 --http none --ready-fd 3 3>"$folder/manager" >/dev/null &
children=$!
for _ in $(seq 2000); do
  if grep -q '^ready' "$folder/manager"; then break; fi
  sleep 0.1
done
PAWL_ADDRESS=$(sed -n 's/^ready address=//p' "$folder/manager")
export PAWL_ADDRESS PAWL_LAPSER_MEMBERS=3
three() { # PROGRAM VARIANT LINE: each of three processes prints the line
  workers=
  for i in 1 2 3; do
    PAWL_LAPSER_GROUP=listings/$1-$2 PAWL_LAPSER_VARIANT=$2 "$folder/$1" >"$folder/out$i" 2>&1 &
    workers="$workers $!"
  done
  for worker in $workers; do wait "$worker" || bad=yes; done
  cat "$folder"/out? >"$folder/all"
  if [ -n "${bad:-}" ] || [ "$(grep -c "$3\$" "$folder/all")" != 3 ]; then
    fail "three processes of $1 ($2) should say '$3', and print:" "$folder/all"
  fi
}
for variant in push pull; do three program $variant 'the sum of 3 processes is 6'; done

"${CC:-cc}" -std=c11 -O1 -Wall -Wextra -Werror -I "$PAWL_SOURCE/include" -I "$PAWL_SOURCE/include/pawl" \
  -L "$PAWL_BUILD" -Wl,-rpath,"$PAWL_BUILD" "$folder/contexts.c" -o "$folder/contexts" -lpawl ||
  fail "the program with contexts is not compiled as C"
build "$folder/contexts_cc" -x c++ "$folder/contexts.c" -x none || fail "the program with contexts is not compiled as C++"
three contexts push 'the contexts are apart'
three contexts_cc pull 'the contexts are apart'
(unset PAWL_ADDRESS PAWL_LAPSER_MEMBERS && "$folder/contexts") >"$folder/alone" 2>&1 ||
  fail "the program with contexts fails as one process:" "$folder/alone"

# A program with types of these names, which ignores what the functions return.
cat >"$folder/careless.cc" <<'END'
#include "lapser.h"
enum class Key { door };
struct Byte {};
int main() {
  lapser_finish();
  puts("went on");
  return 0;
}
END
build "$folder/careless" -DPAWL_LAPSER_NO_TYPES "$folder/careless.cc"
"$folder/careless" >"$folder/said" 2>&1 || fail "a failure should not end the program:" "$folder/said"
grep -q '^lapser_finish: .*without lapser_init' "$folder/said" || fail "the failure should be printed:" "$folder/said"
grep -q '^went on' "$folder/said" || fail "the program should go on:" "$folder/said"
build "$folder/careful" -DPAWL_LAPSER_NO_TYPES -DPAWL_LAPSER_ABORT "$folder/careless.cc"
if "$folder/careful" >"$folder/said" 2>&1; then fail "a failure should end the program:" "$folder/said"; fi
grep -q '^lapser_finish: .*without lapser_init' "$folder/said" || fail "the failure should be printed:" "$folder/said"
if grep -q '^went on' "$folder/said"; then fail "the program should not go on:" "$folder/said"; fi
