/* A simulated run of `pawl-bench lapser`: the real manager, clients and engines of items, and the real sampler. Network
 * and computing take virtual time (network.c); copying rows in local memory takes none.
 *
 * A worker does what apps/bpmf/share/iterate.c and items.c do, but as an actor: where those wait, it returns, and an event
 * lets it go on. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "bench/command/member.h"
#include "network.h"
#include "peer/item/item.h"
#include "sim/cluster.h"

#define GROUP "bench/.lapser"
#define TICK (20 * PWI_SIM_MILLISECOND)
#define AGAIN PWI_SIM_MICROSECOND /* until a version that is just being written is read again */
#define SETUP_LIMIT (600 * PWI_SIM_SECOND)
#define RUN_LIMIT (100000 * PWI_SIM_SECOND)

enum { TIMER_TICK, TIMER_BLOCK, TIMER_GO };
enum { SUMS = BPMF_SIDES, CONTEXTS }; /* contexts: rows of users, rows of items, sums */
enum stage { STAGE_OLD_SUMS, STAGE_DRAW, STAGE_ROWS, STAGE_NEW_SUMS, STAGE_OVER };

struct run;

struct hand {
  struct run *run;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_bench_member member;
  struct pwi_items *engines[CONTEXTS];
  bool is_open, is_ready, is_going; /* is_going: a timer will call go_on */
  struct pwi_lapser_worker worker;
  struct pwi_lapser_figures *figures;

  /* Where it is. */
  enum stage stage;
  int side;
  size_t block;    /* to be drawn */
  size_t range;    /* of the rows to be read, */
  uint64_t offset; /* and the row in it; or the block whose sums are to be read */
  bool is_requested;
  struct pwi_items_wait wait;
  struct pwi_items *waiting; /* whose wait has begun; NULL: none */
  int64_t begun, waits_since, waited;
};

struct run {
  const struct pwi_lapser_task *task;
  struct pwi_cluster cluster;
  struct pwi_lapser_cards cards;
  struct pwi_sim_fabric fabric;
  struct hand *hands;
  uint32_t open, over;
  bool has_begun;
};

static void broken(const struct hand *hand, const char *what, pawl_status status) {
  pwi_sim_fail(hand->run->cluster.sim, status ? status : PAWL_NO_MEMORY, "worker %u %s: %s", hand->index, what,
               pawl_status_text(status));
}

static int64_t now_of(const struct hand *hand) { return pwi_sim_now(hand->run->cluster.sim); }

static void go_later(struct hand *hand, int64_t delay) {
  if (hand->is_going) return;
  hand->is_going = true;
  pwi_cluster_timer(&hand->client, delay, TIMER_GO);
}

/* --- reading ---------------------------------------------------------------------------------------------- */

static void wake(void *context) { go_later(context, 0); }

static void end_wait(struct hand *hand) {
  if (hand->waiting) pwi_items_wait_end(hand->waiting, &hand->wait);
  hand->waiting = NULL;
}

/* True if the version was read; otherwise an event lets the worker try again. */
static bool read_item(struct hand *hand, struct pwi_items *engine, uint64_t key, uint64_t clock, uint64_t slack,
                      void *to) {
  uint64_t need = pwi_items_need(engine, key, clock, slack);
  enum pwi_items_found found = pwi_items_try(engine, key, need, to, NULL);
  if (found == PWI_ITEMS_FRESH) {
    end_wait(hand);
    return true;
  }
  if (found == PWI_ITEMS_UNKNOWN) broken(hand, "does not know a key", PAWL_NOT_FOUND);
  if (found == PWI_ITEMS_TORN) go_later(hand, AGAIN);
  if (found != PWI_ITEMS_STALE) return false;
  if (!hand->waiting) {
    hand->wait = (struct pwi_items_wait){.key = key, .need = need, .wake = wake, .context = hand};
    hand->waiting = engine;
    pwi_items_wait_begin(engine, &hand->wait);
  }
  pawl_status status = pwi_items_ask(engine, &hand->wait);
  if (status) broken(hand, "cannot ask", status);
  if (pwi_items_try(engine, key, need, to, NULL) != PWI_ITEMS_FRESH) return false; /* asking may find it */
  end_wait(hand);
  return true;
}

