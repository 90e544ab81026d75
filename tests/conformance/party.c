/* A node's life and the calls it makes. Its actor is in party_actor.c. */
#include "party.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "parcel.h"
#include "pattern.h"

void party_fault(struct party *party, const char *format, ...) {
  if (party->fault[0]) return;
  int used = snprintf(party->fault, sizeof party->fault, "node %u: ", party->node);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(party->fault + used, sizeof party->fault - (size_t)used, format, arguments);
  va_end(arguments);
}

void party_wrong(struct party *party, struct party_link *link, const char *format, ...) {
  if (link->wrong[0]) return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(link->wrong, sizeof link->wrong, format, arguments);
  va_end(arguments);
  if (!(link->can & PWI_LINK_HAS_PLANE)) party_fault(party, "%s", link->wrong);
}

void party_default_limits(struct pwi_net_limits *limits) {
  pwi_net_limits_init(limits);
  limits->silence_ns = limits->linger_ns = limits->greet_ns = 600000 * WORLD_MS; /* whoever needs these, fails */
}

pawl_status party_open(struct party *party, struct world *world, unsigned node, const struct pwi_net_limits *limits,
                       const struct pwi_actor *actor) {
  struct pwi_net_limits defaults;
  party_default_limits(&defaults);
  party->world = world;
  party->node = node;
  pwi_random_init(&party->random, 20160917, node);
  party_call_begin(party);
  pawl_status status = world->kind->node(world, node, limits ? limits : &defaults, actor, party, &party->net);
  party_call_end(party, status);
  if (status == PAWL_OK) party->last_now = pwi_net_now(party->net);
  return status;
}

static void forget(struct party *party) {
  for (size_t i = 0; i < party->link_count; i++) {
    struct party_link *link = party->links[i];
    if (link->state == PARTY_UP && link->wrong[0]) party_fault(party, "%s", link->wrong);
    for (int lane = 0; lane < 2; lane++)
      for (int place = 0; place < 2; place++) free(link->in[lane].places[place].block);
    free(party->links[i]);
  }
  for (size_t i = 0; i < party->op_count; i++) free(party->ops[i].memory);
  for (size_t i = 0; i < party->kept_count; i++) free(party->kept[i]);
  free(party->ops);
  free(party->kept);
  free(party->fired);
}

void party_kill(struct party *party) {
  if (!party->net) return;
  party_call_begin(party);
  party->world->kind->kill(party->world, party->node);
  party_call_end(party, PAWL_OK);
  forget(party);
  struct party empty = {.world = party->world, .node = party->node};
  memcpy(empty.fault, party->fault, sizeof empty.fault);
  *party = empty;
}

void party_call_begin(struct party *party) {
  if (party->inside_call) party_fault(party, "the harness made a call inside a call");
  party->inside_call = true;
}

pawl_status party_call_end(struct party *party, pawl_status status) {
  party->inside_call = false;
  return status;
}

pawl_status party_listen(struct party *party, unsigned which, const char *address) {
  char chosen[PWI_NET_ADDRESS_MAX];
  if (!address) party->world->kind->address(party->world, party->node, which, chosen);
  pawl_status status = PARTY_CALL(party, pwi_net_listen(party->net, address ? address : chosen));
  if (status == PAWL_OK) snprintf(party->address, sizeof party->address, "%s", pwi_net_address(party->net));
  return status;
}

pawl_status party_connect(struct party *party, const char *address, struct party_link **link_out) {
  struct pwi_link link = {0};
  pawl_status status = PARTY_CALL(party, pwi_net_connect(party->net, address, &link));
  if (status == PAWL_OK) *link_out = party_link_add(party, link, false);
  return status;
}

void party_close(struct party *party, struct party_link *link, pawl_status why) {
  link->closing = true;
  if (party->ready_link == link) party->ready_link = NULL;
  party_call_begin(party);
  pwi_net_close(party->net, link->link, why);
  party_call_end(party, PAWL_OK);
}

uint64_t party_op_begin(struct party *party, struct party_link *link, void *memory) {
  if (party->op_count == party->op_room) {
    party->op_room = party->op_room ? 2 * party->op_room : 64;
    party->ops = realloc(party->ops, party->op_room * sizeof *party->ops);
    if (!party->ops) abort();
  }
  party->ops[party->op_count++] = (struct party_op){.link = link, .memory = memory};
  link->outstanding++;
  return party->op_count;
}

