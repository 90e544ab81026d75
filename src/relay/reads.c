/* Reads: rows of some keys that are fetched once and passed to all members that pull them.
 *
 * A pull says how old its rows may be (struct relay_age): the version of the arc that its sender has seen, and the tick
 * up to which the pushes of all members must be there. Rows that are here and young enough answer it at once. A read
 * that is under way answers it, too, if its rows will be young enough. Otherwise the pull joins the next read, which is
 * sent when the one under way has ended: so all pulls that come meanwhile are one request. A pull that wants rows which
 * are read after it has come always joins the next read.
 *
 * TRUTH. When a read ends, its rows are compared with each pull that waits, by the version that the server has told.
 * A pull that wants younger rows joins the next read, once. Rows without a version answer nobody.
 *
 * What a read promises about ticks: each member waits for a tick by itself, and tells that in its pulls. A read that is
 * sent after a member knows that all have finished tick t has their pushes up to t.
 *
 * DOUBT. Rows are kept as long as the view is the same, their vector exists, and nobody else needs the memory. Whatever
 * else happens, the answer is DIRECT.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "protocol/planted.h"
#include "relay/inside.h"

#define PATIENCE INT64_C(2000000000) /* a read that takes longer is not joined */
#define IDLE INT64_C(60000000000)    /* rows that nobody has pulled for so long are dropped */
#define WAITERS_MAX 65535
#define BESIDE 1024 /* bytes of a read besides its rows and keys, roughly */

/* --- finding -------------------------------------------------------------------------------------------- */

static bool is_same_range(struct pawl_range a, struct pawl_range b) { return a.begin == b.begin && a.end == b.end; }

static bool names_same(const struct relay_read *read, const struct pwi_terms *terms, const uint64_t *keys) {
  const struct pwi_terms *is = &read->terms;
  if (is->vector.id != terms->vector.id || is->incarnation != terms->incarnation || is->other != terms->other)
    return false;
  if (!is_same_range(is->claim, terms->claim) || !is_same_range(is->range, terms->range)) return false;
  if (is->rows != terms->rows || !read->keys != !keys) return false;
  return !keys || memcmp(read->keys, keys, (size_t)terms->rows * sizeof *keys) == 0;
}

static struct relay_read *find(const struct pwi_relay *relay, enum relay_read_state state,
                               const struct pwi_terms *terms, const uint64_t *keys) {
  struct relay_read *read = relay->reads;
  while (read && (read->state != state || !names_same(read, terms, keys))) read = read->next;
  return read;
}

static uint64_t epoch_of(const struct pwi_relay *relay) {
  const struct pwi_view *view = pwi_client_view(relay->client);
  return view ? view->epoch : 0;
}

static struct relay_age age_of(const struct pwi_terms *terms, uint64_t tick) {
  uint64_t older = terms->staleness > 0 ? terms->staleness - 1 : 0;
  return (struct relay_age){.version = terms->prior,
                            .known = tick,
                            .needed = terms->staleness > 0 && tick > older ? tick - older : 0,
                            .is_fresh = terms->staleness == 0};
}

/* Returns true if rows of this version, which have the pushes up to tick `known`, are young enough. */
static bool are_young(uint64_t version, uint64_t known, const struct relay_age *age) {
  if (version < age->version && !pwi_is_planted(PWI_PLANTED_RELAY_OLD_CACHE)) return false;
  return age->is_fresh || known >= age->needed;
}

/* --- one read ------------------------------------------------------------------------------------------- */

void pwi_relay_free_read(struct relay_read *read) {
  struct pwi_relay *relay = read->crowd.relay;
  struct relay_read **at = &relay->reads;
  while (*at != read) at = &(*at)->next;
  *at = read->next;
  relay->memory -= read->memory;
  pwi_relay_fini_crowd(&read->crowd);
  pwi_free(read->takers.items);
  pwi_free(read->keys);
  pwi_writer_fini(&read->section);
  pwi_free(read);
}

static void unread(struct relay_crowd *crowd) {
  struct relay_read *read = (struct relay_read *)crowd;
  if (read->state == READ_DROPPED) pwi_relay_free_read(read);
}

static void drop(struct relay_read *read) {
  read->state = READ_DROPPED;
  if (read->crowd.out_count == 0) pwi_relay_free_read(read);
}

bool pwi_relay_make_room(struct pwi_relay *relay, uint64_t bytes) {
  while (bytes <= relay->config.memory_max && relay->memory > relay->config.memory_max - bytes) {
    struct relay_read *oldest = NULL;
    for (struct relay_read *read = relay->reads; read; read = read->next)
      if (read->state == READ_KEPT && read->crowd.out_count == 0 && (!oldest || read->used_at < oldest->used_at))
        oldest = read;
    if (!oldest) return false;
    drop(oldest);
  }
  return bytes <= relay->config.memory_max;
}

