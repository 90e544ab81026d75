/* Workers whose iterations follow a policy (sync/pace.h), and invariants that hold for them under any
 * faults.
 *
 * In an iteration a worker pulls all workers' rows with their clocks, pushes one to its own row, works for
 * a while, and ends the iteration, which ticks the group. Independently of the pace that decides, this
 * file records all events of all workers: the *trace*. From the trace alone, by the definitions of
 * docs/policies.md, it verifies
 *
 *   - that no iteration began too early: the worker's own iterations that the policy demands have finished,
 *     and every member that was always in the membership has reached the tick that the policy demands;
 *   - that the iteration then read values that fresh, by the clocks in the answer and by the values;
 *   - that no iteration began too late: it began at the moment when the last demand of the policy was met,
 *     or when the worker was told of it. Without faults it is told at once.
 *
 * A worker that was killed restarts at the others' iteration. A worker without the newest view may be shown
 * old values.
 *
 * The workers also record their calls in the history of the campaign, which checks rows and barriers by its
 * own rules. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sim/campaign/inside.h"

#define ITERATIONS 12
#define GROUP "sim/.paced"
#define ROWS "sim/rows"
#define WORK_MAX (60 * MS)
#define HEARD_LIMIT (5 * MS) /* for a few messages, where nothing goes wrong */
#define LAZY (5 * MS)
#define USER_OWN 3
#define USER_GROUP 4

static void broken(struct paced *paced, const char *what, pawl_status status) {
  CAMPAIGN_FAIL(paced->campaign, "paced worker %u %s: iteration %llu status %s", paced->index, what,
                (unsigned long long)paced->pace.begun, pawl_status_name(status));
}

/* --- the history ---------------------------------------------------------------------------------------- */

static uint32_t begin_call(struct paced *paced, const struct pwi_history_call *call) {
  struct campaign *campaign = paced->campaign;
  return pwi_history_begin(campaign->history, pwi_campaign_now(campaign), call);
}

static uint32_t begin_group_call(struct paced *paced, enum pwi_history_verb verb, uint64_t tick) {
  return begin_call(paced,
                    &(struct pwi_history_call){.session = paced->session, .verb = verb, .name = GROUP, .tick = tick});
}

static uint32_t begin_rows_call(struct paced *paced, enum pwi_history_verb verb, const uint64_t *keys, size_t count,
                                const int64_t *rows, const struct pwi_task *task) {
  return begin_call(paced, &(struct pwi_history_call){.session = paced->session,
                                                      .verb = verb,
                                                      .vector = paced->campaign->book.paced_rows,
                                                      .keys = keys,
                                                      .count = count,
                                                      .rows = rows,
                                                      .task = task});
}

static void end_call(struct paced *paced, uint32_t call, const struct pwi_task *task, const int64_t *rows) {
  struct campaign *campaign = paced->campaign;
  struct pwi_history_answer answer = {.status = task->status, .rows = rows, .tick = task->found};
  for (uint32_t i = 0; i < campaign->config.paced; i++)
    pwi_book_note_dead(campaign, &campaign->paced[i].client, campaign->paced[i].session);
  pwi_history_end(campaign->history, pwi_campaign_now(campaign), call, &answer);
}

static void paced_heard(void *context, const struct pwi_message *message) {
  const struct paced *paced = context;
  pwi_watch_heard(paced->campaign, paced->client.client, paced->session, message);
}

/* The number of pushes that a row contains, each in a field of two bits. */
static uint64_t pushes_in(const int64_t *row) {
  uint64_t count = 0;
  for (size_t c = 0; c < PACED_WIDTH; c++)
    for (uint64_t rest = (uint64_t)row[c]; rest; rest >>= 2) count += rest & 3;
  return count;
}

/* --- the trace ------------------------------------------------------------------------------------------ */

/* NULL if it is not in the trace: before the worker began, or beyond the end. */
static struct traced *traced(struct paced *paced, uint64_t iteration) {
  return iteration > paced->began && iteration < TRACED_MAX ? &paced->trace[iteration] : NULL;
}

