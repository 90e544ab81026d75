/* Applications that check every matrix. */
#include "committers.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"

#define TICK (5 * MS)

enum { TIMER_TICK, TIMER_STEP, TIMER_WAKE, TIMER_WORK };

struct pwi_sender committer_id(const struct committer *committer) {
  struct pwi_client_state state;
  if (!committer->client.client) return (struct pwi_sender){0};
  pwi_client_state(committer->client.client, &state);
  return (struct pwi_sender){state.sender};
}

static void broken(const struct committer *committer, const char *what, uint64_t process, uint64_t value) {
  pwi_sim_fail(committer->guild->cluster.sim, PAWL_CORRUPT, "node %u at clock %llu, process %llu: %s: %llu",
               committer->index, (unsigned long long)committer->clock, (unsigned long long)process, what,
               (unsigned long long)value);
}

static void enter(const struct committer *committer) {
  if (committer->guild->entered) committer->guild->entered(committer);
}

static void leave(const struct committer *committer) {
  if (committer->guild->left) committer->guild->left(committer);
}

/* --- checking ------------------------------------------------------------------------------------------- */

static bool has_row_of(const struct committer *committer, uint32_t process) {
  return pawl_range_has(committer->engine->rows, committer_row(process));
}

/* The last commit of a process that the matrix has. */
static uint64_t last_of(const struct committer *committer, uint32_t process) {
  size_t at = committer_row(process) - (size_t)committer->engine->rows.begin;
  const float *row = committer->matrix + at * MATRIX_COLUMNS;
  uint64_t last = 0;
  bool is_over = false;
  for (uint64_t n = 0; n < MATRIX_COLUMNS; n++) {
    if (row[n] != 0 && row[n] != 1) broken(committer, "a commit was applied more than once", process, n);
    if (row[n] == 0) {
      is_over |= n > committer->guild->bases[process];
      continue;
    }
    if (is_over && !committer->guild->has_graph) broken(committer, "a gap before commit", process, n);
    if (n <= committer->guild->bases[process] || n > committer->guild->begun[process])
      broken(committer, "never committed", process, n);
    last = n;
  }
  return last;
}

static const struct committer *process_at(const struct guild *guild, uint32_t process) {
  for (uint32_t i = 0; i < guild->count; i++)
    if (guild->committers[i].engine && guild->committers[i].process == process) return &guild->committers[i];
  return NULL;
}

/* Only of members that take part in the same epoch something can be expected. */
static void check_pace(struct committer *committer, uint32_t process, uint64_t last) {
  const struct guild *guild = committer->guild;
  const struct committer *other = process_at(guild, process);
  const struct factor_origin *origin = other ? pwi_factor_origin(committer->engine, other->engine->config.life) : NULL;
  uint64_t staleness = committer->is_flushing ? 0 : guild->staleness, clock = committer->clock;
  if (guild->mode != PAWL_FACTOR_ASYNC && last > clock) broken(committer, "a commit from the future", process, last);
  if (!origin || !pwi_factor_is_live(origin) || !origin->is_heard) return;
  if (committer->engine->counts.agreements != committer->agreements) return; /* the graph has changed since it chose */
  bool is_original = committer->engine->counts.agreements == 1 && guild->bases[committer->process] == 0;
  if (guild->has_graph && !guild->forwards && !is_original) return; /* it heard others before */
  if (!other->is_open) return;                                      /* it fills up with empty commits */
  if (last < guild->bases[process]) last = guild->bases[process];
  if (last < clock && clock - last > committer->worst) committer->worst = clock - last;
  bool is_waited = committer->is_flushing || (guild->mode != PAWL_FACTOR_ASYNC && origin->is_waited);
  if (is_waited && last + staleness < clock) broken(committer, "too stale", process, last);
}

