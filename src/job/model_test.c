/* A scheduler with workers that come, refuse, dawdle and die at any moment, from thousands of seeds.
 *
 * The workers are an obedient model: a worker has the pieces that it was told to take and not told to
 * drop. Orders, answers and news of deaths may be delayed arbitrarily. Invariants:
 *   - no worker takes a piece while another worker that is alive, or thought to be, has it;
 *   - when a round begins every piece is owned by one worker that has confirmed it, and shares are even;
 *   - no worker that is known to be lost gets an order, no worker gets two at once, and at most the wanted
 *     number of workers takes part;
 *   - a round that follows another without any change moves no piece;
 *   - every round ends, with one report for each worker that it began with;
 *   - the reports of a round count every piece once, and no worker begins a piece that another one has begun in
 *     the same round. Those that report success have begun the pieces that their reports count.
 * In half of the worlds workers join in rounds. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "job/scheduler.h"
#include "job/walk.h"

enum { WORKERS_MAX = 64, PIECES_MAX = 30, ROUNDS = 12, STEPS_MAX = 10000 };

struct worker {
  bool is_dead, is_known_lost, has_gone, has_begun;
  bool is_slow, is_failing;
  enum pwi_job_order_kind order; /* its open order; 0: none */
  uint32_t newcomers, sharers;   /* of its open order to yield; 0: it has none */
  struct pwi_rangeset yielded;   /* its answer, in flight if `has_yielded` */
  bool has_yielded;
  struct pwi_walk walk;
  uint64_t worked; /* pieces that it has begun in this round */
  bool is_done;    /* the answer is in flight, with these fields */
  pawl_status status;
  bool has[PIECES_MAX], is_dropping[PIECES_MAX];
};

static struct world {
  struct pwi_random random;
  struct pwi_scheduler *scheduler;
  struct pwi_scheduler_options options;
  struct worker workers[WORKERS_MAX]; /* by number - 1 */
  uint64_t count;
  int64_t now;
  bool asks;                  /* workers ask for one piece after the other, and do not begin all at once */
  bool is_calm;               /* only necessary events still happen */
  bool has_changed;           /* workers came or went, or their wanted number changed, since the last round began */
  uint64_t moves;             /* orders to take and drop since then */
  size_t begun;               /* workers of this round that were ordered to work */
  size_t beginners;           /* of these, those at the beginning of the round */
  bool is_worked[PIECES_MAX]; /* a worker has begun the piece in this round */
  uint64_t rounds, ends[4], losses, joins, refusals, drops, newcomers, given_up;
} world;

static uint64_t below(uint64_t n) { return pwi_random_below(&world.random, n); }

static bool chance(double p) { return !world.is_calm && pwi_random_chance(&world.random, p); }

/* --- workers -------------------------------------------------------------------------------------------- */

static void join(void) {
  struct pwi_worker_name name = {.number = world.count + 1, .node = 100 + world.count, .pid = 1};
  if (world.count >= WORKERS_MAX) return;
  snprintf(name.host, sizeof name.host, "host%llu", (unsigned long long)world.count);
  world.workers[world.count] = (struct worker){.is_slow = below(6) == 0};
  world.count++;
  world.joins++;
  assert_int_equal(pwi_scheduler_join(world.scheduler, &name), PAWL_OK);
  world.has_changed = true;
}

static void take_piece(struct worker *worker, uint64_t piece) {
  for (uint64_t i = 0; i < world.count; i++) {
    const struct worker *other = &world.workers[i];
    bool counts = !other->is_known_lost && !other->has_gone;
    if (counts && other->has[piece]) fail_msg("piece %llu has two owners", (unsigned long long)piece);
  }
  worker->has[piece] = true;
  assert_int_equal(pwi_rangeset_add(&worker->walk.pieces, pawl_range_of(piece, piece + 1)), PAWL_OK);
}

/* No more workers begin than there is room for. */
static void check_room(const struct worker *beginner) {
  uint32_t others = 0;
  for (uint64_t i = 0; i < world.count; i++) {
    const struct worker *other = &world.workers[i];
    bool takes_part = other->order != PWI_JOB_ORDER_LEAVE && (other->has_begun || other->order == PWI_JOB_ORDER_BEGIN);
    others += other != beginner && takes_part && !other->is_known_lost && !other->has_gone;
  }
  assert_true(others < world.options.most);
}

/* A worker takes a piece when the order arrives and drops it only when it answers: the most harmful
 * timing. */