static bool is_loyal(const struct paced *paced) {
  struct pwi_client_state state;
  if (!paced->client.client || !paced->is_in || paced->began > 0 || paced->client.incarnation != 1) return false;
  if (pwi_cluster_client_figures(&paced->client).retirements > 0) return false;
  pwi_client_state(paced->client.client, &state);
  return pwi_membership_is_live(&pwi_campaign_ledger(paced->campaign)->membership, (struct pwi_sender){state.sender});
}

/* The tick that an iteration belongs to, by the trace: under a-bsp the current one. */
static uint64_t tick_of(const struct paced *paced, uint64_t iteration) {
  return paced->pace.policy.kind == PWI_POLICY_ABSP ? paced->ticked + 1 : iteration;
}

/* The last own iteration, and the last tick of all members, that must be finished before this iteration;
 * 0: none. */
static uint64_t own_needed(const struct paced *paced, uint64_t iteration) {
  const struct pwi_policy *policy = &paced->pace.policy;
  uint64_t missing = UINT64_MAX;
  if (policy->kind == PWI_POLICY_SEQUENTIAL) missing = 0;
  if (policy->kind == PWI_POLICY_BOUNDED || policy->kind == PWI_POLICY_ADAPTIVE) missing = policy->bound;
  if (policy->kind == PWI_POLICY_USER) missing = USER_OWN;
  return missing < iteration - 1 ? iteration - 1 - missing : 0;
}

static uint64_t group_needed(const struct paced *paced, uint64_t iteration) {
  const struct pwi_policy *policy = &paced->pace.policy;
  uint64_t missing = UINT64_MAX, tick = tick_of(paced, iteration);
  if (policy->kind == PWI_POLICY_SSP) missing = policy->bound;
  if (policy->kind == PWI_POLICY_ABSP) missing = 0;
  if (policy->kind == PWI_POLICY_USER) missing = USER_GROUP;
  return missing < tick - 1 ? tick - 1 - missing : 0;
}

static bool lets(void *context, uint64_t iteration, const struct pwi_progress *progress) {
  (void)context;
  return progress->finished + USER_OWN + 1 >= iteration &&
         (progress->slowest == UINT64_MAX || progress->slowest + USER_GROUP + 1 >= iteration);
}

/* --- the checks ----------------------------------------------------------------------------------------- */

/* When the last of the needed own iterations had finished; -1 if one has not. */
static int64_t own_since(struct paced *paced, uint64_t needed) {
  int64_t since = 0;
  for (uint64_t i = paced->began + 1; i <= needed; i++) {
    const struct traced *item = traced(paced, i);
    if (!item) continue;
    if (!item->has_ended || item->pending > 0) return -1;
    if (item->finished_at > since) since = item->finished_at;
  }
  return since;
}

/* When the last of the members that were never out had its tick acknowledged; -1 if one has not even sent
 * it. */
static int64_t group_since(struct paced *paced, uint64_t needed) {
  int64_t since = 0;
  for (uint32_t i = 0; i < paced->campaign->config.paced && needed > 0; i++) {
    struct paced *other = &paced->campaign->paced[i];
    if (!is_loyal(other)) continue;
    if (other->ticked < needed) return -1;
    int64_t at = needed < TRACED_MAX ? other->acknowledged_at[needed] : 0;
    /* the tick is applied, but its own worker has not been told yet */
    if (at == 0) at = pwi_campaign_now(paced->campaign);
    if (at > since) since = at;
  }
  return since;
}

static bool is_calm(const struct campaign *campaign) {
  const struct pwi_campaign_config *config = &campaign->config;
  return !config->gap_nodes_ns && !config->gap_kills_ns && !config->gap_servers_ns && !config->gap_manager_ns &&
         !config->gap_members_ns && !config->gap_moves_ns;
}

/* No member passes before all have entered. */
static int64_t complete_since(const struct campaign *campaign) {
  int64_t since = 0;
  for (uint32_t i = 0; i < campaign->config.paced; i++) {
    const struct paced *paced = &campaign->paced[i];
    if (!paced->is_in && !paced->is_over) return INT64_MAX;
    if (paced->entered_at > since) since = paced->entered_at;
  }
  return since;
}