/* Once in each stage. */
static void request(struct hand *hand, struct pwi_items *engine, const struct pawl_items_keys *keys, size_t count,
                    uint64_t clock, uint64_t slack) {
  pawl_status status = PAWL_OK;
  if (!hand->is_requested && hand->worker.is.spec.variant == PAWL_ITEMS_PULL)
    status = pwi_items_prefetch(engine, keys, count, clock, slack);
  hand->is_requested = true;
  if (status) broken(hand, "cannot prefetch", status);
}

static bool read_rows(struct hand *hand) {
  struct bpmf_worker *is = &hand->worker.is;
  const struct bpmf_needs *needs = &is->part.needs[hand->side];
  struct pwi_items *engine = hand->engines[hand->side];
  request(hand, engine, needs->ranges, needs->count, is->sampler.iteration, bpmf_early_slack(is->spec.slack));
  for (; hand->range < needs->count; hand->range++, hand->offset = 0)
    for (; hand->offset < needs->ranges[hand->range].count; hand->offset++) {
      uint64_t row = needs->ranges[hand->range].start + hand->offset;
      if (!read_item(hand, engine, row, is->sampler.iteration, is->spec.slack,
                     is->sampler.sides[hand->side].rows + row * is->sampler.width))
        return false;
    }
  return true;
}

static bool read_sums(struct hand *hand, uint64_t clock) {
  struct bpmf_worker *is = &hand->worker.is;
  const struct bpmf_sampler *sampler = &is->sampler;
  const struct bpmf_side *side = &sampler->sides[hand->side];
  if (is->summed[hand->side] == clock) return true;
  struct pawl_items_keys all = {bpmf_sums_place(sampler, hand->side, 0, clock), side->blocks, 1};
  request(hand, hand->engines[SUMS], &all, 1, clock, 0);
  for (; hand->offset < side->blocks; hand->offset++) {
    size_t block = (size_t)hand->offset;
    if (block >= is->part.first[hand->side] && block < is->part.end[hand->side]) continue;
    if (!read_item(hand, hand->engines[SUMS], bpmf_sums_place(sampler, hand->side, block, clock), clock, 0,
                   side->sums + block * bpmf_sums_size(sampler->width)))
      return false;
  }
  is->summed[hand->side] = clock;
  return true;
}

/* --- drawing ---------------------------------------------------------------------------------------------- */

static void set_range(struct hand *hand, struct pwi_items *engine, uint64_t first, size_t count, const void *values,
                      size_t size, uint64_t clock) {
  bool must_tell = false, must_tell_one;
  for (size_t i = 0; i < count; i++) {
    pawl_status status = pwi_items_set(engine, first + i, (const char *)values + i * size, clock, &must_tell_one);
    must_tell = must_tell || must_tell_one;
    if (status) broken(hand, "cannot set an item", status);
  }
  if (must_tell) pwi_items_tell(engine, first, count);
}

static void publish_rows(struct hand *hand, int number, size_t first_block, size_t end_block) {
  const struct bpmf_sampler *sampler = &hand->worker.is.sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  size_t first = bpmf_block_begin(side, first_block), end = bpmf_block_begin(side, end_block);
  set_range(hand, hand->engines[number], first, end - first, side->rows + first * sampler->width,
            sampler->width * sizeof(float), sampler->iteration);
}

static void publish(struct hand *hand, size_t block) {
  const struct bpmf_sampler *sampler = &hand->worker.is.sampler;
  size_t size = bpmf_sums_size(sampler->width);
  publish_rows(hand, hand->side, block, block + 1);
  set_range(hand, hand->engines[SUMS], bpmf_sums_place(sampler, hand->side, block, sampler->iteration), 1,
            sampler->sides[hand->side].sums + block * size, size * sizeof(double), sampler->iteration);
}

/* Rows are drawn at the end of the time that this takes. */
static void block_drawn(struct hand *hand) {
  struct bpmf_sampler *sampler = &hand->worker.is.sampler;
  pawl_status status = bpmf_sampler_draw(sampler, hand->side, hand->block, hand->block + 1, NULL);
  if (status) broken(hand, "cannot draw", status);
  publish(hand, hand->block++);
}

