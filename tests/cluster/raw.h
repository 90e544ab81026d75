/* A node in the simulator that sends any messages that a test gives it. For tests only.
 *
 * It has one link at a time to each address. It keeps the last message of each kind that it received.
 */
#ifndef TESTS_CLUSTER_RAW_H
#define TESTS_CLUSTER_RAW_H

#include <string.h>

#include "base/cursor.h"
#include "cluster.h"
#include "protocol/messenger.h"
#include "protocol/protocol.h"

#define RAW_LINKS 8
#define RAW_HEARD 65536

struct raw_link {
  struct pwi_link link;
  bool is_up, is_down, is_accepted;
  pawl_status why_down;
  struct pwi_peering peering;
};

struct raw {
  char name[16];
  struct pwi_sim_node node;
  struct pwi_net *net;
  struct pwi_messenger messenger;
  struct pwi_greeting greeting;
  struct raw_link links[RAW_LINKS];
  size_t link_count;
  struct pwi_control control;
  unsigned heard[64];           /* messages received, by kind */
  struct pwi_message_head head; /* head of the last message */
  uint8_t payload[RAW_HEARD];   /* PAYLOAD of the last message */
  size_t payload_size;
  /* OUTCOME of the last message */
  struct pwi_outcome outcome;
  void (*on_request)(struct raw *raw, struct raw_link *link, const struct pwi_terms *terms); /* may be NULL */
  struct pwi_joined joined;
};

static struct raw_link *raw_find(struct raw *raw, struct pwi_link link) {
  for (size_t i = 0; i < raw->link_count; i++)
    if (raw->links[i].link.id == link.id) return &raw->links[i];
  if (raw->link_count == RAW_LINKS) return NULL;
  raw->links[raw->link_count] = (struct raw_link){.link = link};
  return &raw->links[raw->link_count++];
}

static void raw_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct raw *raw = self;
  struct raw_link *ours = raw_find(raw, link);
  if (!ours || pwi_greeting_check(&raw->greeting, info, &ours->peering)) return;
  ours->is_up = true;
  ours->is_accepted = info->accepted;
}

static void raw_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct raw_link *ours = raw_find(self, link);
  if (!ours) return;
  ours->is_up = false;
  ours->is_down = true;
  ours->why_down = why;
}

static struct pwi_receive raw_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct raw *raw = self;
  struct raw_link *ours = raw_find(raw, link);
  bool is_data = message->lane == PWI_LANE_DATA;
  if (!ours) return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
  return pwi_control_begin(&raw->control, message, is_data ? &ours->peering.data : &ours->peering.link);
}

static void raw_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct raw *raw = self;
  struct raw_link *ours = raw_find(raw, link);
  struct pwi_terms terms;
  size_t bytes;
  (void)context, (void)offset;
  uint16_t kind = raw->control.head.kind;
  bool is_data = kind == PWI_SAY_REQUEST || kind == PWI_SAY_ANSWER;
  if (pwi_control_open(&raw->control, data, size, is_data ? &ours->peering.data : &ours->peering.link)) return;
  raw->head = raw->control.head;
  if (kind < 64) raw->heard[kind]++;
  const void *payload = pwi_control_find(&raw->control, data, PWI_SECTION_PAYLOAD, &bytes);
  raw->payload_size = bytes < RAW_HEARD ? bytes : RAW_HEARD;
  if (payload) memcpy(raw->payload, payload, raw->payload_size);
  const void *outcome = pwi_control_find(&raw->control, data, PWI_SECTION_OUTCOME, &bytes);
  if (outcome && pwi_outcome_decode(outcome, bytes, &raw->outcome)) raw->outcome = (struct pwi_outcome){0};
  if (kind == PWI_SAY_JOINED && pwi_joined_decode(payload, raw->payload_size, &raw->joined) == PAWL_OK) {
    raw->greeting.cluster = raw->joined.cluster;
    raw->greeting.node = raw->joined.id;
    assert_int_equal(pwi_greeting_set(raw->net, &raw->greeting), PAWL_OK);
  }
  const void *asked = pwi_control_find(&raw->control, data, PWI_SECTION_TERMS, &bytes);
  if (asked && raw->on_request && pwi_terms_decode(asked, bytes, &terms) == PAWL_OK) raw->on_request(raw, ours, &terms);
}

