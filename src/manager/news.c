/* Announcements of view, catalogue and membership.
 *
 * Every change is sent to the servers at once, as an edition that is encoded once. An edition that all
 * servers that are up have confirmed is settled, and is sent to clients. Replies to the asks that caused it
 * follow.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "manager/inside.h"

#define RETRY_NS INT64_C(100000000) /* after memory ran out */

static const uint16_t sections[PWI_TOPICS] = {PWI_SECTION_VIEW, PWI_SECTION_CATALOGUE, 0};

/* --- editions ------------------------------------------------------------------------------------------- */

static struct news_edition *retain(struct news_edition *edition) {
  if (edition) edition->references++;
  return edition;
}

static void release(struct news_edition *edition) {
  if (edition && --edition->references == 0) pwi_free(edition);
}

static void replace(struct news_edition **place, struct news_edition *edition) {
  struct news_edition *before = *place;
  *place = retain(edition);
  release(before);
}

static void encode(const struct pwi_ledger *ledger, int topic, struct pwi_writer *writer) {
  if (topic == PWI_TOPIC_CATALOGUE) {
    pwi_catalogue_encode(&ledger->catalogue, writer);
  } else if (topic == PWI_TOPIC_VIEW) {
    void *room = pwi_write_room(writer, pwi_view_encoded_size(ledger->view));
    if (room) pwi_view_encode(ledger->view, room);
  }
}

/* Returns an edition with one reference, which the caller owns; NULL if there is no memory. */
static struct news_edition *publish(struct pwi_manager *manager, int topic, uint64_t number) {
  struct pwi_writer writer = {0};
  struct news_edition *edition = NULL;
  size_t size;
  encode(&manager->ledger, topic, &writer);
  if (!writer.status && pwi_add_size(sizeof *edition, writer.size, &size)) edition = pwi_alloc(size);
  if (edition) {
    *edition = (struct news_edition){.references = 1, .number = number, .size = writer.size};
    if (writer.size > 0) memcpy(edition->bytes, writer.data, writer.size);
  }
  pwi_writer_fini(&writer);
  return edition;
}

struct news_numbers pwi_manager_numbers(const struct pwi_manager *manager) {
  const struct pwi_ledger *ledger = &manager->ledger;
  uint64_t epoch = ledger->view ? ledger->view->epoch : 0;
  return (struct news_numbers){{epoch, ledger->catalogue.number, ledger->membership.number}};
}

/* Makes the newest edition of each topic. Returns false if there is no memory. */
static bool bring_up_to_date(struct pwi_manager *manager) {
  struct news_numbers numbers = pwi_manager_numbers(manager);
  for (int i = 0; i < PWI_TOPICS; i++) {
    struct news_topic *topic = &manager->topics[i];
    if (topic->newest && topic->newest->number == numbers.of[i]) continue;
    struct news_edition *edition = publish(manager, i, numbers.of[i]);
    if (!edition) return false;
    replace(&topic->newest, edition);
    if (!topic->next) replace(&topic->next, edition);
    release(edition);
  }
  return true;
}

void pwi_manager_news_fini(struct pwi_manager *manager) {
  for (int i = 0; i < PWI_TOPICS; i++) {
    replace(&manager->topics[i].newest, NULL);
    replace(&manager->topics[i].next, NULL);
    replace(&manager->topics[i].settled, NULL);
  }
  for (size_t i = 0; i < PWI_MANAGER_SPACE_CATALOGUES; i++) {
    replace(&manager->space_catalogues[i].whole, NULL);
    replace(&manager->space_catalogues[i].edition, NULL);
  }
}

/* --- for keys of one space ------------------------------------------------------------------------------ */

static void keep_space(struct pwi_catalogue *catalogue, const char *space) {
  size_t kept = 0;
  for (size_t i = 0; i < catalogue->count; i++)
    if (pwi_name_is_in(catalogue->entries[i].name, space)) catalogue->entries[kept++] = catalogue->entries[i];
  catalogue->count = kept;
}

/* Returns an edition with one reference, which the caller owns; NULL if there is no memory. */
static struct news_edition *limit_edition(const struct news_edition *whole, const char *space) {
  struct pwi_catalogue catalogue = {0};
  struct pwi_writer writer = {0};
  struct news_edition *edition = NULL;
  size_t size;
  if (pwi_catalogue_decode(whole->bytes, whole->size, &catalogue)) return NULL;
  keep_space(&catalogue, space);
  pwi_catalogue_encode(&catalogue, &writer);
  pwi_catalogue_fini(&catalogue);
  if (!writer.status && pwi_add_size(sizeof *edition, writer.size, &size)) edition = pwi_alloc(size);
  if (edition) {
    *edition = (struct news_edition){.references = 1, .number = whole->number, .size = writer.size};
    memcpy(edition->bytes, writer.data, writer.size);
  }
  pwi_writer_fini(&writer);
  return edition;
}