/* False: a block is being drawn. */
static bool draw(struct hand *hand) {
  const struct bpmf_worker *is = &hand->worker.is;
  if (hand->block == is->part.end[hand->side]) return true;
  pwi_cluster_timer(&hand->client, pwi_lapser_block_ns(hand->run->task, &is->sampler, hand->side, hand->block),
                    TIMER_BLOCK);
  return false;
}

/* --- iterations ------------------------------------------------------------------------------------------- */

static void enter(struct hand *hand, enum stage stage) {
  hand->stage = stage;
  hand->range = 0;
  hand->offset = 0;
  hand->is_requested = false;
  hand->waits_since = now_of(hand);
}

static void waited(struct hand *hand) { hand->waited += now_of(hand) - hand->waits_since; }

static void begin_side(struct hand *hand, int side) {
  hand->side = side;
  enter(hand, STAGE_OLD_SUMS);
}

static void begin_iteration(struct hand *hand) {
  hand->worker.is.sampler.iteration++;
  hand->begun = now_of(hand);
  hand->waited = 0;
  begin_side(hand, BPMF_USERS);
}

static void measure(struct hand *hand) {
  struct bpmf_worker *is = &hand->worker.is;
  struct pwi_lapser_step *step = &hand->figures->steps[is->sampler.iteration - 1];
  size_t first = is->part.first[BPMF_USERS], end = is->part.end[BPMF_USERS];
  bpmf_measure_blocks(&is->tests, is->sampler.iteration > is->spec.burn_in, first, end);
  step->seconds = 1e-9 * (double)(now_of(hand) - hand->begun);
  step->shared = 1e-9 * (double)hand->waited;
  for (size_t block = first; block < end; block++) {
    step->now += is->tests.errors[block][0];
    step->mean += is->tests.errors[block][1];
  }
}

/* The worker goes on answering others. */
static void finish(struct hand *hand) {
  hand->stage = STAGE_OVER;
  hand->figures->iterations = hand->run->task->iterations;
  hand->figures->digest = pwi_lapser_digest(&hand->worker.is.sampler, &hand->worker.is.part);
  hand->run->over++;
}

static void side_done(struct hand *hand) {
  if (hand->side == BPMF_USERS) {
    begin_side(hand, BPMF_ITEMS);
    return;
  }
  measure(hand);
  if (hand->worker.is.sampler.iteration == hand->run->task->iterations)
    finish(hand);
  else
    begin_iteration(hand);
}

static void begin_drawing(struct hand *hand) {
  pawl_status status = bpmf_sampler_hyper(&hand->worker.is.sampler, hand->side);
  if (status) broken(hand, "cannot draw hyper-parameters", status);
  hand->block = hand->worker.is.part.first[hand->side];
  enter(hand, STAGE_DRAW);
}

/* One stage of step_side in iterate.c. False: it waits. */
static bool go_stage(struct hand *hand) {
  uint64_t iteration = hand->worker.is.sampler.iteration;
  switch (hand->stage) {
  case STAGE_OLD_SUMS:
    if (!read_sums(hand, iteration - 1)) return false;
    waited(hand);
    begin_drawing(hand);
    return true;
  case STAGE_DRAW:
    if (!draw(hand)) return false;
    enter(hand, STAGE_ROWS);
    return true;
  case STAGE_ROWS:
    if (!read_rows(hand)) return false;
    waited(hand);
    enter(hand, STAGE_NEW_SUMS);
    return true;
  case STAGE_NEW_SUMS:
    if (hand->run->task->slack == 0 && !read_sums(hand, iteration)) return false;
    waited(hand);
    side_done(hand);
    return true;
  default:
    return false;
  }
}

static void go_on(struct hand *hand) {
  while (hand->run->has_begun && !pwi_sim_failure(hand->run->cluster.sim) && go_stage(hand)) continue;
}

/* --- beginning -------------------------------------------------------------------------------------------- */

static void wakes(void *context) {
  struct hand *hand = context;
  for (int i = 0; i < CONTEXTS; i++)
    if (hand->engines[i] && pwi_items_failure(hand->engines[i]))
      broken(hand, pwi_items_problem(hand->engines[i]), pwi_items_failure(hand->engines[i]));
}