static struct relay_read *begin(struct pwi_relay *relay, const struct pwi_terms *terms, const uint64_t *keys,
                                const struct pwi_entry *entry) {
  size_t rows, list = keys ? (size_t)terms->rows * sizeof *keys : 0, bytes;
  if (!pwi_mul_size((size_t)terms->rows, pwi_entry_row_bytes(entry), &rows)) return NULL;
  if (!pwi_add_size(rows, list + BESIDE, &bytes) || !pwi_relay_make_room(relay, bytes)) return NULL;
  struct relay_read *read = pwi_alloc_zero(1, sizeof *read);
  if (!read) return NULL;
  *read = (struct relay_read){.next = relay->reads, .terms = *terms, .memory = bytes};
  read->crowd = (struct relay_crowd){.relay = relay,
                                     .id = ++relay->last_crowd,
                                     .value_type = (uint8_t)entry->is.type,
                                     .rows = pwi_alloc(rows),
                                     .bytes = rows,
                                     .unread = unread};
  read->keys = keys ? pwi_alloc(list) : NULL;
  relay->reads = read;
  relay->memory += bytes;
  if (!read->crowd.rows || !read->keys != !keys) {
    pwi_relay_free_read(read);
    return NULL;
  }
  if (keys) memcpy(read->keys, keys, list);
  return read;
}

/* Slots of answers that the net has sent are used again. */
static bool wait_for(struct relay_read *read, const struct relay_waiter *waiter, size_t *place_out) {
  struct relay_crowd *crowd = &read->crowd;
  size_t i = 0;
  while (i < crowd->waiter_count && (!crowd->waiters[i].is_gone || crowd->waiters[i].out)) i++;
  if (i == WAITERS_MAX || !PWI_GROW(crowd->waiters, crowd->waiter_room, i + 1)) return false;
  crowd->waiters[i] = *waiter;
  pwi_relay_raise(crowd, waiter->priority);
  if (i == crowd->waiter_count) crowd->waiter_count++;
  *place_out = i;
  return true;
}

/* --- gathering ------------------------------------------------------------------------------------------ */

static void need(struct relay_age *all, const struct relay_age *more) {
  if (more->version > all->version) all->version = more->version;
  if (more->known > all->known) all->known = more->known;
  if (more->needed > all->needed) all->needed = more->needed;
  all->is_fresh |= more->is_fresh;
}

/* Adds a pull to the next read of its keys. False: nothing has changed. */
static bool gather(struct pwi_relay *relay, const struct pwi_terms *terms, const uint64_t *keys,
                   const struct pwi_entry *entry, const struct relay_waiter *waiter,
                   const struct pwi_contributor *takers, size_t count, uint32_t hops) {
  struct relay_read *read = find(relay, READ_GATHERED, terms, keys);
  bool is_new = !read;
  size_t place;
  if (is_new) read = begin(relay, terms, keys, entry);
  if (!read) return false;
  if (!pwi_relay_add_senders(&read->takers, takers, count) || !wait_for(read, waiter, &place)) {
    if (is_new) pwi_relay_free_read(read);
    return false;
  }
  need(&read->age, &waiter->age);
  if (hops > read->hops) read->hops = hops;
  return true;
}

/* The rows of a read are not for this waiter, who joins the next one; but only once. */
static void try_again(struct relay_read *read, size_t i) {
  struct pwi_relay *relay = read->crowd.relay;
  const struct pwi_entry *entry = pwi_catalogue_find(pwi_client_catalogue(relay->client), read->terms.vector);
  struct relay_waiter waiter = read->crowd.waiters[i];
  waiter.is_again = true;
  bool is_again = read->crowd.waiters[i].is_again || relay->is_leaving || !entry || read->takers.count == 0;
  if (!is_again &&
      gather(relay, &read->terms, read->keys, entry, &waiter, read->takers.items, read->takers.count, read->hops)) {
    read->crowd.waiters[i].is_gone = true;
    return;
  }
  relay->figures.refused++;
  pwi_relay_answer_one(&read->crowd, i, &(struct pwi_outcome){.code = PWI_CODE_DIRECT});
}

/* --- the end of a read ---------------------------------------------------------------------------------- */

static bool is_of_present(const struct relay_read *read) {
  struct pwi_relay *relay = read->crowd.relay;
  const struct pwi_entry *entry = pwi_catalogue_find(pwi_client_catalogue(relay->client), read->terms.vector);
  return read->view == epoch_of(relay) && entry && entry->incarnation == read->terms.incarnation;
}