static void obey(struct worker *worker, const struct pwi_scheduler_order *order) {
  assert_false(worker->is_known_lost || worker->has_gone);
  if (order->kind == PWI_JOB_ORDER_YIELD) {
    assert_true(worker->newcomers == 0 && !worker->has_yielded && order->rank > 0 && order->rank < order->workers);
    worker->newcomers = order->rank;
    worker->sharers = order->workers;
    return;
  }
  assert_int_equal(worker->order, 0);
  worker->order = order->kind;
  if (order->kind == PWI_JOB_ORDER_BEGIN) check_room(worker);
  world.moves += order->kind == PWI_JOB_ORDER_TAKE || order->kind == PWI_JOB_ORDER_DROP;
  if (order->kind == PWI_JOB_ORDER_WORK) {
    world.begun++;
    worker->walk.next = worker->worked = 0;
  }
  world.newcomers += order->kind == PWI_JOB_ORDER_TAKE && pwi_scheduler_state(world.scheduler) == PWI_SCHEDULER_WORKING;
  for (size_t i = 0; i < order->piece_count; i++)
    for (uint64_t piece = order->pieces[i].begin; piece < order->pieces[i].end; piece++) {
      if (order->kind == PWI_JOB_ORDER_TAKE) {
        take_piece(worker, piece);
      } else {
        assert_true(worker->has[piece]);
        worker->is_dropping[piece] = true;
      }
    }
}

static void drop_pieces(struct worker *worker) {
  for (uint64_t i = 0; i < PIECES_MAX; i++) {
    worker->has[i] = worker->has[i] && !worker->is_dropping[i];
    if (worker->is_dropping[i])
      assert_int_equal(pwi_rangeset_remove(&worker->walk.pieces, pawl_range_of(i, i + 1)), PAWL_OK);
  }
  memset(worker->is_dropping, 0, sizeof worker->is_dropping);
}