static void open_context(struct hand *hand, int number, const struct pwi_items_config *with) {
  static const char *const names[CONTEXTS] = {"users", "items", "sums"};
  char problem[PWI_ITEMS_PROBLEM_MAX];
  struct pwi_items_config config = *with;
  config.peers = hand->member.peers;
  config.net = hand->client.net;
  config.group = hand->member.group;
  config.name = names[number];
  config.variant = hand->worker.is.spec.variant;
  config.producers = config.work_per_clock = 1;
  config.context = hand;
  config.wakes = wakes;
  config.closed = NULL;
  pawl_status status = pwi_items_create(&config, &hand->engines[number], problem);
  if (status) broken(hand, problem, status);
}

static void open_rows(struct hand *hand, int number) {
  const struct bpmf_worker *is = &hand->worker.is;
  const struct bpmf_side *side = &is->sampler.sides[number];
  size_t first = bpmf_block_begin(side, is->part.first[number]), end = bpmf_block_begin(side, is->part.end[number]);
  struct pawl_items_keys mine = {first, end - first, 1};
  open_context(hand, number,
               &(struct pwi_items_config){.size = is->sampler.width * sizeof(float),
                                          .count = side->ratings->rows,
                                          .produces = &mine,
                                          .produces_count = end > first,
                                          .consumes = is->part.needs[number].ranges,
                                          .consumes_count = is->part.needs[number].count});
}

/* Every worker reads the sums of all. */
static void open_sums(struct hand *hand) {
  const struct bpmf_sampler *sampler = &hand->worker.is.sampler;
  struct pawl_items_keys mine[2 * BPMF_SIDES];
  size_t count = 0, blocks = sampler->sides[BPMF_USERS].blocks + sampler->sides[BPMF_ITEMS].blocks;
  for (int side = 0; side < BPMF_SIDES; side++)
    for (uint64_t parity = 0; parity < 2; parity++) {
      size_t first = hand->worker.is.part.first[side], end = hand->worker.is.part.end[side];
      if (end > first)
        mine[count++] = (struct pawl_items_keys){bpmf_sums_place(sampler, side, first, parity), end - first, 1};
    }
  struct pawl_items_keys all = {0, 2 * blocks, 1};
  open_context(hand, SUMS,
               &(struct pwi_items_config){.size = bpmf_sums_size(sampler->width) * sizeof(double),
                                          .count = 2 * blocks,
                                          .produces = mine,
                                          .produces_count = count,
                                          .consumes = &all,
                                          .consumes_count = 1});
}

static void open_all(struct hand *hand) {
  hand->is_open = true;
  for (int side = 0; side < BPMF_SIDES; side++) open_rows(hand, side);
  open_sums(hand);
}

static void begin_all(struct run *run) {
  run->has_begun = true;
  for (uint32_t i = 0; i < run->task->workers; i++) {
    begin_iteration(&run->hands[i]);
    go_later(&run->hands[i], 0);
  }
}

static void look_if_ready(struct hand *hand) {
  for (int i = 0; i < CONTEXTS; i++)
    if (!hand->engines[i] || !pwi_items_is_open(hand->engines[i])) return;
  hand->is_ready = true;
  for (int side = 0; side < BPMF_SIDES; side++)
    publish_rows(hand, side, hand->worker.is.part.first[side], hand->worker.is.part.end[side]);
  if (++hand->run->open == hand->run->task->workers) begin_all(hand->run);
}

static void tick(struct hand *hand) {
  if (!hand->is_open && pwi_bench_member_is_complete(&hand->member)) open_all(hand);
  if (hand->is_open && !hand->is_ready) look_if_ready(hand);
  if (!hand->is_ready) pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
}

static void hand_timer(void *context, uint64_t cookie) {
  struct hand *hand = context;
  if (cookie == TIMER_TICK) {
    tick(hand);
    return;
  }
  if (cookie == TIMER_GO) hand->is_going = false;
  if (cookie == TIMER_BLOCK) block_drawn(hand);
  if (cookie == TIMER_BLOCK || hand->stage != STAGE_DRAW) go_on(hand);
}