static void keep(struct relay_read *read) {
  struct pwi_relay *relay = read->crowd.relay;
  struct relay_read *former = find(relay, READ_KEPT, &read->terms, read->keys);
  if (former) drop(former);
  if (relay->is_leaving || !is_of_present(read)) {
    read->state = READ_DROPPED;
    return;
  }
  read->state = READ_KEPT;
  read->used_at = pwi_net_now(relay->config.net);
  pwi_client_wake(relay->client, read->used_at + IDLE);
}

static void pass_on(struct relay_read *read) {
  struct relay_crowd *crowd = &read->crowd;
  const struct pwi_outcome *told = &read->answer.outcome;
  if (read->answer.is_of_relay) read->age.known = told->found;
  read->age.version = crowd->version = told->version;
  crowd->found = read->age.known;
  pwi_relay_permit(crowd->relay, &read->takers, read->terms.vector.id);
  for (size_t i = 0; i < crowd->waiter_count; i++) {
    if (crowd->waiters[i].is_gone) continue;
    if (!are_young(read->age.version, read->age.known, &crowd->waiters[i].age)) {
      try_again(read, i);
      continue;
    }
    crowd->relay->figures.pulls++;
    crowd->relay->figures.bytes_back += crowd->bytes;
    pwi_relay_answer_one(crowd, i, &(struct pwi_outcome){.code = PWI_CODE_OK});
  }
  keep(read);
}

/* Nobody gets rows. If a server has refused one of the takers, the others read again without it. A relay among the
 * waiters is told, because the taker may be a child of it. */
static void fail(struct relay_read *read) {
  struct relay_crowd *crowd = &read->crowd;
  struct pwi_relay *relay = crowd->relay;
  const struct pwi_membership *membership = pwi_client_membership(relay->client);
  const struct pwi_outcome *told = &read->answer.outcome;
  struct pwi_outcome direct = {.code = PWI_CODE_DIRECT};
  if (told->code == PWI_CODE_DIRECT) direct.next = told->next;
  if (direct.next != 0) pwi_relay_forbid(relay, direct.next);
  if (direct.next != 0) pwi_relay_drop_sender(&read->takers, direct.next);
  for (size_t i = 0; i < crowd->waiter_count; i++) {
    struct relay_waiter *waiter = &crowd->waiters[i];
    if (waiter->is_gone) continue;
    if (direct.next != 0 && waiter->sender != direct.next && !pwi_relay_is_listed(membership, waiter->sender)) {
      try_again(read, i);
      continue;
    }
    relay->figures.refused++;
    pwi_relay_answer_one(crowd, i, &direct);
  }
  read->state = READ_DROPPED;
}

static void send(struct relay_read *read);

/* The answers of this read may end it, and it must live until the next one of its keys was sent. */
static void end(struct relay_read *read, bool is_read) {
  struct relay_crowd *crowd = &read->crowd;
  crowd->out_count++;
  if (is_read)
    pass_on(read);
  else
    fail(read);
  struct relay_read *next = find(crowd->relay, READ_GATHERED, &read->terms, read->keys);
  if (next)
    send(next);
  else
    pwi_relay_weigh(crowd->relay);
  if (--crowd->out_count == 0) unread(crowd);
}