static void raw_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)link, (void)status;
  pwi_messenger_done(&((struct raw *)self)->messenger, cookie);
}

static const struct pwi_actor raw_actor = {
    .link_up = raw_link_up, .link_down = raw_link_down, .message = raw_message, .piece = raw_piece, .done = raw_done};

static pawl_status raw_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                            void **self_out) {
  struct raw *raw = context;
  char address[64];
  snprintf(address, sizeof address, "%s:7000", boot->name);
  raw->net = boot->net;
  pwi_messenger_init(&raw->messenger, boot->net);
  raw->greeting = (struct pwi_greeting){.role = PWI_ROLE_CLIENT, .host = raw->name};
  pawl_status status = pwi_net_listen(boot->net, address);
  if (!status) status = pwi_greeting_set(boot->net, &raw->greeting);
  *actor_out = &raw_actor;
  *self_out = raw;
  return status;
}

/* --- strings -------------------------------------------------------------------------------------------- */

static void raw_open(struct raw *raw, struct pwi_cluster *cluster, const char *name) {
  *raw = (struct raw){0};
  snprintf(raw->name, sizeof raw->name, "%s", name);
  struct pwi_sim_program program = {.name = raw->name, .boot = raw_boot, .context = raw};
  cluster_check(cluster, pwi_sim_node_add(cluster->sim, &program, &raw->node), "a raw node");
  cluster_check(cluster, pwi_sim_start(cluster->sim, raw->node), "a raw node");
}

/* After the simulation. */
static void raw_close(struct raw *raw) { pwi_messenger_fini(&raw->messenger); }

static bool raw_is_linking(void *context) {
  const struct raw_link *link = context;
  return !link->is_up && !link->is_down;
}

static struct raw_link *raw_connect(struct raw *raw, struct pwi_cluster *cluster, const char *address) {
  struct pwi_link link;
  cluster_check(cluster, pwi_net_connect(raw->net, address, &link), "a link");
  struct raw_link *ours = raw_find(raw, link);
  cluster_run_while(cluster, raw_is_linking, ours, 10 * PWI_SIM_SECOND);
  return ours;
}

/* Sends on the link lane. */
static void raw_say(struct raw *raw, const struct raw_link *link, const struct pwi_message_head *head,
                    const struct pwi_enclosure *enclosures, size_t count) {
  (void)pwi_messenger_send(&raw->messenger, link->link, &link->peering.link, head, enclosures, count);
}

static struct raw_link *raw_join(struct raw *raw, struct pwi_cluster *cluster, const struct pwi_join *join) {
  struct raw_link *link = raw_connect(raw, cluster, PWI_CLUSTER_MANAGER);
  struct pwi_writer payload = {0};
  pwi_join_encode(join, &payload);
  raw_say(raw, link, &(struct pwi_message_head){.kind = PWI_SAY_JOIN},
          &(struct pwi_enclosure){PWI_SECTION_PAYLOAD, payload.data, payload.size}, 1);
  cluster_run_for(cluster, 500 * MS);
  pwi_writer_fini(&payload);
  return link;
}

/* Sends sections of raw bytes on the data lane. */
__attribute__((unused)) static void raw_send(struct raw *raw, const struct raw_link *link,
                                             const struct pwi_message_head *head, const struct pwi_section *sections,
                                             const void *const *data, size_t count) {
  struct pwi_message_builder builder;
  pwi_message_begin(&builder, &link->peering.data, head);
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < count && !status; i++) status = pwi_message_copy(&builder, &sections[i], data[i]);
  if (!status) status = pwi_message_finish(&builder);
  assert_int_equal(status, PAWL_OK);
  struct pwi_send send = {
      .lane = PWI_LANE_DATA, .head = builder.head, .body = builder.parts, .body_count = builder.part_count};
  assert_int_equal(pwi_net_send(raw->net, link->link, &send), PAWL_OK);
}

#endif