static void hand_started(void *context) {
  struct hand *hand = context;
  pwi_bench_member_join(&hand->member, &hand->run->cluster, &hand->client, GROUP, hand->run->task->workers);
  pwi_cluster_timer(&hand->client, TICK, TIMER_TICK);
}

static pawl_status add_hand(struct run *run, uint32_t index) {
  struct hand *hand = &run->hands[index];
  *hand = (struct hand){.run = run, .index = index};
  pawl_status status = pwi_lapser_worker_init(&hand->worker, run->task, index, &bpmf_items_link);
  if (!status) hand->figures = pwi_alloc_zero(1, sizeof *hand->figures);
  if (!status && !hand->figures) status = PAWL_NO_MEMORY;
  if (status) return status;
  hand->client = (struct pwi_cluster_client){
      .job = "lapser", .listens = true, .started = hand_started, .timer = hand_timer, .context = hand};
  snprintf(hand->client.name, sizeof hand->client.name, "w%u", index % 1000);
  return pwi_cluster_client_add(&run->cluster, &hand->client);
}

/* --- the run ---------------------------------------------------------------------------------------------- */

static void tune(struct pwi_sim_config *config, void *context) {
  struct run *run = context;
  config->fabric = &run->fabric;
  config->plane_chance = 1; /* one-sided operations do not wait for the receiving process */
  config->plane = (struct pwi_sim_delay){0, 0, 0};
  config->split_chance = config->gap_chance = 0;
  config->socket_bytes = (size_t)16 << 20;
  config->trace = config->checks = false;
}

static bool is_coming(void *context) { return !((struct run *)context)->has_begun; }

static bool is_running(void *context) {
  const struct run *run = context;
  return run->over < run->task->workers;
}

static pawl_status carry_out(struct run *run) {
  struct pwi_cluster_config config = {.seed = run->task->seed, .tune = tune, .context = run};
  pwi_lapser_cards_init(&run->cards, run->task);
  run->fabric = (struct pwi_sim_fabric){.delivery_time = pwi_lapser_delivery_time, .context = &run->cards};
  pawl_status status = pwi_cluster_open(&run->cluster, &config);
  for (uint32_t i = 0; i < run->task->workers && !status; i++) status = add_hand(run, i);
  if (!status) status = pwi_cluster_run_while(&run->cluster, is_coming, run, SETUP_LIMIT);
  if (!status) status = pwi_cluster_run_while(&run->cluster, is_running, run, RUN_LIMIT);
  return status;
}

/* The cluster has called no `stopped`: engines live longer than their nets. */
static void release(struct run *run) {
  for (uint32_t i = 0; run->hands && i < run->task->workers; i++) {
    for (int k = 0; k < CONTEXTS; k++) pwi_items_destroy(run->hands[i].engines[k]);
    if (run->hands[i].run) pwi_lapser_worker_fini(&run->hands[i].worker);
    pwi_free(run->hands[i].figures);
  }
  pwi_free(run->hands);
}

pawl_status pwi_lapser_simulate(const struct pwi_lapser_task *task, struct pwi_lapser_figures *figures_out, char *why,
                                size_t why_size) {
  struct run run = {.task = task};
  if (task->way == PWI_LAPSER_HAND) {
    pawl_status status = pwi_lapser_simulate_hand(task, figures_out);
    snprintf(why, why_size, "%s", pawl_status_text(status));
    return status;
  }
  run.hands = pwi_alloc_zero(task->workers, sizeof *run.hands);
  pawl_status status = run.hands ? carry_out(&run) : PAWL_NO_MEMORY;
  const char *failure = run.cluster.sim ? pwi_sim_failure(run.cluster.sim) : NULL;
  snprintf(why, why_size, "%s", failure ? failure : pawl_status_text(status));
  if (!status) {
    memset(figures_out, 0, sizeof *figures_out);
    for (uint32_t i = 0; i < task->workers; i++) pwi_lapser_add(figures_out, run.hands[i].figures);
    pwi_lapser_finish(figures_out, task);
  }
  pwi_cluster_close(&run.cluster);
  release(&run);
  return status;
}