static void check_matrix(struct committer *committer) {
  struct guild *guild = committer->guild;
  guild->checks++;
  if (guild->is_dense) {
    if (committer->clock < MATRIX_COLUMNS && guild->mode == PAWL_FACTOR_BSP && !guild->has_graph)
      committer->hashes[committer->clock] = pwi_hash(committer->matrix, sizeof committer->matrix, 0) | 1;
    return;
  }
  if (guild->high >= MATRIX_COLUMNS) return;
  for (uint32_t process = 0; process < guild->last_process; process++) {
    if (!has_row_of(committer, process)) continue;
    uint64_t last = last_of(committer, process);
    bool is_ours = process == committer->process && committer->clock > guild->bases[process];
    if (is_ours && last != committer->clock) broken(committer, "its own commits are missing", process, last);
    if (process != committer->process) check_pace(committer, process, last);
  }
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void wake_later(void *context) {
  struct committer *committer = context;
  if (committer->is_woken) return;
  committer->is_woken = true;
  pwi_cluster_timer(&committer->client, 0, TIMER_WAKE);
}

static int64_t draw_time(struct committer *committer, int64_t most) {
  return most > 0 ? (int64_t)pwi_random_below(committer->client.random, (uint64_t)most) : 0;
}

static void step_later(struct committer *committer) {
  const struct guild *guild = committer->guild;
  int64_t slow = guild->slow[committer->index];
  if (committer->is_thinking) return;
  committer->is_thinking = true;
  pwi_cluster_timer(&committer->client, slow ? slow : draw_time(committer, guild->compute_max), TIMER_STEP);
}

static void add_counting_pair(struct committer *committer) {
  const float one = 1;
  uint32_t row = committer_row(committer->process), column = (uint32_t)committer->clock + 1;
  char problem[FACTOR_PROBLEM_MAX];
  if (column >= MATRIX_COLUMNS) return;
  const struct pawl_factor_vector u = {&one, &row, 1}, v = {&one, &column, 1};
  assert_int_equal(pwi_factor_batch_add(&committer->batch, &u, &v, problem), PAWL_OK);
}

/* The values follow from process and clock. */
static void add_dense_pairs(struct committer *committer) {
  static float u[MATRIX_ROWS], v[MATRIX_COLUMNS];
  char problem[FACTOR_PROBLEM_MAX];
  for (size_t pair = 0; pair < committer->guild->pairs; pair++) {
    uint64_t word = pwi_mix64(committer->process * 1000003 + committer->clock * 101 + pair);
    for (size_t i = 0; i < MATRIX_ROWS; i++) u[i] = (float)((word >> i % 32) % 256) / 64 - 2;
    for (size_t i = 0; i < MATRIX_COLUMNS; i++) v[i] = (float)((word >> (i + 7) % 37) % 512) / 128 - 2;
    const struct pawl_factor_vector left = {u, NULL, MATRIX_ROWS}, right = {v, NULL, MATRIX_COLUMNS};
    assert_int_equal(pwi_factor_batch_add(&committer->batch, &left, &right, problem), PAWL_OK);
  }
}

static void begin_step(struct committer *committer) {
  struct guild *guild = committer->guild;
  char problem[FACTOR_PROBLEM_MAX];
  bool is_over = guild->stop_at > 0 && committer->clock >= guild->stop_at;
  if (!committer->engine || !committer->is_open || committer->must_close || guild->is_held[committer->index] || is_over)
    return;
  if (pwi_factor_is_stepping(committer->engine)) return;
  leave(committer); /* the batch belongs to the program */
  pwi_factor_batch_clear(&committer->batch);
  if (guild->is_dense)
    add_dense_pairs(committer);
  else
    add_counting_pair(committer);
  assert_int_equal(pwi_factor_batch_seal(&committer->batch, guild->is_dense ? 0.01 : 1, 0.5, problem), PAWL_OK);
  guild->begun[committer->process] = committer->clock + 1;
  enter(committer);
  pwi_factor_begin(committer->engine, committer->batch.bytes, committer->batch.size);
  wake_later(committer);
}

/* Rows are lost only if nobody in the epoch has them. */
static void look_for_lost_rows(struct committer *committer) {
  struct guild *guild = committer->guild;
  const struct pwi_factor *engine = committer->engine;
  bool says_so = engine && (strstr(engine->problem, "no member has rows") || strstr(engine->problem, "these rows"));
  if (guild->parts == 0 || !says_so) return;
  guild->has_lost_rows = true;
  for (uint32_t i = 0; i < guild->count && engine->lost_part != UINT32_MAX; i++) {
    const struct pwi_factor *other = guild->committers[i].engine;
    bool is_there = other && guild->committers[i].is_open && !other->failed &&
                    other->config.part == engine->lost_part && pwi_factor_compare(other->epoch, engine->epoch) == 0;
    if (is_there) broken(committer, "rows are taken for lost that are there", i, engine->lost_part);
  }
}

static void refused(struct committer *committer, const char *what, pawl_status status) {
  bool is_expected = status == PAWL_NODE_GONE || status == PAWL_MISMATCH;
  is_expected |= committer->guild->may_fail && status == PAWL_NO_MEMORY;
  is_expected |= committer->guild->may_be_corrupt && status == PAWL_CORRUPT;
  if (!is_expected) broken(committer, what, committer->process, (uint64_t)-status);
  look_for_lost_rows(committer);
  committer->guild->failures++;
  committer->status = status;
  committer->must_close = committer->engine != NULL;
}

static void end_step(struct committer *committer) {
  struct guild *guild = committer->guild;
  pawl_status status = pwi_factor_end(committer->engine, &committer->report);
  if (status) {
    refused(committer, "a step has failed", status);
    return;
  }
  if (!committer->is_open)
    guild->bases[committer->process] = guild->begun[committer->process] = committer->report.clock;
  bool has_committed = committer->is_open && !committer->is_flushing;
  committer->is_open = true;
  committer->clock = committer->report.clock;
  if (committer->clock > guild->high) guild->high = committer->clock;
  guild->commits += has_committed;
  committer->steps += has_committed;
  if (committer->report.commits > 0 || has_committed || committer->is_flushing) check_matrix(committer);
  committer->is_flushed = committer->is_flushing;
  committer->is_flushing = false;
  step_later(committer);
}

/* Work takes time, in which messages arrive. */
static void drive(struct committer *committer) {
  while (committer->engine && !committer->is_closing && !committer->is_working) {
    enum pwi_factor_want want = pwi_factor_want(committer->engine);
    if (want == PWI_FACTOR_DONE) {
      end_step(committer);
    } else if (want == PWI_FACTOR_WORK) {
      committer->is_working = true;
      committer->chosen_agreements = committer->engine->counts.agreements;
      pwi_cluster_timer(&committer->client, draw_time(committer, committer->guild->work_max), TIMER_WORK);
    } else {
      return;
    }
  }
}

static void work(struct committer *committer) {
  if (!committer->is_working || !committer->engine) return;
  committer->is_working = false;
  committer->agreements = committer->chosen_agreements;
  pawl_status status = pwi_factor_work(committer->engine);
  pwi_factor_worked(committer->engine, status);
  drive(committer);
}

void committer_flush(struct committer *committer) {
  committer->is_flushed = false;
  committer->is_flushing = true;
  committer->flushed_in = committer->engine->epoch;
  pwi_factor_begin_flush(committer->engine);
  drive(committer);
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static void has_closed(void *context) { ((struct committer *)context)->is_closed = true; }

static void open_engine(struct committer *committer) {
  struct guild *guild = committer->guild;
  size_t rows = guild->other_rows[committer->index] ? guild->other_rows[committer->index] : MATRIX_ROWS;
  if (guild->last_process == MATRIX_ROWS) return; /* enough */
  committer->process = guild->last_process++;
  struct pwi_factor_config config = {.peers = committer->peers,
                                     .net = committer->client.net,
                                     .group = committer->group,
                                     .name = "w",
                                     .life = ((uint64_t)committer->process + 1) << 40 |
                                             (pwi_mix64(committer->process) & 0xffff),
                                     .matrix = committer->matrix,
                                     .shape = {rows, MATRIX_COLUMNS, false, FACTOR_F32},
                                     .part = guild->parts ? committer->index % guild->parts : 0,
                                     .parts = guild->parts,
                                     .mode = guild->mode,
                                     .staleness = guild->staleness,
                                     .prox = guild->prox,
                                     .is_complete = !guild->has_graph,
                                     .topology = guild->topology,
                                     .degree = guild->degree,
                                     .seed = 1,
                                     .forwards = guild->forwards,
                                     .context = committer,
                                     .wakes = wake_later,
                                     .closed = has_closed};
  committer->is_open = committer->is_closed = committer->must_close = committer->is_closing = false;
  committer->is_working = committer->is_flushing = committer->is_flushed = false;
  committer->status = PAWL_OK;
  committer->clock = 0;
  committer->batch.shape = config.shape;
  memset(committer->matrix, 0, sizeof committer->matrix);
  committer->matrix[MATRIX_SIZE - 1] = guild->initial[committer->index];
  memset(committer->hashes, 0, sizeof committer->hashes);
  enter(committer);
  pawl_status status = pwi_factor_create(&config, &committer->engine);
  leave(committer);
  if (status)
    refused(committer, "cannot open", status);
  else
    pwi_factor_begin_open(committer->engine);
  wake_later(committer);
}

/* A program that cannot go on closes; one that was declared dead opens again. */
static void look_at_engine(struct committer *committer) {
  if (!committer->must_close) return;
  if (committer->is_working) work(committer);
  if (committer->is_closed) {
    pwi_factor_destroy(committer->engine);
    committer->engine = NULL;
    committer->must_close = false;
    if (committer->status == PAWL_NODE_GONE) committer->status = PAWL_OK;
    return;
  }
  if (!committer->is_closing) pwi_factor_close(committer->engine, pwi_net_now(committer->client.net) + 500 * MS);
  committer->is_closing = true;
  if (!committer->is_closed) pwi_factor_look(committer->engine, pwi_net_now(committer->client.net));
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct committer *committer = (struct committer *)((char *)asking - offsetof(struct committer, asking));
  committer->is_asking = false;
  if (status || size != 8) {
    pwi_sim_fail(committer->guild->cluster.sim, status, "node %u cannot join the group", committer->index);
    return;
  }
  committer->joined_as = committer_id(committer);
  committer->group.id = pwi_get_u64(payload);
}

static void join(struct committer *committer) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, COMMITTERS_GROUP);
  pwi_write_u32(&writer, committer->guild->founders);
  committer->asking.replied = joined;
  committer->is_asking = true;
  pawl_status status =
      pwi_client_ask(committer->client.client, &committer->asking, PWI_ASK_PEERS, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(committer->guild->cluster.sim, status, "node %u cannot ask", committer->index);
}

static bool is_complete(const struct committer *committer) {
  const struct pwi_membership *membership = pwi_client_membership(committer->client.client);
  const struct pwi_membership_group *group =
      committer->group.id ? pwi_membership_group(membership, committer->group) : NULL;
  return group && group->complete;
}

static void tick(struct committer *committer) {
  struct pwi_sender id = committer_id(committer);
  bool is_late = committer->guild->is_late[committer->index];
  bool is_renewed = id.id != 0 && id.id != committer->joined_as.id;
  if (is_renewed && !committer->is_asking && !is_late) join(committer);
  bool is_ready = is_complete(committer) && committer->joined_as.id == id.id && !is_late;
  if (!committer->engine && is_ready && !committer->status) open_engine(committer);
  enter(committer);
  if (committer->engine) look_at_engine(committer);
  if (!committer->is_thinking) begin_step(committer);
  leave(committer);
  pwi_cluster_timer(&committer->client, TICK, TIMER_TICK);
}

static void timer(void *context, uint64_t cookie) {
  struct committer *committer = context;
  if (cookie == TIMER_TICK) {
    tick(committer);
    return;
  }
  enter(committer);
  if (cookie == TIMER_STEP) {
    committer->is_thinking = false;
    begin_step(committer);
  }
  if (cookie == TIMER_WAKE) {
    committer->is_woken = false;
    drive(committer);
  }
  if (cookie == TIMER_WORK) work(committer);
  leave(committer);
}

static void started(void *context) {
  struct committer *committer = context;
  pawl_status status = pwi_client_peers(committer->client.client, &committer->peers);
  if (status) pwi_sim_fail(committer->guild->cluster.sim, status, "a node cannot start");
  pwi_cluster_timer(&committer->client, TICK, TIMER_TICK);
}

/* The process is gone with all that it knew. */
static void stopped(void *context) {
  struct committer *committer = context;
  if (committer->engine) {
    committer->engine->is_closed = false; /* its net is gone with all regions */
    pwi_factor_destroy(committer->engine);
  }
  committer->engine = NULL;
  committer->group.id = committer->joined_as.id = 0;
  committer->is_asking = committer->is_woken = committer->is_closed = committer->is_working = false;
  committer->must_close = committer->is_closing = committer->is_open = committer->is_flushing = false;
  committer->is_thinking = false;
  committer->status = PAWL_OK;
  committer->steps = 0;
}

static void heard(void *context, const struct pwi_message *message) {
  (void)context;
  (void)message;
}

static void changed(void *context) { (void)context; }

void guild_open(struct guild *guild, const struct pwi_cluster_config *config) {
  if (guild->pairs == 0) guild->pairs = 3;
  guild->founders = 0;
  for (uint32_t i = 0; i < guild->count; i++) guild->founders += !guild->is_late[i];
  cluster_open(&guild->cluster, config);
  for (uint32_t i = 0; i < guild->count; i++) {
    struct committer *committer = &guild->committers[i];
    *committer = (struct committer){.guild = guild, .index = i};
    committer->client = (struct pwi_cluster_client){.job = "committers",
                                                    .listens = true,
                                                    .started = started,
                                                    .stopped = stopped,
                                                    .timer = timer,
                                                    .heard = heard,
                                                    .membership_changed = changed,
                                                    .context = committer};
    sprintf(committer->client.name, "f%u", i);
    cluster_client_add(&guild->cluster, &committer->client);
  }
}

void guild_close(struct guild *guild) {
  pwi_cluster_close(&guild->cluster);
  for (uint32_t i = 0; i < guild->count; i++) {
    stopped(&guild->committers[i]);
    pwi_factor_batch_fini(&guild->committers[i].batch);
  }
}

/* --- waiting and comparing ------------------------------------------------------------------------------ */

bool guild_is_opening(void *context) {
  struct guild *guild = context;
  if (guild->has_lost_rows) return false;
  for (uint32_t i = 0; i < guild->count; i++) {
    const struct committer *committer = &guild->committers[i];
    if (!guild->is_late[i] && (!committer->engine || (!committer->is_open && !committer->status))) return true;
  }
  return false;
}

bool guild_is_running(void *context) {
  struct guild *guild = context;
  if (guild->has_lost_rows) return false;
  for (uint32_t i = 0; i < guild->count; i++) {
    const struct committer *committer = &guild->committers[i];
    if (guild->is_late[i] || guild->is_held[i]) continue;
    if (!committer->engine || !committer->is_open || committer->clock < guild->stop_at ||
        pwi_factor_is_stepping(committer->engine))
      return true;
  }
  return false;
}

static struct factor_epoch newest_epoch(const struct guild *guild) {
  struct factor_epoch newest = {0};
  for (uint32_t i = 0; i < guild->count; i++) {
    const struct pwi_factor *engine = guild->committers[i].engine;
    if (engine && pwi_factor_compare(engine->epoch, newest) > 0) newest = engine->epoch;
  }
  return newest;
}

/* A member that was declared dead may flush before it learns so: the others count the commits of it that they have. Its
 * next flush, once it knows, fails. So a flush counts only in the epoch in which all flush. */
static void flush_again(struct committer *committer) {
  bool is_standing =
      committer->engine && committer->is_open && !committer->must_close && !pwi_factor_is_stepping(committer->engine);
  if (!is_standing || committer->clock != committer->guild->stop_at) return;
  bool is_old = pwi_factor_compare(committer->flushed_in, committer->engine->epoch) != 0;
  if (!committer->is_flushed || is_old || committer->engine->failed) committer_flush(committer);
}

static bool is_flushing(void *context) {
  struct guild *guild = context;
  if (guild->has_lost_rows) return false;
  for (uint32_t i = 0; i < guild->count; i++) {
    struct committer *committer = &guild->committers[i];
    if (guild->is_late[i]) continue;
    flush_again(committer);
    bool is_newest = pwi_factor_compare(committer->flushed_in, newest_epoch(guild)) == 0;
    if (!committer->engine || !committer->is_flushed || !is_newest) return true;
  }
  return false;
}

static bool are_equal(const struct committer *a, const struct committer *b) {
  if (!a->guild->is_dense) return memcmp(a->matrix, b->matrix, sizeof a->matrix) == 0;
  for (size_t clock = 0; clock < MATRIX_COLUMNS; clock++)
    if (a->hashes[clock] && b->hashes[clock] && a->hashes[clock] != b->hashes[clock]) return false;
  return true;
}

/* The first member with the same rows. */
static struct committer *first_like(struct guild *guild, const struct committer *committer) {
  uint32_t i = 0;
  while (guild->is_late[i] || (guild->parts && i % guild->parts != committer->index % guild->parts)) i++;
  return &guild->committers[i];
}

pawl_status guild_settle(struct guild *guild, uint64_t more, int64_t limit) {
  bool is_partial = guild->has_graph && !guild->forwards,
       can_compare = !guild->is_dense || guild->mode == PAWL_FACTOR_BSP;
  guild->stop_at = guild->high + more;
  pawl_status status = pwi_cluster_run_while(&guild->cluster, guild_is_running, guild, limit);
  if (!status) status = pwi_cluster_run_while(&guild->cluster, is_flushing, guild, limit);
  for (uint32_t i = 0; i < guild->count && !status && !is_partial && can_compare && !guild->has_lost_rows; i++) {
    struct committer *committer = &guild->committers[i];
    if (guild->is_late[i] || (guild->is_dense && guild->has_graph)) continue;
    const struct committer *first = first_like(guild, committer);
    if (are_equal(first, committer)) continue;
    broken(committer, "the matrix differs from that of another one with the same rows", first->process, 0);
    status = PAWL_CORRUPT;
  }
  return status;
}

void guild_print(const struct guild *guild) {
  for (uint32_t i = 0; i < guild->count; i++) {
    const struct committer *committer = &guild->committers[i];
    const struct pwi_factor *engine = committer->engine;
    print_message("node %u id=%llu process=%u open=%d clock=%llu status=%d closing=%d working=%d flushing=%d\n", i,
                  (unsigned long long)committer_id(committer).id, committer->process, committer->is_open,
                  (unsigned long long)committer->clock, committer->status, committer->is_closing, committer->is_working,
                  committer->is_flushing);
    if (!engine) continue;
    print_message("    epoch %llu.%u.%llu promised %llu.%u.%llu calling=%d phase=%d need=%d failed=%d %s\n",
                  (unsigned long long)engine->epoch.number, engine->epoch.round,
                  (unsigned long long)engine->epoch.caller, (unsigned long long)engine->promised.number,
                  engine->promised.round, (unsigned long long)engine->promised.caller, engine->is_calling,
                  (int)engine->phase, (int)engine->need, engine->failed, engine->problem);
    for (uint32_t k = 0; k < engine->count; k++) {
      const struct factor_origin *origin = &engine->origins[k];
      uint64_t entries = 0;
      for (const struct factor_entry *entry = origin->first; entry; entry = entry->higher) entries++;
      print_message("    origin %llu life=%llx base=%llu final=%lld received=%llu applied=%llu heard=%d asked=%llu "
                    "entries=%llu from %llu\n",
                    (unsigned long long)origin->id, (unsigned long long)origin->life & 0xffff,
                    (unsigned long long)origin->base, (long long)origin->final, (unsigned long long)origin->received,
                    (unsigned long long)origin->applied, origin->is_heard, (unsigned long long)origin->asked,
                    (unsigned long long)entries, (unsigned long long)(origin->first ? origin->first->number : 0));
    }
    for (const struct factor_peer *peer = engine->peers; peer; peer = peer->next)
      print_message("    peer %llu life=%llx linked=%d gone=%d bad=%d status=%d state=%d attached=%u have=%d cursor=%d "
                    "sent=%llu taken=%llu model=%d\n",
                    (unsigned long long)peer->sender.id, (unsigned long long)peer->life & 0xffff, peer->is_linked,
                    peer->gone_life == peer->life, peer->is_bad, peer->has_status, peer->has_state, peer->attached,
                    peer->has_have, peer->cursor != NULL, (unsigned long long)peer->pieces_sent,
                    (unsigned long long)peer->pieces_taken, peer->must_model);
  }
}
