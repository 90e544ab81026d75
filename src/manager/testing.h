/* A manager in the simulator, with actors that speak the protocol by hand: servers without data and clients
 * that do not push, but that send the messages of servers and clients. For tests only.
 *
 * Each actor checks what it receives. A server receives every view, and each must be a legal successor of the
 * one before. The numbers of a client never decrease, and are never higher than those that the servers have
 * confirmed.
 *
 * Include cmocka and sim/sim.h before this header: only tests may use the simulator from here.
 */
#ifndef PWI_MANAGER_TESTING_H
#define PWI_MANAGER_TESTING_H

#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/memory.h"
#include "ring/place.h"
#include "manager/ledger/ledger.h"
#include "protocol/messenger.h"
#include "manager/manager.h"
#include "protocol/prober.h"
#include "protocol/membership_delta.h"
#include "protocol/save_messages.h"

#define ACTORS 16
#define MOVED_KEPT 256 /* the last MOVED messages of servers that are kept */
#define MANAGER "manager:7000"
#define RETURN_NS (10 * PWI_SIM_MILLISECOND) /* delay until an actor that lost its link reconnects */
#define MOVE_NS (5 * PWI_SIM_MILLISECOND)    /* time to copy an arc */

enum how_to_move { MOVES_WELL, MOVES_BADLY, MOVES_NEVER };

struct world;

struct actor {
  struct world *world;
  char name[32];
  struct pwi_sim_node node;
  struct pwi_net *net;
  struct pwi_messenger messenger;
  struct pwi_greeting greeting;
  struct pwi_link link;
  bool up, joined_now; /* the link is up; the actor has joined over it */
  struct pwi_peering peering;
  struct pwi_control control;
  struct pwi_prober prober;

  struct pwi_join join; /* the content of its next JOIN */
  bool keeps_away;      /* does not reconnect when it loses its link */
  bool remembers;       /* a server keeps view, catalogue and membership when it loses its link */
  struct pwi_joined joined;
  unsigned joins, lefts, news, downs;
  unsigned warnings; /* that the manager has answered */
  unsigned probes;   /* that it was asked for */
  unsigned wholes;   /* whole memberships received, not counting changes */
  pawl_status why_down;

  struct pwi_view *view;
  struct pwi_catalogue catalogue;
  struct pwi_membership membership;
  uint32_t numbers[3]; /* of its view, catalogue and membership */
  bool is_deaf;        /* receives news but does not confirm them */
  bool is_mute;        /* does not answer probes */
  uint64_t unsettled;  /* it reports this sender as unsettled */
  unsigned settles;    /* SETTLE messages received */

  enum how_to_move moving;
  struct pwi_move order; /* the last order received */
  unsigned orders, cancels;

  unsigned saves; /* orders to save arcs */
  uint64_t save;  /* the last one, and its first positions */
  struct pawl_range save_positions;
  unsigned grants;                /* received */
  struct pwi_space_bytes granted; /* the first space of the last grant */

  uint64_t asked, replied; /* numbers of asks */
  pawl_status reply;
  uint64_t reply_id;
  char *reply_text;
};

struct world {
  struct pwi_sim *sim;
  struct pwi_sim_node manager_node;
  struct pwi_manager *manager; /* NULL while it is down */
  struct pwi_journal *journal;
  struct pwi_manager_config config; /* net, journal, random and log are set at boot */
  const struct pwi_actor *wrapper;  /* called instead of the manager's callbacks, with the world as `self`;
                                      NULL: none */
  struct pwi_rights rights;         /* of links that come up from now on */
  struct actor actors[ACTORS];
  size_t count;
  struct pwi_move moved[MOVED_KEPT]; /* a ring buffer of MOVED without an error */
  size_t moved_count;
  bool all_renew;        /* actors that were retired join again as new nodes or senders */
  bool may_miss_views;   /* the manager may lack memory to send a view */
  bool all_settle;       /* servers answer SETTLE */
  bool someone_returned; /* a server came back: its numbers may be lower than those of clients */
};

/* --- sending -------------------------------------------------------------------------------------------- */

