/* Memory for arriving bodies, limited per link, per key and in total.
 *
 * A body that the actor receives into memory is charged in steps, before the bytes are read. A link without
 * room is not read, which the sender notices as back-pressure; reading continues when other bodies have
 * ended. So that half-received bodies cannot block each other forever, one link, the *exempt* one, may always
 * continue, even beyond the limit, until its body is complete.
 *
 * While a link waits for memory, the peers of other links must use the memory that they hold. An accepted
 * link goes down if its peer delivers too little in two seconds, or takes too long for a whole body
 * although this side reads it. While no link waits, peers may be slow. Peers that this node has connected to
 * may always be slow, because this node has asked for the bodies that they send.
 */
#include <string.h>
#include <sys/ioctl.h>

#include "base/memory.h"
#include "net/tcp/world.h"

#define STEP_MIN ((size_t)16 << 10) /* minimum charge of a step */
#define STEP_MAX ((size_t)1 << 20)  /* maximum charge of a step */
#define PACE_NS                                                                                                        \
  (2000 * MILLISECOND)                         /* while others wait: interval for checking the pace. A busy machine
                                                  stops honest senders for a good part of a second */
#define PACE_BYTES ((size_t)512 << 10)         /* minimum bytes per interval */
#define UNREAD ((size_t)16 << 10)              /* bytes in a socket: this side is behind, not the sender */
#define BODY_NS (4000 * MILLISECOND)           /* time that every body may take */
#define BODY_BYTES_PER_MS ((uint64_t)16 << 10) /* additional time of a body: its size at 16 MiB per second */

/* Accounts: one for each identity that has a link. */

pawl_status pwi_tcp_body_memory_open(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  const char *name = link->tls ? pwi_tls_peer(link->tls) : link->identity;
  struct pwi_account *account = net->accounts;
  while (account && strcmp(account->name, name) != 0) account = account->next;
  if (!account) {
    account = pwi_alloc_zero(1, sizeof *account);
    if (!account) return PAWL_NO_MEMORY;
    strncpy(account->name, name, sizeof account->name - 1);
    account->next = net->accounts;
    net->accounts = account;
  }
  account->links++;
  link->account = account;
  return PAWL_OK;
}

static void leave_account(struct tcp_link *link) {
  struct pwi_account *account = link->account;
  link->account = NULL;
  if (!account || --account->links > 0) return;
  for (struct pwi_account **at = &link->net->accounts; *at; at = &(*at)->next)
    if (*at == account) {
      *at = account->next;
      break;
    }
  pwi_free(account);
}

/* Charging. */

static void charge(struct tcp_link *link, size_t size) {
  link->charged += size;
  if (link->account) link->account->charged += size;
  link->net->base.counts.inbound_bytes += size;
}

/* A link may use at most half, and all links of one key three quarters. */
static bool has_room(const struct tcp_link *link, size_t size) {
  size_t most = link->net->base.limits.inbound_bytes;
  if (link->charged + size > most / 2) return false;
  if (link->account && link->account->charged + size > most - most / 4) return false;
  return link->net->base.counts.inbound_bytes + size <= most;
}

bool pwi_tcp_body_memory_is_full(const struct tcp_link *link) { return !has_room(link, SCRATCH_SIZE); }

/* Bytes that have arrived but were not read yet. */
static size_t unread(const struct tcp_link *link) {
  int count = 0;
  return ioctl(link->socket, FIONREAD, &count) == 0 && count > 0 ? (size_t)count : 0;
}

static void stop_waiting(struct tcp_link *link) {
  if (!link->is_waiting) return;
  link->is_waiting = false;
  link->net->base.counts.inbound_waiting--;
}

static void wake(struct tcp_link *link) {
  stop_waiting(link);
  if (!link->is_failed) pwi_tcp_mark_ready(link);
}

static void wake_waiting(struct tcp_net *net) {
  for (size_t i = 0; net->base.counts.inbound_waiting > 0 && i < net->slot_count; i++) {
    struct tcp_link *link = net->slots[i];
    if (link && link->is_waiting) wake(link);
  }
}

/* The link with the most unread bytes is likely to end first. */
static void exempt_one(struct tcp_net *net) {
  struct tcp_link *best = NULL;
  size_t most = 0;
  for (size_t i = 0; net->base.counts.inbound_waiting > 0 && i < net->slot_count; i++) {
    struct tcp_link *link = net->slots[i];
    if (!link || !link->is_waiting || link->is_failed) continue;
    size_t count = unread(link);
    if (best && count <= most) continue;
    best = link;
    most = count;
  }
  if (!best) return;
  net->exempt = best->id;
  wake(best);
}