static void check_begin(struct paced *paced) {
  uint64_t iteration = paced->pace.begun, needed = group_needed(paced, iteration);
  int64_t now = pwi_campaign_now(paced->campaign), own = own_since(paced, own_needed(paced, iteration));
  int64_t group = is_loyal(paced) ? group_since(paced, needed) : 0;
  if (own < 0) broken(paced, "began before its own iterations permitted it", PAWL_OK);
  if (group < 0) broken(paced, "began before the other members permitted it", PAWL_OK);
  int64_t known = own > paced->wanted_at ? own : paced->wanted_at;
  if (paced->heard_at > known && paced->heard_for >= needed && needed > 0) known = paced->heard_at;
  if (now > known) broken(paced, "began later than its policy permitted", PAWL_OK);
  int64_t cause = group > paced->wanted_at ? group : paced->wanted_at;
  if (is_calm(paced->campaign) && complete_since(paced->campaign) <= cause && own <= cause && now > cause + HEARD_LIMIT)
    broken(paced, "was not told that it may begin", PAWL_OK);
}

/* On the key that belongs to the other worker: on other keys its clock does not advance when arcs are
 * split. */
static uint64_t clock_of(const struct paced_step *step, const struct paced *other) {
  struct pwi_client_state state;
  pwi_client_state(other->client.client, &state);
  for (size_t i = 0; i < step->clocks.count; i++) {
    const struct pwi_clock_seen *seen = &step->clocks.items[i];
    if (seen->sender.id == state.sender && pawl_range_has(seen->range, other->index)) return seen->time;
  }
  return 0;
}

/* The pushes that must have been seen: of another worker those up to the tick that the policy demands; its
 * own all. */
static void check_seen(struct paced *paced, const struct paced_step *step) {
  const struct pwi_policy *policy = &paced->pace.policy;
  uint64_t length = policy->kind == PWI_POLICY_ABSP ? policy->bound : 1;
  if (!is_loyal(paced) || !step->is_current) return;
  for (uint32_t i = 0; i < paced->campaign->config.paced; i++) {
    struct paced *other = &paced->campaign->paced[i];
    uint64_t needed = other == paced ? step->iteration - 1 : step->group_needed * length;
    const struct traced *item = is_loyal(other) ? traced(other, needed) : NULL;
    if (!item) continue;
    if (clock_of(step, other) < item->number) broken(paced, "read values older than its policy permits", PAWL_OK);
    if (pushes_in(step->seen[i]) < needed) broken(paced, "did not see the pushes that the clocks claim", PAWL_OK);
  }
}

/* --- one iteration -------------------------------------------------------------------------------------- */

static void look(struct paced *paced);
static void end_if_done(struct paced *paced);

static void step_over(struct paced *paced, struct paced_step *step) {
  struct traced *item = traced(paced, step->iteration);
  item->pending--;
  if (item->pending == 0) item->finished_at = pwi_campaign_now(paced->campaign);
  if (--step->pending == 0) step->is_busy = false;
  pwi_pace_over(&paced->pace, step->iteration);
  look(paced);
  end_if_done(paced);
}

static void pushed(struct pwi_task *task) {
  struct paced_step *step = (struct paced_step *)((char *)task - offsetof(struct paced_step, push));
  end_call(step->paced, step->push_call, task, NULL);
  if (task->status)
    broken(step->paced, "could not push", task->status);
  else
    step_over(step->paced, step);
}

static void pulled(struct pwi_task *task) {
  struct paced_step *step = (struct paced_step *)((char *)task - offsetof(struct paced_step, pull));
  struct paced *paced = step->paced;
  end_call(paced, step->pull_call, task, step->seen[0]);
  if (task->status) {
    broken(paced, "could not pull", task->status);
    return;
  }
  check_seen(paced, step);
  step_over(paced, step);
}

static struct paced_step *free_step(struct paced *paced) {
  for (size_t i = 0; i < STEPS_MAX; i++)
    if (!paced->steps[i].is_busy) return &paced->steps[i];
  return NULL;
}