static void say(struct actor *actor, enum pwi_say kind, uint64_t task, uint64_t tick,
                const struct pwi_writer *payload) {
  struct pwi_message_head head = {.kind = (uint16_t)kind,
                                  .sender = actor->joined.id,
                                  .task = task,
                                  .tick = tick,
                                  .view = actor->numbers[0],
                                  .catalogue = actor->numbers[1],
                                  .membership = actor->numbers[2]};
  struct pwi_enclosure enclosure = {.type = PWI_SECTION_PAYLOAD};
  struct pwi_writer ask = {0};
  if (kind == PWI_SAY_ASK) {
    pwi_ask_terms_write(&(struct pwi_ask_terms){.heard = actor->replied}, &ask);
    if (payload) pwi_write_bytes(&ask, payload->data, payload->size);
    payload = &ask;
  }
  if (payload) {
    enclosure.data = payload->data;
    enclosure.size = payload->size;
  }
  pwi_messenger_send(&actor->messenger, actor->link, &actor->peering.link, &head, &enclosure, payload != NULL);
  pwi_writer_fini(&ask);
}

static void say_join(struct actor *actor) {
  struct pwi_writer payload = {0};
  pwi_join_encode(&actor->join, &payload);
  say(actor, PWI_SAY_JOIN, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

static void say_moved(struct actor *actor, const struct pwi_move *order, pawl_status status) {
  struct pwi_move moved = *order;
  struct pwi_writer payload = {0};
  moved.status = status;
  moved.address[0] = '\0';
  if (!status) actor->world->moved[actor->world->moved_count++ % MOVED_KEPT] = moved;
  pwi_move_encode(&moved, &payload);
  say(actor, PWI_SAY_MOVED, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

static void say_probed(void *context, const struct pwi_probe *probe) {
  struct pwi_writer payload = {0};
  pwi_probe_encode(probe, &payload);
  say(context, PWI_SAY_PROBED, 0, 0, &payload);
  pwi_writer_fini(&payload);
}

/* --- receiving ------------------------------------------------------------------------------------------ */

static void broken(struct actor *actor, const char *what) {
  pwi_sim_fail(actor->world->sim, PAWL_CORRUPT, "%s: %s", actor->name, what);
}

static bool is_server(const struct actor *actor) { return actor->join.role == PWI_ROLE_SERVER; }

static void hear_view(struct actor *actor, const void *bytes, size_t size) {
  struct pwi_view *view;
  struct pwi_view_fault fault;
  if (pwi_view_decode(bytes, size, &view)) {
    broken(actor, "cannot decode a view");
    return;
  }
  bool follows = actor->view && (!actor->world->may_miss_views || actor->view->epoch + 1 == view->epoch);
  if (follows && is_server(actor) && pwi_view_check_next(actor->view, view, &fault))
    broken(actor, pwi_view_rule_text(fault.rule));
  if (actor->view && view->epoch < actor->view->epoch) broken(actor, "received an older view");
  pwi_view_release(actor->view);
  actor->view = view;
}

static void hear_lists(struct actor *actor, const void *body) {
  size_t size;
  const void *bytes = pwi_control_find(&actor->control, body, PWI_SECTION_CATALOGUE, &size);
  if (bytes) {
    pwi_catalogue_fini(&actor->catalogue);
    if (pwi_catalogue_decode(bytes, size, &actor->catalogue)) broken(actor, "cannot decode a catalogue");
  }
  bytes = pwi_control_find(&actor->control, body, PWI_SECTION_MEMBERSHIP_DELTA, &size);
  if (bytes && pwi_membership_apply_delta(&actor->membership, bytes, size, NULL, NULL))
    broken(actor, "changes of a membership that cannot be followed");
  bytes = pwi_control_find(&actor->control, body, PWI_SECTION_MEMBERSHIP, &size);
  if (bytes) {
    actor->wholes++;
    pwi_membership_fini(&actor->membership);
    if (pwi_membership_decode(bytes, size, &actor->membership)) broken(actor, "cannot decode a membership");
  }
}

/* Every server that was connected all the time has confirmed the numbers of a client. */
static void check_servers_first(struct actor *actor) {
  struct world *world = actor->world;
  for (size_t i = 0; i < world->count && !world->someone_returned; i++) {
    const struct actor *server = &world->actors[i];
    if (!is_server(server) || !server->joined_now || server->is_deaf) continue;
    for (int topic = 0; topic < 3; topic++) {
      if (server->numbers[topic] < actor->numbers[topic]) broken(actor, "received a number before a server did");
    }
  }
}

static void hear_news(struct actor *actor, const void *body) {
  const struct pwi_message_head *head = &actor->control.head;
  const uint32_t numbers[3] = {head->view, head->catalogue, head->membership};
  size_t size;
  const void *view = pwi_control_find(&actor->control, body, PWI_SECTION_VIEW, &size);
  if (view) hear_view(actor, view, size);
  hear_lists(actor, body);
  for (int i = 0; i < 3; i++) {
    if (numbers[i] < actor->numbers[i]) broken(actor, "a number has decreased");
    actor->numbers[i] = numbers[i];
  }
  uint64_t epoch = actor->view ? actor->view->epoch : 0;
  if (epoch != numbers[0] || actor->catalogue.number != numbers[1] || actor->membership.number != numbers[2])
    broken(actor, "the numbers do not match view, catalogue and membership");
  actor->news++;
  if (!is_server(actor)) check_servers_first(actor);
  if (!actor->is_deaf) say(actor, PWI_SAY_HAVE, 0, 0, NULL);
}

static void hear_joined(struct actor *actor, const void *payload, size_t size) {
  if (pwi_joined_decode(payload, size, &actor->joined)) broken(actor, "cannot decode a JOINED");
  actor->joins++;
  actor->joined_now = actor->joined.status == PAWL_OK;
  if (actor->joined_now) {
    actor->join.id = actor->joined.id;
    actor->join.secret = actor->joined.secret;
    actor->greeting.cluster = actor->joined.cluster;
    actor->greeting.node = actor->joined.id;
    if (pwi_greeting_set(actor->net, &actor->greeting)) broken(actor, "cannot set the greeting");
  } else if (actor->joined.status == PAWL_NODE_RETIRED && actor->world->all_renew) {
    if (is_server(actor)) actor->join.process += 1000;
    actor->join.retired = is_server(actor) ? 0 : actor->join.id;
    actor->join.id = actor->join.secret = 0;
    say_join(actor);
  }
}

static void hear_move(struct actor *actor, const void *payload, size_t size) {
  struct pwi_move order;
  struct pwi_timer timer;
  size_t used;
  if (pwi_move_decode(payload, size, &order, &used) || used != size) broken(actor, "cannot decode a MOVE");
  if (order.cancel) {
    actor->cancels++;
    return;
  }
  actor->order = order;
  actor->orders++;
  if (order.epoch > actor->numbers[0]) broken(actor, "received an order before its view");
  if (actor->moving != MOVES_NEVER) pwi_net_timer_set(actor->net, pwi_net_now(actor->net) + MOVE_NS, 2, &timer);
}

/* An actor that keeps away answers no probe. */
static void hear_probe(struct actor *actor, const void *payload, size_t size) {
  struct pwi_probe probe;
  actor->probes++;
  if (pwi_probe_decode(payload, size, &probe)) broken(actor, "cannot decode a PROBE");
  if (actor->is_mute) return;
  const struct pwi_view_node *node = actor->view ? pwi_view_find(actor->view, (struct pwi_node){probe.node}) : NULL;
  for (size_t i = 0; i < actor->world->count; i++) {
    const struct actor *other = &actor->world->actors[i];
    if (!other->keeps_away || !is_server(other) || other->joined.id != probe.node || !other->join.id) continue;
    probe.verdict = PWI_VERDICT_SILENT;
    say_probed(actor, &probe);
    return;
  }
  if (node) pwi_prober_begin(&actor->prober, &probe, node->address);
}

static void hear_save(struct actor *actor, const void *payload, size_t size) {
  struct pwi_save save;
  if (pwi_save_decode(payload, size, &save)) {
    broken(actor, "cannot decode a SAVE");
    return;
  }
  if (save.arc_count > 0) {
    actor->saves++;
    actor->save = save.order;
    actor->save_positions = save.arcs[0].positions;
  }
  pwi_save_fini(&save);
}

static void hear_grant(struct actor *actor, const void *payload, size_t size) {
  struct pwi_space_bytes spaces[PWI_SPACES_MAX];
  size_t count;
  if (pwi_spaces_decode(payload, size, spaces, &count)) {
    broken(actor, "cannot decode a GRANT");
    return;
  }
  actor->grants++;
  actor->granted = count > 0 ? spaces[0] : (struct pwi_space_bytes){.bytes = 0};
}

static void hear_settle(struct actor *actor, const void *payload, size_t size) {
  struct pwi_settle senders[PWI_SETTLE_MAX];
  struct pwi_writer answer = {0};
  uint64_t number;
  size_t count, found = 0;
  if (pwi_settle_decode(payload, size, &number, senders, &count)) broken(actor, "cannot decode a SETTLE");
  for (size_t i = 0; i < count; i++) {
    struct pwi_sender sender = {senders[i].sender};
    if (!pwi_membership_is_retired(&actor->membership, sender))
      broken(actor, "asked about a sender that is not retired");
    found += sender.id == actor->unsettled && senders[i].settled == 0;
  }
  actor->settles++;
  if (!actor->world->all_settle) return;
  pwi_settled_encode(number, &actor->unsettled, found, &answer);
  say(actor, PWI_SAY_SETTLED, 0, 0, &answer);
  pwi_writer_fini(&answer);
}

static void hear_reply(struct actor *actor, const void *payload, size_t size) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  actor->replied = actor->control.head.task;
  actor->reply = (pawl_status)(int32_t)pwi_read_u32(&reader);
  actor->reply_id = size == 12 ? pwi_read_u64(&reader) : 0;
  pwi_free(actor->reply_text);
  actor->reply_text = pwi_alloc_zero(size, 1);
  if (actor->reply_text && size > 4) memcpy(actor->reply_text, (const char *)payload + 4, size - 4);
}

static void hear(struct actor *actor, const void *body) {
  size_t size;
  const void *payload = pwi_control_find(&actor->control, body, PWI_SECTION_PAYLOAD, &size);
  switch (actor->control.head.kind) {
  case PWI_SAY_JOINED:
    hear_joined(actor, payload, size);
    break;
  case PWI_SAY_NEWS:
    hear_news(actor, body);
    break;
  case PWI_SAY_MOVE:
    hear_move(actor, payload, size);
    break;
  case PWI_SAY_PROBE:
    hear_probe(actor, payload, size);
    break;
  case PWI_SAY_SETTLE:
    hear_settle(actor, payload, size);
    break;
  case PWI_SAY_REPLY:
    hear_reply(actor, payload, size);
    break;
  case PWI_SAY_COMPLAIN:
    actor->warnings++;
    break;
  case PWI_SAY_SAVE:
    hear_save(actor, payload, size);
    break;
  case PWI_SAY_GRANT:
    hear_grant(actor, payload, size);
    break;
  case PWI_SAY_LEFT:
    actor->lefts++;
    actor->joined_now = false;
    break;
  default:
    broken(actor, "something that a manager does not say");
  }
}

/* --- callbacks of an actor ------------------------------------------------------------------------------ */

static void actor_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct actor *actor = self;
  struct pwi_peering peering;
  if (pwi_greeting_check(&actor->greeting, info, &peering)) broken(actor, "a greeting that cannot be read");
  if (info->accepted || pwi_prober_link_up(&actor->prober, link, &peering) || link.id != actor->link.id) return;
  actor->peering = peering;
  actor->link = link;
  actor->up = true;
  if (is_server(actor) && actor->join.id != 0) actor->world->someone_returned = true;
  if (actor->join.role != 0) say_join(actor);
}

static void forget_news(struct actor *actor) {
  pwi_view_release(actor->view);
  actor->view = NULL;
  pwi_catalogue_fini(&actor->catalogue);
  pwi_membership_fini(&actor->membership);
  memset(actor->numbers, 0, sizeof actor->numbers);
}

static void actor_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct actor *actor = self;
  struct pwi_timer timer;
  if (pwi_prober_link_down(&actor->prober, link, why) || link.id != actor->link.id) return;
  actor->up = actor->joined_now = false;
  actor->downs++;
  actor->why_down = why;
  if (is_server(actor) && !actor->remembers)
    forget_news(actor); /* the next view need not follow the last one
                                                                    it had */
  if (!actor->keeps_away) pwi_net_timer_set(actor->net, pwi_net_now(actor->net) + RETURN_NS, 1, &timer);
}

static struct pwi_receive actor_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct actor *actor = self;
  (void)link;
  return pwi_control_begin(&actor->control, message, &actor->peering.link);
}