static void wait_for_room(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  if (link->is_waiting) return;
  link->is_waiting = true;
  net->base.counts.inbound_waiting++;
  if (net->waiting_since == 0) net->waiting_since = pwi_tcp_now();
}

/* The announcement of a body alone is charged little, and a fast sender is charged in large steps. */
static size_t step_of(const struct tcp_link *link, size_t wanted) {
  size_t step = link->received;
  if (step < STEP_MIN) step = STEP_MIN;
  if (step > STEP_MAX) step = STEP_MAX;
  return step < wanted ? step : wanted;
}

size_t pwi_tcp_body_memory_allow(struct tcp_link *link, size_t wanted) {
  struct tcp_net *net = link->net;
  size_t have = link->charged - link->received;
  size_t step = step_of(link, wanted);
  if (have >= wanted) return wanted;
  if (have >= step) return have; /* room that was charged and not used yet */
  step -= have;
  bool is_small = link->frame.body_size <= PWI_NET_COPY_MAX;
  if (!is_small && !has_room(link, step)) {
    if (net->exempt.id != link->id.id) {
      if (have == 0) wait_for_room(link);
      return have;
    }
  }
  if (link->charged == 0) link->body_at = pwi_tcp_now();
  charge(link, step);
  return have + step;
}

void pwi_tcp_body_memory_received(struct tcp_link *link, size_t size) {
  link->received += size;
  if (link->received <= link->charged) return;
  if (link->charged == 0) link->body_at = pwi_tcp_now();
  charge(link, link->received - link->charged); /* it arrived with its head */
}

void pwi_tcp_body_memory_release(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  size_t charged = link->charged;
  bool was_exempt = net->exempt.id == link->id.id;
  if (was_exempt) net->exempt.id = 0;
  net->base.counts.inbound_bytes -= charged;
  if (link->account) link->account->charged -= charged;
  link->charged = link->received = 0;
  link->pace_at = 0;
  stop_waiting(link);
  if (charged > PWI_NET_COPY_MAX || was_exempt) wake_waiting(net);
}

void pwi_tcp_body_memory_close(struct tcp_link *link) {
  pwi_tcp_body_memory_release(link);
  leave_account(link);
}

/* Pace. */

static void note_pace(struct tcp_link *link, size_t delivered, int64_t now) {
  link->pace_at = now;
  link->pace_delivered = delivered;
}

/* A sender whose bytes accumulate in the socket is not slow: this side does not read them. For this time, the
 * part `past` since the last check, its clocks stand still. A link that nobody reads takes as many bytes as the
 * window of its socket has at that moment, which may be few. */
static bool is_behind_us(struct tcp_link *link, size_t waits, int64_t past, int64_t now) {
  if (waits < UNREAD) return false;
  link->body_at = link->body_at + past < now ? link->body_at + past : now;
  link->pace_at += past;
  return true;
}

static bool is_slow(struct tcp_link *link, int64_t past, int64_t now) {
  int64_t shortage = link->net->waiting_since, allowance = pwi_net_allowance(&link->net->base);
  int64_t whole = BODY_NS + (int64_t)(link->frame.body_size / BODY_BYTES_PER_MS) * MILLISECOND;
  size_t waits = unread(link), delivered = link->received + waits;
  if (link->body_at < shortage) link->body_at = shortage;
  if (link->pace_at < shortage) {
    note_pace(link, delivered, now);
    return false;
  }
  if (is_behind_us(link, waits, past, now)) return false;
  if (!link->is_waiting && now - link->body_at > whole + allowance) return true;
  if (now - link->pace_at < PACE_NS + allowance) return false;
  bool is_little = delivered < link->pace_delivered + PACE_BYTES;
  note_pace(link, delivered, now);
  return is_little;
}

void pwi_tcp_body_memory_check(struct tcp_net *net, int64_t now) {
  if (net->base.counts.inbound_waiting == 0) {
    net->waiting_since = 0;
    return;
  }
  for (size_t i = 0; i < net->slot_count; i++) {
    struct tcp_link *link = net->slots[i];
    if (!link || link->is_failed || !link->accepted || link->charged == 0 || !is_slow(link, now - net->last_tick, now))
      continue;
    net->base.counts.inbound_dropped++;
    pwi_tcp_link_fail(link, PAWL_LINK_SILENT, "the peer sends too slowly while other links wait for memory");
  }
  if (net->exempt.id == 0) exempt_one(net);
}