static void finished(struct pwi_task *task) {
  struct relay_read *read = (struct relay_read *)((char *)task - offsetof(struct relay_read, task));
  end(read, task->status == PAWL_OK && read->answer.outcome.version != 0);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static bool has_waiters(const struct relay_read *read) {
  for (size_t i = 0; i < read->crowd.waiter_count; i++)
    if (!read->crowd.waiters[i].is_gone) return true;
  return false;
}

static uint32_t staleness_of(const struct relay_age *age) {
  uint64_t older = age->known > age->needed ? age->known - age->needed : 0;
  if (age->is_fresh) return 0;
  return older < UINT32_MAX ? (uint32_t)older + 1 : UINT32_MAX;
}

static void send(struct relay_read *read) {
  struct pwi_relay *relay = read->crowd.relay;
  struct pwi_flow *flow;
  if (!has_waiters(read)) {
    drop(read);
    return;
  }
  pwi_writer_reset(&read->section);
  pwi_contributors_encode(read->takers.items, read->takers.count, read->hops + 1, &read->section);
  pawl_status status = read->section.status;
  read->state = READ_SENT;
  read->view = epoch_of(relay);
  read->sent_at = pwi_net_now(relay->config.net);
  if (!status) status = pwi_client_flow(relay->client, read->terms.vector, 0, &flow);
  if (!status && pwi_flow_entry(flow)->incarnation != read->terms.incarnation) status = PAWL_RESTORED;
  read->relayed = (struct pwi_relayed){.kind = PWI_REQUEST_PULL,
                                       .group = {read->terms.other},
                                       .tick = read->age.known,
                                       .staleness = staleness_of(&read->age),
                                       .version = read->age.version,
                                       .claim = read->terms.claim,
                                       .range = read->terms.range,
                                       .keys = read->keys,
                                       .rows = (size_t)read->terms.rows,
                                       .out = read->crowd.rows,
                                       .contributors = read->section.data,
                                       .contributors_size = read->section.size,
                                       .hops = read->hops + 1,
                                       .answer = &read->answer};
  read->task = (struct pwi_task){.finished = finished};
  pwi_relay_weigh(relay);
  if (!status) relay->figures.reads++;
  if (!status) relay->figures.bytes_read += read->crowd.bytes;
  if (!status) status = pwi_client_relay(relay->client, &read->task, flow, &read->relayed);
  if (status) end(read, false);
}

/* --- pulls ---------------------------------------------------------------------------------------------- */

static bool answer_at_once(struct pwi_relay *relay, const struct relay_request *pull,
                           const struct relay_waiter *waiter) {
  struct relay_read *read = find(relay, READ_KEPT, &pull->terms, pull->keys);
  size_t place;
  if (!read || waiter->age.is_fresh || !is_of_present(read)) return false;
  if (!are_young(read->age.version, read->age.known, &waiter->age)) return false;
  if (!pwi_relay_may_read(relay, pull->contributors, pull->count, pull->terms.vector.id)) return false;
  if (!wait_for(read, waiter, &place)) return false;
  read->used_at = pwi_net_now(relay->config.net);
  relay->figures.pulls++;
  relay->figures.pulls_kept++;
  relay->figures.bytes_back += read->crowd.bytes;
  pwi_relay_answer_one(&read->crowd, place, &(struct pwi_outcome){.code = PWI_CODE_OK});
  return true;
}

static bool are_takers(const struct relay_read *read, const struct relay_request *pull) {
  bool are = true;
  for (size_t i = 0; i < pull->count; i++)
    are = are && pwi_relay_has_sender(&read->takers, pull->contributors[i].sender.id);
  return are || pwi_relay_may_read(read->crowd.relay, pull->contributors, pull->count, pull->terms.vector.id);
}

static bool join(struct relay_read *read, const struct relay_request *pull, const struct relay_waiter *waiter) {
  size_t place;
  if (waiter->age.is_fresh || read->age.known < waiter->age.needed || !is_of_present(read)) return false;
  return are_takers(read, pull) && wait_for(read, waiter, &place);
}

bool pwi_relay_read(struct pwi_relay *relay, const struct relay_request *pull) {
  struct relay_waiter waiter = pull->waiter;
  int64_t now = pwi_net_now(relay->config.net);
  waiter.age = age_of(&pull->terms, pull->tick);
  if (answer_at_once(relay, pull, &waiter)) return true;
  struct relay_read *sent = find(relay, READ_SENT, &pull->terms, pull->keys);
  if (sent && now > sent->sent_at + PATIENCE) return false;
  if (!(sent && join(sent, pull, &waiter)) &&
      !gather(relay, &pull->terms, pull->keys, pull->entry, &waiter, pull->contributors, pull->count, pull->hops))
    return false;
  if (sent)
    pwi_relay_weigh(relay);
  else
    send(find(relay, READ_GATHERED, &pull->terms, pull->keys));
  return true;
}

/* --- all reads ------------------------------------------------------------------------------------------ */

void pwi_relay_look_at_reads(struct pwi_relay *relay, int64_t now) {
  for (struct relay_read *read = relay->reads, *next; read; read = next) {
    next = read->next;
    if (read->state == READ_KEPT && (now >= read->used_at + IDLE || !is_of_present(read))) drop(read);
  }
}

void pwi_relay_lose_taker(struct pwi_relay *relay, struct pwi_link link) {
  for (struct relay_read *read = relay->reads; read; read = read->next)
    for (size_t i = 0; i < read->crowd.waiter_count; i++)
      if (read->crowd.waiters[i].link.id == link.id) read->crowd.waiters[i].is_gone = true;
}

void pwi_relay_give_up_reads(struct pwi_relay *relay) {
  struct pwi_outcome direct = {.code = PWI_CODE_DIRECT};
  for (struct relay_read *read = relay->reads, *next; read; read = next) {
    next = read->next;
    for (size_t i = 0; i < read->crowd.waiter_count; i++)
      if (!read->crowd.waiters[i].is_gone) pwi_relay_answer_one(&read->crowd, i, &direct);
    if (read->state == READ_GATHERED || read->state == READ_KEPT) drop(read);
  }
}