static void actor_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct actor *actor = self;
  (void)link, (void)context, (void)offset;
  if (pwi_control_open(&actor->control, data, size, &actor->peering.link))
    broken(actor, "a message that cannot be read");
  else
    hear(actor, data);
}

static void actor_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)link, (void)status;
  pwi_messenger_done(&((struct actor *)self)->messenger, cookie);
}

static void actor_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct actor *actor = self;
  (void)timer;
  if (cookie == 3)
    pwi_prober_timer(&actor->prober);
  else if (cookie == 1 && !actor->up)
    (void)pwi_net_connect(actor->net, MANAGER, &actor->link);
  else if (cookie == 2)
    say_moved(actor, &actor->order, actor->moving == MOVES_WELL ? PAWL_OK : PAWL_NODE_FULL);
}

static const struct pwi_actor actor_callbacks = {
    .link_up = actor_link_up,
    .link_down = actor_link_down,
    .message = actor_message,
    .piece = actor_piece,
    .done = actor_done,
    .timer = actor_timer,
};

static pawl_status actor_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                              void **self_out) {
  struct actor *actor = context;
  actor->net = boot->net;
  pwi_messenger_init(&actor->messenger, boot->net);
  pwi_prober_init(&actor->prober, boot->net, 3, say_probed, actor);
  actor->greeting = (struct pwi_greeting){.role = (enum pwi_hello_role)(actor->join.role ? actor->join.role : 3),
                                          .host = actor->name};
  *actor_out = &actor_callbacks;
  *self_out = actor;
  pawl_status status = pwi_greeting_set(boot->net, &actor->greeting);
  if (!status && is_server(actor)) (void)pwi_net_listen(boot->net, actor->join.address);
  return status ? status : pwi_net_connect(boot->net, MANAGER, &actor->link);
}