/* Pulls first, so that it does not see the push of its own iteration. */
static pawl_status start_calls(struct paced *paced, struct paced_step *step) {
  struct pwi_client *client = paced->client.client;
  const struct pwi_view *view = pwi_client_view(client);
  struct pwi_where all = {.range = pawl_range_of(0, PACED_MAX)};
  struct pwi_where own = {.range = pawl_range_of(paced->index, paced->index + 1)};
  step->is_current = view && view->epoch == pwi_campaign_ledger(paced->campaign)->view->epoch;
  uint64_t keys[PACED_MAX], *key = &keys[paced->index];
  for (uint64_t i = 0; i < PACED_MAX; i++) keys[i] = i;
  pwi_history_row(paced->campaign->history, paced->campaign->book.paced_rows, *key, step->pushed);
  step->push = (struct pwi_task){.finished = pushed};
  step->pull = (struct pwi_task){.finished = pulled, .clocks = &step->clocks};
  pwi_pace_add(&paced->pace);
  pwi_pace_add(&paced->pace);
  step->pull_call = begin_rows_call(paced, PWI_HISTORY_PULL, keys, PACED_MAX, NULL, &step->pull);
  pawl_status status = pwi_client_start(client, &step->pull, paced->rows, PWI_REQUEST_PULL, &all, NULL, step->seen);
  step->push_call = begin_rows_call(paced, PWI_HISTORY_PUSH, key, 1, step->pushed, &step->push);
  for (size_t c = 0; c < PACED_WIDTH && paced->campaign->config.paced_bug == PWI_PACED_TWICE; c++)
    step->pushed[c] = (int64_t)(2 * (uint64_t)step->pushed[c]); /* each bit is an iteration: the highest is lost */
  if (!status) status = pwi_client_start(client, &step->push, paced->rows, PWI_REQUEST_PUSH, &own, step->pushed, NULL);
  struct traced *item = traced(paced, step->iteration);
  if (!status) item->number = step->push.number;
  return status;
}

static void begin_iteration(struct paced *paced) {
  struct paced_step *step = free_step(paced);
  paced->wants = false;
  paced->campaign->figures.iterations++;
  if (pwi_campaign_now(paced->campaign) > paced->wanted_at) paced->campaign->figures.waits++;
  pawl_status status = step ? pwi_pace_begin(&paced->pace) : PAWL_NODE_LIMIT;
  if (!status) {
    check_begin(paced);
    struct pwi_clock_list clocks = step->clocks;
    *step = (struct paced_step){.paced = paced, .is_busy = true, .pending = 2, .iteration = paced->pace.begun};
    step->clocks = clocks;
    step->group_needed = group_needed(paced, step->iteration);
    *traced(paced, step->iteration) = (struct traced){.pending = 2};
    status = start_calls(paced, step);
  }
  if (status)
    broken(paced, "could not begin", status);
  else
    pwi_cluster_timer(&paced->client, 1 + (int64_t)pwi_random_below(paced->client.random, WORK_MAX), 0);
}

/* --- waiting -------------------------------------------------------------------------------------------- */

static void heard(struct pwi_task *task) {
  struct listening *listening = (struct listening *)((char *)task - offsetof(struct listening, task));
  struct paced *paced = listening->paced;
  listening->is_busy = false;
  end_call(paced, listening->call, task, NULL);
  if (task->status) {
    broken(paced, "could not wait", task->status);
    return;
  }
  if (task->found > paced->pace.slowest) paced->heard_at = pwi_campaign_now(paced->campaign);
  pwi_pace_heard(&paced->pace, task->found);
  paced->heard_for = paced->pace.slowest;
  look(paced);
}

static void listen(struct paced *paced, uint64_t tick) {
  struct listening *place = NULL;
  for (size_t i = 0; i < STEPS_MAX; i++) {
    struct listening *listening = &paced->listening[i];
    if (listening->is_busy && listening->tick <= tick) return;
    if (!listening->is_busy) place = listening;
  }
  pawl_status status = place ? PAWL_OK : PAWL_NODE_LIMIT;
  if (!status) {
    *place = (struct listening){.task = {.finished = heard}, .paced = paced, .tick = tick, .is_busy = true};
    place->call = begin_group_call(paced, PWI_HISTORY_AWAIT, tick);
    status = pwi_client_await(paced->client.client, &place->task, paced->group, tick);
  }
  if (status) broken(paced, "could not ask for the ticks of the others", status);
}

static void end_if_done(struct paced *paced) {
  if (paced->is_over || paced->pace.begun < ITERATIONS || paced->pace.finished < paced->pace.begun) return;
  if (paced->pace.is_open || paced->ticks_pending > 0) return;
  paced->is_over = true;
  pwi_sim_kill(paced->campaign->cluster.sim, paced->client.node);
}