static const struct news_edition *limited_edition(struct pwi_manager *manager, struct news_edition *whole,
                                                  const char *space) {
  for (size_t i = 0; i < PWI_MANAGER_SPACE_CATALOGUES; i++) {
    const struct space_catalogue *limited = &manager->space_catalogues[i];
    if (limited->whole == whole && strcmp(limited->space, space) == 0) return limited->edition;
  }
  struct news_edition *edition = limit_edition(whole, space);
  if (!edition) return NULL;
  struct space_catalogue *limited =
      &manager->space_catalogues[manager->next_space_catalogue++ % PWI_MANAGER_SPACE_CATALOGUES];
  memcpy(limited->space, space, strlen(space) + 1);
  replace(&limited->whole, whole);
  replace(&limited->edition, edition);
  release(edition);
  return edition;
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* The edition that a peer should have; NULL if there is none yet. */
static const struct news_edition *edition_for(const struct pwi_manager *manager, const struct manager_peer *peer,
                                              int topic) {
  return peer->is_server ? manager->topics[topic].newest : manager->topics[topic].settled;
}

static struct pwi_message_head head_for(const struct pwi_manager *manager, const struct manager_peer *peer,
                                        enum pwi_say kind, uint64_t task) {
  uint32_t numbers[PWI_TOPICS];
  for (int i = 0; i < PWI_TOPICS; i++) {
    const struct news_edition *edition = edition_for(manager, peer, i);
    numbers[i] = edition ? (uint32_t)edition->number : 0;
  }
  return (struct pwi_message_head){.kind = (uint16_t)kind,
                                   .task = task,
                                   .tick = manager->config.term,
                                   .view = numbers[PWI_TOPIC_VIEW],
                                   .catalogue = numbers[PWI_TOPIC_CATALOGUE],
                                   .membership = numbers[PWI_TOPIC_MEMBERSHIP]};
}

void pwi_manager_say(struct pwi_manager *manager, struct manager_peer *peer, enum pwi_say kind, uint64_t task,
                     const struct pwi_writer *payload) {
  struct pwi_message_head head = head_for(manager, peer, kind, task);
  struct pwi_enclosure enclosure = {.type = PWI_SECTION_PAYLOAD};
  if (payload && payload->status) {
    pwi_manager_close(manager, peer, payload->status);
    return;
  }
  if (payload) {
    enclosure.data = payload->data;
    enclosure.size = payload->size;
  }
  pwi_messenger_send(&manager->messenger, peer->link, &peer->peering.link, &head, &enclosure, payload != NULL);
}

void pwi_manager_say_joined(struct pwi_manager *manager, struct manager_peer *peer, pawl_status status,
                            uint64_t secret) {
  struct pwi_joined joined = {.status = status};
  struct pwi_writer payload = {0};
  if (!status) {
    joined.cluster = manager->ledger.cluster;
    joined.id = peer->id;
    joined.secret = secret;
    joined.settled = pwi_ledger_is_settled(&manager->ledger, peer->join.retired);
    joined.may_write = peer->who.rights.write;
    memcpy(joined.space, peer->who.rights.space, sizeof joined.space);
  }
  pwi_joined_encode(&joined, &payload);
  pwi_manager_say(manager, peer, PWI_SAY_JOINED, 0, &payload);
  pwi_writer_fini(&payload);
}

void pwi_manager_say_reply(struct pwi_manager *manager, struct manager_peer *peer, uint64_t task, pawl_status status,
                           uint64_t id) {
  struct pwi_writer payload = {0};
  pwi_write_u32(&payload, (uint32_t)status);
  if (!status && id != 0) pwi_write_u64(&payload, id);
  pwi_manager_say(manager, peer, PWI_SAY_REPLY, task, &payload);
  pwi_writer_fini(&payload);
}

void pwi_manager_send_news(struct pwi_manager *manager, struct manager_peer *peer) {
  struct pwi_enclosure enclosures[PWI_TOPICS];
  struct pwi_writer membership = {0};
  size_t count = 0;
  uint16_t type = pwi_manager_membership_news(manager, peer, &membership, &peer->sent.of[PWI_TOPIC_MEMBERSHIP]);
  if (membership.status) {
    pwi_writer_fini(&membership);
    pwi_manager_close(manager, peer, PAWL_NO_MEMORY);
    return;
  }
  if (type)
    enclosures[count++] = (struct pwi_enclosure){.type = type, .data = membership.data, .size = membership.size};
  for (int i = 0; i < PWI_TOPICS; i++) {
    if (i == PWI_TOPIC_MEMBERSHIP) continue;
    const struct news_edition *edition = edition_for(manager, peer, i);
    if (!edition || edition->number == peer->sent.of[i]) continue;
    bool is_limited = i == PWI_TOPIC_CATALOGUE && !peer->is_server && peer->who.rights.space[0];
    if (is_limited) edition = limited_edition(manager, manager->topics[i].settled, peer->who.rights.space);
    if (!edition) {
      pwi_manager_close(manager, peer, PAWL_NO_MEMORY);
      return;
    }
    enclosures[count++] = (struct pwi_enclosure){.type = sections[i], .data = edition->bytes, .size = edition->size};
    if (i == PWI_TOPIC_VIEW && peer->have.of[i] >= peer->sent.of[i])
      peer->view_sent_at = pwi_net_now(manager->config.net);
    peer->sent.of[i] = edition->number;
  }
  struct pwi_message_head head = head_for(manager, peer, PWI_SAY_NEWS, 0);
  if (count > 0) pwi_messenger_send(&manager->messenger, peer->link, &peer->peering.link, &head, enclosures, count);
  pwi_writer_fini(&membership);
}

static void send_news_to_all(struct pwi_manager *manager, bool servers) {
  for (struct manager_peer *peer = manager->first_peer; peer; peer = peer->next) {
    if (peer->state == PEER_IN && peer->is_server == servers) pwi_manager_send_news(manager, peer);
  }
}

/* --- confirmations -------------------------------------------------------------------------------------- */

/* The numbers that all servers that are up have confirmed; UINT64_MAX if no server is up. A server whose link
 * is down counts with 0 until its grace is over or it is marked down. If it is alive, and a client's request
 * needs a later number than it has, it answers NOT_HERE. */
static struct news_numbers common_numbers(const struct pwi_manager *manager) {
  struct news_numbers common = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};
  const struct pwi_view *view = manager->ledger.view;
  for (size_t i = 0; i < view->node_count; i++) {
    if (view->nodes[i].state == PWI_NODE_DOWN) continue;
    const struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (pwi_manager_is_past_grace(manager, node)) continue;
    for (int topic = 0; topic < PWI_TOPICS; topic++) {
      uint64_t has = node->peer ? node->peer->have.of[topic] : 0;
      if (has < common.of[topic]) common.of[topic] = has;
    }
  }
  return common;
}