/* A killed process forgets its id and secret. */
static void actor_halt(void *context, void *self) {
  struct actor *actor = self;
  (void)context;
  actor->up = actor->joined_now = false;
  actor->join.id = actor->join.secret = 0;
  forget_news(actor);
  pwi_prober_fini(&actor->prober);
  pwi_messenger_fini(&actor->messenger);
}

/* --- the manager ---------------------------------------------------------------------------------------- */

static struct pwi_rights rights_of(void *context, const char *identity) {
  (void)identity;
  return ((struct world *)context)->rights;
}

static pawl_status manager_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                                void **self_out) {
  struct world *world = context;
  world->config.net = boot->net;
  world->config.journal = world->journal;
  world->config.random = boot->random;
  world->config.log = boot->log;
  world->config.host = "host";
  world->config.rights = rights_of;
  world->config.rights_context = world;
  pawl_status status = pwi_manager_create(&world->config, &world->manager);
  if (status) return status;
  *actor_out = world->wrapper ? world->wrapper : &pwi_manager_actor;
  *self_out = world->wrapper ? (void *)world : (void *)world->manager;
  return pwi_net_listen(boot->net, MANAGER);
}

static void manager_halt(void *context, void *self) {
  struct world *world = context;
  (void)self;
  pwi_manager_destroy(world->manager);
  world->manager = NULL;
}