/* Called on news: the next iteration may be due. */
static void look(struct paced *paced) {
  if (!paced->wants) return;
  struct pwi_policy_wait wait = pwi_pace_ask(&paced->pace);
  bool is_hasty = paced->campaign->config.paced_bug == PWI_PACED_HASTY;
  if (wait.cause == PWI_WAITS_NOT && paced->campaign->config.paced_bug == PWI_PACED_LAZY && !paced->has_dallied) {
    paced->has_dallied = true;
    pwi_cluster_timer(&paced->client, LAZY, 1);
  } else if (wait.cause == PWI_WAITS_NOT || (is_hasty && free_step(paced))) {
    begin_iteration(paced);
  } else if (wait.cause == PWI_WAITS_GROUP) {
    listen(paced, wait.until);
  } else if (wait.cause == PWI_WAITS_USER) {
    listen(paced, paced->pace.slowest + 1);
  }
}

/* The bound of some policies changes now and then, between two iterations. */
static void change_bound(struct paced *paced) {
  enum pwi_policy_kind kind = paced->pace.policy.kind;
  if ((kind != PWI_POLICY_BOUNDED && kind != PWI_POLICY_SSP) || !pwi_random_chance(paced->client.random, 0.2)) return;
  pawl_status status = pwi_pace_set_bound(&paced->pace, pwi_random_below(paced->client.random, 4));
  if (status) broken(paced, "could not change its bound", status);
}

/* Under the eventual policy as many iterations begin as there is room for. */
static void want(struct paced *paced) {
  if (paced->pace.begun >= ITERATIONS) {
    end_if_done(paced);
    return;
  }
  change_bound(paced);
  paced->wants = true;
  paced->has_dallied = false;
  paced->wanted_at = pwi_campaign_now(paced->campaign);
  look(paced);
}

static void ticked(struct pwi_task *task) {
  struct ticking *ticking = (struct ticking *)((char *)task - offsetof(struct ticking, task));
  struct paced *paced = ticking->paced;
  end_call(paced, ticking->call, task, NULL);
  if (task->status) {
    broken(paced, "could not tick", task->status);
    return;
  }
  if (ticking->tick < TRACED_MAX) paced->acknowledged_at[ticking->tick] = pwi_campaign_now(paced->campaign);
  paced->ticks_pending--;
  end_if_done(paced);
}

static void end_iteration(struct paced *paced) {
  struct traced *item = traced(paced, paced->pace.begun);
  item->has_ended = true;
  if (item->pending == 0) item->finished_at = pwi_campaign_now(paced->campaign);
  double gain = pwi_random_chance(paced->client.random, 0.5) ? 1 : -1;
  if (pwi_pace_end(&paced->pace, 1, 1, gain)) {
    struct ticking *ticking = &paced->ticking[++paced->ticked];
    *ticking = (struct ticking){.task = {.finished = ticked}, .paced = paced, .tick = paced->pace.ticked};
    ticking->call = begin_group_call(paced, PWI_HISTORY_TICK, ticking->tick);
    paced->ticks_pending++;
    pawl_status status = pwi_client_tick(paced->client.client, &ticking->task, paced->group, ticking->tick);
    if (status) broken(paced, "could not start its tick", status);
  }
  want(paced);
}

static void paced_timer(void *context, uint64_t cookie) {
  struct paced *paced = context;
  if (cookie == 0)
    end_iteration(paced);
  else
    look(paced);
}

/* --- joining and leaving -------------------------------------------------------------------------------- */

static void entered(struct pwi_task *task) {
  struct paced *paced = (struct paced *)((char *)task - offsetof(struct paced, enter));
  struct pwi_policy policy;
  end_call(paced, paced->enter_call, task, NULL);
  if (task->status || pwi_policy_parse(paced->campaign->config.policy, &policy, NULL)) {
    broken(paced, "could not enter", task->status);
    return;
  }
  if (paced->campaign->config.is_user_policy) policy = (struct pwi_policy){.kind = PWI_POLICY_USER, .lets = lets};
  pwi_pace_init(&paced->pace, &policy, true, task->found);
  paced->has_pace = true;
  paced->began = paced->pace.begun;
  paced->ticked = task->found;
  paced->is_in = true;
  paced->entered_at = pwi_campaign_now(paced->campaign);
  paced->heard_at = 0;
  want(paced);
}