static bool settle_topic(struct news_topic *topic, uint64_t common) {
  bool changed = false;
  while (topic->next && topic->next->number <= common) {
    replace(&topic->settled, topic->next);
    replace(&topic->next, topic->newest->number > topic->settled->number ? topic->newest : NULL);
    changed = true;
  }
  return changed;
}

static bool is_settled(const struct pwi_manager *manager, const struct news_numbers *numbers) {
  for (int i = 0; i < PWI_TOPICS; i++) {
    const struct news_edition *settled = manager->topics[i].settled;
    if (!settled || settled->number < numbers->of[i]) return false;
  }
  return true;
}

/* The client may now use its id. */
static void let_in(struct pwi_manager *manager, struct manager_peer *peer) {
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&manager->ledger, peer->id);
  if (peer->state != PEER_JOINING || !sender) return;
  peer->state = PEER_IN;
  pwi_manager_say_joined(manager, peer, PAWL_OK, sender->secret);
  pwi_manager_send_news(manager, peer);
}

static void serve(struct pwi_manager *manager, const struct waiting_reply *waiter) {
  struct manager_peer *peer = pwi_manager_peer(manager, waiter->link);
  if (!peer) return;
  if (waiter->kind == PWI_SAY_JOINED)
    let_in(manager, peer);
  else if (waiter->kind == PWI_SAY_REPLY)
    pwi_manager_say_reply(manager, peer, waiter->task, waiter->status, waiter->id);
  else
    pwi_manager_say(manager, peer, waiter->kind, waiter->task, NULL);
}

void pwi_manager_settle(struct pwi_manager *manager) {
  if (!manager->ledger.view) return;
  struct news_numbers common = common_numbers(manager);
  bool changed = false;
  for (int i = 0; i < PWI_TOPICS; i++) changed |= settle_topic(&manager->topics[i], common.of[i]);
  const struct news_edition *membership = manager->topics[PWI_TOPIC_MEMBERSHIP].settled;
  if (membership) pwi_manager_membership_settle(manager, membership->number);
  if (changed) send_news_to_all(manager, false);
  while (pwi_fifo_count(&manager->waiters) > 0) {
    struct waiting_reply waiter = *(struct waiting_reply *)pwi_fifo_at(&manager->waiters, 0);
    if (!is_settled(manager, &waiter.numbers)) break;
    pwi_fifo_pop(&manager->waiters);
    serve(manager, &waiter);
  }
}

void pwi_manager_wait(struct pwi_manager *manager, const struct waiting_reply *waiter) {
  struct waiting_reply *place = pwi_fifo_push(&manager->waiters);
  if (!place) {
    struct manager_peer *peer = pwi_manager_peer(manager, waiter->link);
    if (peer) pwi_manager_close(manager, peer, PAWL_NO_MEMORY);
    return;
  }
  *place = *waiter;
  place->numbers = pwi_manager_numbers(manager);
  pwi_manager_settle(manager);
}

void pwi_manager_announce(struct pwi_manager *manager) {
  struct pwi_timer timer;
  if (!bring_up_to_date(manager)) pwi_manager_timer_set(manager, RETRY_NS, TIMER_NEWS, 0, &timer);
  send_news_to_all(manager, true);
  pwi_manager_settle(manager);
}