/* --- strings -------------------------------------------------------------------------------------------- */

#define OK(call) assert_int_equal((call), PAWL_OK)

/* Creates a world with a journal, by default in memory, and a manager that is not started yet. */
static void world_init(struct world *world, uint64_t seed, uint32_t first_processes) {
  struct pwi_sim_config config;
  *world = (struct world){.rights = {.write = true}};
  world->config.first_processes = first_processes;
  pwi_sim_config_init(&config);
  config.seed = seed;
  OK(pwi_sim_create(&config, &world->sim));
  OK(pwi_journal_memory_create(&world->journal));
  struct pwi_sim_program program = {.name = "manager", .boot = manager_boot, .halt = manager_halt, .context = world};
  OK(pwi_sim_node_add(world->sim, &program, &world->manager_node));
}

__attribute__((unused)) static void world_open(struct world *world, uint64_t seed, uint32_t first_processes) {
  world_init(world, seed, first_processes);
  OK(pwi_sim_start(world->sim, world->manager_node));
}

static void world_close(struct world *world) {
  assert_null(pwi_sim_failure(world->sim));
  pwi_sim_destroy(world->sim);
  world->journal->ops->destroy(world->journal);
  for (size_t i = 0; i < world->count; i++) pwi_free(world->actors[i].reply_text);
}