static void ask_to_join(struct paced *paced);

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct paced *paced = (struct paced *)((char *)asking - offsetof(struct paced, asking));
  struct pwi_client *client = paced->client.client;
  (void)payload, (void)size;
  const struct pwi_entry *group = pwi_catalogue_named(pwi_client_catalogue(client), GROUP);
  const struct pwi_entry *rows = pwi_catalogue_named(pwi_client_catalogue(client), ROWS);
  if (!status && (!group || !rows)) status = PAWL_NOT_FOUND;
  if (!status) status = pwi_client_flow(client, group->id, 0, &paced->group);
  if (!status) status = pwi_client_flow(client, rows->id, 0, &paced->rows);
  paced->enter = (struct pwi_task){.finished = entered};
  if (!status) {
    paced->enter_call = begin_group_call(paced, PWI_HISTORY_ENTER, 0);
    status = pwi_client_enter(client, &paced->enter, paced->group);
  }
  if (pwi_campaign_is_journal_failure(status))
    ask_to_join(paced);
  else if (status)
    broken(paced, "could not join", status);
}

static void ask_to_join(struct paced *paced) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, paced->campaign->config.paced);
  paced->asking = (struct pwi_asking){.replied = joined};
  pawl_status status = writer.status;
  if (!status) status = pwi_client_ask(paced->client.client, &paced->asking, PWI_ASK_GROUP, writer.data, writer.size);
  if (status) broken(paced, "could not ask to join", status);
  pwi_writer_fini(&writer);
}

static void forget(struct paced *paced) {
  if (paced->has_pace) pwi_pace_fini(&paced->pace);
  for (size_t i = 0; i < STEPS_MAX; i++) pwi_clock_list_fini(&paced->steps[i].clocks);
  paced->has_pace = paced->is_in = paced->wants = false;
  paced->ticks_pending = 0;
  memset(paced->steps, 0, sizeof paced->steps);
  memset(paced->listening, 0, sizeof paced->listening);
}

static void paced_started(void *context) {
  struct paced *paced = context;
  paced->session = pwi_history_session(paced->campaign->history, paced->client.name);
  if (!paced->is_over) ask_to_join(paced); /* else it was restarted in the meantime */
}

static void paced_stopped(void *context) {
  struct paced *paced = context;
  forget(paced);
  pwi_history_gone(paced->campaign->history, paced->session);
}

pawl_status pwi_paced_make_vectors(struct campaign *campaign) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = PACED_WIDTH, .size = PACED_MAX};
  struct pwi_history_vector vector = {.name = ROWS, .width = PACED_WIDTH, .place.size = PACED_MAX};
  struct pwi_flow *flow;
  campaign->book.paced_rows = pwi_history_vector(campaign->history, &vector);
  return campaign->config.paced ? pwi_cluster_vector(&campaign->checker, ROWS, &options, &flow) : PAWL_OK;
}

pawl_status pwi_paced_read(struct campaign *campaign) {
  uint64_t keys[PACED_MAX];
  for (uint64_t i = 0; i < PACED_MAX; i++) keys[i] = i;
  if (campaign->config.paced == 0) return PAWL_OK;
  return pwi_campaign_read(campaign, ROWS, campaign->book.paced_rows, keys, PACED_MAX);
}

pawl_status pwi_paced_add(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < campaign->config.paced && !status; i++) {
    struct paced *paced = &campaign->paced[i];
    paced->campaign = campaign;
    paced->index = i;
    snprintf(paced->client.name, sizeof paced->client.name, "p%u", i % 100);
    paced->client.started = paced_started;
    paced->client.stopped = paced_stopped;
    paced->client.timer = paced_timer;
    paced->client.heard = paced_heard;
    paced->client.context = paced;
    status = pwi_campaign_client_add(campaign, &paced->client, true);
  }
  return status;
}

bool pwi_paced_are_busy(const struct campaign *campaign) {
  for (uint32_t i = 0; i < campaign->config.paced; i++)
    if (!campaign->paced[i].is_over) return true;
  return false;
}

void pwi_paced_fini(struct campaign *campaign) {
  for (uint32_t i = 0; i < campaign->config.paced; i++) forget(&campaign->paced[i]);
}