static void check_beginning(void) {
  size_t count = pwi_scheduler_count(world.scheduler), owners[PIECES_MAX] = {0};
  uint64_t pieces = world.options.pieces;
  assert_true(count > 0 && count <= world.options.most);
  for (size_t i = 0; i < count; i++) {
    uint64_t number;
    const struct pwi_rangeset *has = pwi_scheduler_pieces(world.scheduler, i, &number);
    const struct worker *worker = &world.workers[number - 1];
    assert_true(worker->has_begun && !worker->is_known_lost && !worker->has_gone);
    for (uint64_t piece = 0; piece < pieces; piece++) {
      assert_int_equal(worker->has[piece], pwi_rangeset_has(has, piece));
      owners[piece] += worker->has[piece];
    }
    assert_in_range(pwi_rangeset_size(has), pieces / count, (pieces + count - 1) / count);
  }
  for (uint64_t piece = 0; piece < pieces; piece++) assert_int_equal(owners[piece], 1);
  memset(world.is_worked, 0, sizeof world.is_worked);
  world.beginners = count;
  if (!world.has_changed) assert_int_equal(world.moves, 0);
  world.has_changed = false;
  world.moves = 0;
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void hand_out(void) {
  struct pwi_scheduler_order order;
  struct pwi_scheduler_event event;
  enum pwi_scheduler_state before = pwi_scheduler_state(world.scheduler);
  pwi_scheduler_advance(world.scheduler, world.now);
  bool has_begun = before == PWI_SCHEDULER_SETTLING && pwi_scheduler_state(world.scheduler) == PWI_SCHEDULER_WORKING;
  if (has_begun) check_beginning();
  if (has_begun) world.begun = 0;
  while (pwi_scheduler_next_order(world.scheduler, &order)) obey(&world.workers[order.name.number - 1], &order);
  for (uint32_t starts = pwi_scheduler_starts(world.scheduler); starts > 0; starts--) {
    if (chance(0.2))
      pwi_scheduler_start_failed(world.scheduler);
    else if (!chance(0.2))
      join();
  }
  while (pwi_scheduler_next_event(world.scheduler, &event)) {
    world.drops += event.what == PAWL_JOB_DROPPED;
    world.has_changed |= event.what != PAWL_JOB_WAITING && event.what != PAWL_JOB_MOVED;
  }
}

static void finish(struct worker *worker, uint64_t number) {
  struct pwi_scheduler_answer answer = {.status = PAWL_OK,
                                        .took_ns = worker->is_slow ? 100000 : 1000 + (int64_t)below(100)};
  enum pwi_job_order_kind order = worker->order;
  if (chance(0.03) || (order == PWI_JOB_ORDER_WORK && worker->is_failing)) answer.status = PAWL_IO;
  worker->is_failing = false;
  if (order == PWI_JOB_ORDER_LEAVE) answer.status = PAWL_OK;
  worker->order = 0;
  drop_pieces(worker);
  worker->has_gone = order == PWI_JOB_ORDER_LEAVE || (answer.status && order != PWI_JOB_ORDER_WORK);
  world.refusals += answer.status && order != PWI_JOB_ORDER_WORK;
  if (order == PWI_JOB_ORDER_BEGIN && !answer.status) worker->has_begun = true;
  if (worker->has_gone) world.has_changed = true;
  pwi_scheduler_answered(world.scheduler, number, &answer);
}

/* A worker at work begins another piece. False: it has begun all, or fails before. */
static bool go_on(struct worker *worker) {
  if (worker->order != PWI_JOB_ORDER_WORK) return false;
  struct pawl_range run = pwi_walk_next(&worker->walk, world.asks ? 1 : UINT64_MAX);
  for (uint64_t piece = run.begin; piece < run.end; piece++) {
    if (world.is_worked[piece]) fail_msg("piece %llu is worked on twice", (unsigned long long)piece);
    world.is_worked[piece] = true;
    worker->worked++;
  }
  worker->is_failing = chance(0.005);
  return !pawl_range_is_empty(run) && !worker->is_failing;
}

/* Between two pieces; a worker that is not at work yields nothing. */
static void yield(struct worker *worker) {
  struct pwi_rangeset *yields = &worker->yielded;
  pwi_rangeset_clear(yields);
  if (worker->order == PWI_JOB_ORDER_WORK)
    assert_int_equal(pwi_walk_yields(&worker->walk, worker->newcomers, worker->sharers, yields), PAWL_OK);
  pwi_walk_yield(&worker->walk, yields);
  for (size_t i = 0; i < yields->count; i++)
    for (uint64_t piece = yields->ranges[i].begin; piece < yields->ranges[i].end; piece++) worker->has[piece] = false;
  worker->newcomers = 0;
  worker->has_yielded = true;
}

/* What a worker has yielded arrives, perhaps after its report. */
static void hear_yield(struct worker *worker, uint64_t number) {
  worker->has_yielded = false;
  assert_int_equal(pwi_scheduler_yielded(world.scheduler, number, worker->yielded.ranges, worker->yielded.count),
                   PAWL_OK);
}

static void lose(struct worker *worker, uint64_t number) {
  worker->is_dead = worker->is_known_lost = true;
  worker->order = 0;
  worker->newcomers = 0;
  world.losses++;
  world.has_changed = true;
  pwi_scheduler_lost(world.scheduler, number);
}

static void step_worker(void) {
  if (world.count == 0) return;
  uint64_t at = below(world.count);
  struct worker *worker = &world.workers[at];
  if (worker->is_known_lost || worker->has_gone) return;
  if (worker->is_dead && (world.is_calm || chance(0.3)))
    lose(worker, at + 1);
  else if (chance(0.01))
    worker->is_dead = true; /* the scheduler does not know yet */
  else if (!worker->is_dead && worker->newcomers > 0 && below(2))
    yield(worker);
  else if (worker->has_yielded && below(2))
    hear_yield(worker, at + 1);
  else if (!worker->is_dead && worker->order != 0 && !go_on(worker))
    finish(worker, at + 1);
}

static void resize(void) {
  uint32_t least = 1 + (uint32_t)below(4), most = least + (uint32_t)below(4);
  world.options.least = least;
  world.options.most = most;
  world.has_changed = true;
  assert_int_equal(pwi_scheduler_resize(world.scheduler, least, most), PAWL_OK);
}

/* Lost newcomers may have reports without having been ordered to work. */
static void check_reports(const struct pwi_scheduler_report *reports, size_t count) {
  uint64_t pieces = 0;
  assert_true(world.options.join_in_round ? count >= world.begun : count == world.begun);
  for (size_t i = 0; i < count; i++) {
    const struct worker *worker = &world.workers[reports[i].name.number - 1];
    assert_false(reports[i].is_open);
    if (i > 0 && i < world.beginners) assert_true(reports[i].name.number > reports[i - 1].name.number);
    if (!reports[i].status) assert_int_equal(reports[i].pieces, worker->worked);
    pieces += reports[i].pieces;
  }
  assert_int_equal(pieces, world.options.pieces);
  world.given_up += count - world.begun;
}

static void close_round(void) {
  const char *text;
  size_t count;
  pawl_status verdict = pwi_scheduler_verdict(world.scheduler, &text);
  struct pwi_scheduler_report *reports = pwi_scheduler_close(world.scheduler, &count);
  world.ends[verdict == PAWL_OK ? 0 : verdict == PAWL_NODE_GONE ? 1 : verdict == PAWL_REFUSED ? 2 : 3]++;
  if (verdict == PAWL_OK) {
    check_reports(reports, count);
  } else {
    assert_true(*text);
    assert_true(verdict == PAWL_NODE_GONE || verdict == PAWL_REFUSED);
  }
  pwi_free(reports);
  world.rounds++;
}

/* One round, from request to end. After a while only necessary events happen, and then it must end soon. */
static void run_round(uint64_t seed) {
  uint64_t steps = 0;
  world.is_calm = false;
  assert_int_equal(pwi_scheduler_want(world.scheduler), PAWL_OK);
  assert_int_equal(pwi_scheduler_want(world.scheduler), PAWL_INVALID);
  while (pwi_scheduler_state(world.scheduler) != PWI_SCHEDULER_OVER) {
    world.is_calm = steps > 300;
    if (steps++ > STEPS_MAX) fail_msg("seed %llu: a round does not end", (unsigned long long)seed);
    world.now += (int64_t)below(20000000);
    if (chance(0.02)) join();
    if (chance(0.005)) resize();
    step_worker();
    hand_out();
  }
  close_round();
}

static uint64_t seed_now; /* 0: no failure */

static void run(uint64_t seed) {
  uint64_t rounds = world.rounds;
  struct world counts = world;
  memset(&world, 0, sizeof world);
  world.rounds = rounds, world.losses = counts.losses, world.joins = counts.joins, world.refusals = counts.refusals;
  world.drops = counts.drops, world.newcomers = counts.newcomers, world.given_up = counts.given_up;
  memcpy(world.ends, counts.ends, sizeof world.ends);
  pwi_random_init(&world.random, seed, 0);
  uint32_t least = 1 + (uint32_t)below(4);
  world.options = (struct pwi_scheduler_options){.pieces = below(PIECES_MAX),
                                                 .least = least,
                                                 .most = least + (uint32_t)below(5),
                                                 .on_loss = (enum pawl_on_loss)below(3),
                                                 .patience_ns = (int64_t)below(3) * INT64_C(500000000),
                                                 .drop_slowest = below(2) ? 4 : 0,
                                                 .join_in_round = below(2)};
  world.asks = below(4) > 0;
  assert_int_equal(pwi_scheduler_create(&world.options, &world.scheduler), PAWL_OK);
  for (int i = 0; i < ROUNDS; i++) run_round(seed);
  pwi_scheduler_destroy(world.scheduler);
  for (uint64_t i = 0; i < world.count; i++) {
    pwi_rangeset_fini(&world.workers[i].walk.pieces);
    pwi_rangeset_fini(&world.workers[i].yielded);
  }
}

static void test_pieces_have_one_owner_and_rounds_end_whatever_happens(void **state) {
  (void)state;
  struct pwi_memory_counts before = pwi_memory_counts();
  for (seed_now = 1; seed_now <= 4000; seed_now++) run(seed_now);
  seed_now = 0;
  print_message("%llu rounds: %llu whole or with losses, %llu gone, %llu refused; %llu joined, %llu lost, %llu "
                "refused, %llu dropped; %llu took pieces in a round, %llu were lost before they worked on them\n",
                (unsigned long long)world.rounds, (unsigned long long)world.ends[0], (unsigned long long)world.ends[1],
                (unsigned long long)world.ends[2], (unsigned long long)world.joins, (unsigned long long)world.losses,
                (unsigned long long)world.refusals, (unsigned long long)world.drops,
                (unsigned long long)world.newcomers, (unsigned long long)world.given_up);
  assert_true(world.ends[0] > world.rounds / 3 && world.losses > 1000 && world.drops > 100 && world.refusals > 100);
  assert_true(world.newcomers > 1000 && world.given_up > 10);
  assert_int_equal(pwi_memory_counts().live, before.live);
}

static int name_seed(void **state) {
  (void)state;
  if (seed_now > 0) print_message("seed %llu\n", (unsigned long long)seed_now);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(test_pieces_have_one_owner_and_rounds_end_whatever_happens, name_seed),
  };
  return cmocka_run_group_tests_name("job.model", tests, NULL, NULL);
}