void party_op_cancel(struct party *party, uint64_t cookie) {
  struct party_op *op = &party->ops[cookie - 1];
  op->ended = true;
  op->link->outstanding--;
  free(op->memory);
  op->memory = NULL;
}

const struct party_op *party_op(const struct party *party, uint64_t cookie) { return &party->ops[cookie - 1]; }

uint64_t party_seed(enum pwi_lane lane, uint64_t number) { return pwi_mix64(2 * number + (uint64_t)lane + 77); }

/* Cut the body into parts at random places; some parts are empty. */
static size_t scatter(struct party *party, uint8_t *body, size_t size, unsigned parts, struct iovec *iov) {
  if (parts == 0) parts = 1;
  size_t at = 0;
  for (unsigned i = 0; i < parts; i++) {
    size_t left = size - at;
    size_t take = i + 1 == parts ? left : (size_t)pwi_random_below(&party->random, left + 1);
    if (i + 1 < parts && pwi_random_chance(&party->random, 0.2)) take = 0;
    iov[i] = (struct iovec){.iov_base = take == 0 ? NULL : body + at, .iov_len = take};
    at += take;
  }
  return parts;
}

static void *keep(struct party *party, void *memory) {
  party->kept = realloc(party->kept, (party->kept_count + 1) * sizeof *party->kept);
  if (!party->kept || !memory) abort();
  return party->kept[party->kept_count++] = memory;
}

/* Fill the body where it is to lie. Returns the parts of it, and the memory that is ours. */
static size_t lay_out(struct party *party, const struct packet *packet, uint64_t seed, struct iovec *parts,
                      uint8_t **owned_out) {
  size_t apart = packet->region ? packet->apart : packet->size, count = 0;
  uint8_t *owned = malloc(apart + 1);
  if (!owned) abort();
  pattern_fill(seed, 0, owned, apart);
  if (apart > 0 || !packet->region)
    count = scatter(party, owned, apart, packet->region && packet->parts > 2 ? 2 : packet->parts, parts);
  if (packet->region) {
    uint8_t *shared = (uint8_t *)pwi_net_region_memory(packet->region) + packet->region_offset;
    unsigned most = (unsigned)(PWI_NET_IOV_MAX - count);
    pattern_fill(seed, apart, shared, packet->size - apart);
    count += scatter(party, shared, packet->size - apart, packet->parts < most ? packet->parts : most, parts + count);
  }
  *owned_out = owned;
  return count;
}

pawl_status party_send(struct party *party, struct party_link *link, const struct packet *packet) {
  uint64_t number = link->sent[packet->lane];
  uint64_t seed = party_seed(packet->lane, number);
  uint8_t head[PWI_NET_HEAD_SIZE], *owned;
  packet_write_head(packet, number, seed, head);
  struct iovec parts[PWI_NET_IOV_MAX];
  size_t count = lay_out(party, packet, seed, parts, &owned);
  bool copied = packet->size <= PWI_NET_COPY_MAX;
  uint64_t cookie = packet->quiet ? 0 : party_op_begin(party, link, copied ? NULL : owned);

  struct pwi_send send = {.lane = packet->lane, .head = head, .body = parts, .body_count = count, .cookie = cookie};
  struct iovec last = count > 0 ? parts[count - 1] : (struct iovec){0};
  if (packet->spared && !copied) send.spare = keep(party, malloc(last.iov_len + 1));
  pawl_status status = PARTY_CALL(party, pwi_net_send(party->net, link->link, &send));
  if (send.spare && last.iov_len > 0) memset(last.iov_base, 0xee, last.iov_len);
  if (copied)
    for (size_t i = 0; i < count; i++)
      if (parts[i].iov_len > 0) memset(parts[i].iov_base, 0xee, parts[i].iov_len);
  memset(head, 0xee, sizeof head);
  memset(parts, 0xee, sizeof parts);
  if (status == PAWL_OK) link->sent[packet->lane]++;
  if (status == PAWL_QUEUE_FULL) link->full = true;
  if (status != PAWL_OK && cookie) party_op_cancel(party, cookie);
  if (copied || (status != PAWL_OK && !cookie)) free(owned);
  if (!copied && status == PAWL_OK && !cookie) keep(party, owned);
  return status;
}

struct party_link *party_newest(const struct party *party) {
  return party->link_count == 0 ? NULL : party->links[party->link_count - 1];
}

size_t party_up_count(const struct party *party) {
  size_t count = 0;
  for (size_t i = 0; i < party->link_count; i++) count += party->links[i]->state == PARTY_UP;
  return count;
}