static struct actor *add_actor(struct world *world, const char *name, const struct pwi_join *join) {
  assert_true(world->count < ACTORS);
  struct actor *actor = &world->actors[world->count++];
  actor->world = world;
  actor->join = *join;
  snprintf(actor->name, sizeof actor->name, "%s", name);
  snprintf(actor->join.host, sizeof actor->join.host, "%s", name);
  struct pwi_sim_program program = {.name = name, .boot = actor_boot, .halt = actor_halt, .context = actor};
  OK(pwi_sim_node_add(world->sim, &program, &actor->node));
  OK(pwi_sim_start(world->sim, actor->node));
  return actor;
}

__attribute__((unused)) static struct actor *add_server(struct world *world, const char *name, uint64_t process,
                                                        uint32_t shard, uint32_t shard_count) {
  struct pwi_join join = {.role = PWI_ROLE_SERVER,
                          .process = process,
                          .shard = shard,
                          .shard_count = shard_count,
                          .weight = 1,
                          .memory_max = UINT64_MAX};
  snprintf(join.address, sizeof join.address, "%s:7001", name);
  return add_actor(world, name, &join);
}

__attribute__((unused)) static struct actor *add_client(struct world *world, const char *name, bool reader) {
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .reader = reader};
  snprintf(join.job, sizeof join.job, "job");
  return add_actor(world, name, &join);
}

__attribute__((unused)) static void run_for(struct world *world, int64_t duration) {
  pawl_status status = pwi_sim_run_until(world->sim, pwi_sim_now(world->sim) + duration);
  if (status) print_message("%s\n", pwi_sim_failure(world->sim));
  OK(status);
}

/* Runs until `holds` returns true, for at most 30 s of virtual time. */
static bool (*awaited)(struct actor *actor);
static bool does_not_hold(void *actor) { return !awaited(actor); }
__attribute__((unused)) static void run_until(struct actor *actor, bool (*holds)(struct actor *actor)) {
  struct pwi_sim *sim = actor->world->sim;
  awaited = holds;
  pawl_status status = pwi_sim_run_while(sim, does_not_hold, actor, pwi_sim_now(sim) + 30 * PWI_SIM_SECOND);
  if (status) print_message("%s: %s\n", pawl_status_name(status), pwi_sim_failure(sim));
  OK(status);
}

__attribute__((unused)) static bool is_in(struct actor *actor) { return actor->joined_now; }
__attribute__((unused)) static bool has_left(struct actor *actor) { return actor->lefts > 0; }
__attribute__((unused)) static bool has_reply(struct actor *actor) { return actor->replied == actor->asked; }
__attribute__((unused)) static bool has_arcs(struct actor *actor) { return actor->view && actor->view->arc_count > 0; }

/* Sends an ask with this payload, frees the payload, and waits for the reply. */
__attribute__((unused)) static pawl_status ask(struct actor *actor, enum pwi_ask what, struct pwi_writer *payload) {
  say(actor, PWI_SAY_ASK, ++actor->asked, what, payload);
  if (payload) pwi_writer_fini(payload);
  run_until(actor, has_reply);
  return actor->reply;
}

__attribute__((unused)) static pawl_status ask_create(struct actor *actor, const char *name) {
  struct pwi_writer payload = {0};
  struct pawl_vector_options options = {.type = PAWL_F32, .width = 2, .size = 1000};
  pwi_write_text(&payload, name);
  pwi_options_write(&payload, &options);
  return ask(actor, PWI_ASK_CREATE, &payload);
}

__attribute__((unused)) static struct pwi_manager_figures figures_of(const struct world *world) {
  struct pwi_manager_figures figures;
  pwi_manager_figures(world->manager, &figures);
  return figures;
}

__attribute__((unused)) static pawl_status ask_group(struct actor *client, const char *name, uint32_t size) {
  struct pwi_writer payload = {0};
  pwi_write_text(&payload, name);
  pwi_write_u32(&payload, size);
  return ask(client, PWI_ASK_GROUP, &payload);
}

/* The part of the ring, in percent, of which an actor is the head. */
__attribute__((unused)) static unsigned share_of(const struct pwi_view *view, const struct actor *actor) {
  uint64_t held = 0;
  for (size_t i = 0; i < view->arc_count; i++) {
    if (pwi_view_head(view, i)->node.id == actor->joined.id) held += pawl_range_size(pwi_view_arc_range(view, i));
  }
  return (unsigned)(((unsigned __int128)held * 100 + (UINT64_C(1) << 63)) >> 64);
}

#endif
