/* The net itself: creation, polling, and reporting of ended operations. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/tcp/world.h"

#define EVENTS 64
#define SPIN (30 * INT64_C(1000))       /* time to poll before sleeping: a round trip over a socket */
#define SPIN_PLANE (10 * INT64_C(1000)) /* the same for a data plane, whose messages are much faster */
#define SPIN_SKIP_MAX 63                /* maximum number of waits without spinning after useless spins */
#define PENDING_SLEEP INT64_C(50000)    /* 50 us: time until a peer may have room */
#define PLANE_SPINS 64                  /* polls of the data plane for each poll of the sockets */
#define PORT_SPINS 512  /* polls of ports in all of these, so that many ports do not delay the sockets */
#define PLANE_ROUNDS 32 /* rounds with progress only on the data plane before the sockets have their turn */

int64_t pwi_tcp_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t now_of(const struct pwi_net *net) {
  (void)net;
  return pwi_tcp_now();
}

struct tcp_link *pwi_tcp_find_link(struct tcp_net *net, struct pwi_link id) {
  size_t slot = (size_t)(id.id & 0xffffff);
  if (slot == 0 || slot > net->slot_count) return NULL;
  struct tcp_link *link = net->slots[slot - 1];
  return link && link->id.id == id.id ? link : NULL;
}

void pwi_tcp_mark_ready(struct tcp_link *link) {
  if (link->is_ready) return;
  link->is_ready = true;
  link->next_ready = link->net->ready;
  link->net->ready = link;
}

void pwi_tcp_mark_dirty(struct tcp_link *link) {
  if (link->is_dirty) return;
  link->is_dirty = true;
  link->next_dirty = link->net->dirty;
  link->net->dirty = link;
}

void pwi_tcp_warn_of_stranger(struct tcp_link *link, const char *event, pawl_status why, const char *detail) {
  struct tcp_net *net = link->net;
  uint64_t left_out;
  if (!link->is_announced) net->base.counts.links_refused++;
  if (!pwi_log_limit_allows(&net->strange, pwi_tcp_now(), &left_out)) return;
  pwi_log(&net->log, PAWL_LOG_WARN, event, "peer=%s why=%s detail='%s' left_out=%llu", link->peer,
          pawl_status_name(why), detail ? detail : pawl_status_text(why), (unsigned long long)left_out);
}

/* Ended operations. Room for each is reserved when it is accepted, so that ending cannot fail. */

pawl_status pwi_tcp_owe(struct tcp_net *net, uint64_t cookie) {
  if (cookie == 0) return PAWL_OK;
  pawl_status status = pwi_fifo_reserve(&net->ended, pwi_fifo_count(&net->ended) + net->owed + 1);
  if (status == PAWL_OK) net->owed++;
  return status;
}

void pwi_tcp_end_operation(struct tcp_link *link, uint64_t cookie, pawl_status status) {
  if (cookie == 0) return;
  link->net->owed--;
  *(struct ended *)pwi_fifo_push(&link->net->ended) = (struct ended){link->id, cookie, status};
}

/* Reports only operations that have ended by now: otherwise an actor whose every callback starts an operation
 * that ends at once would loop forever. */
static void hand_out_ended(struct tcp_net *net) {
  for (size_t count = pwi_fifo_count(&net->ended); count > 0; count--) {
    struct ended ended = *(struct ended *)pwi_fifo_at(&net->ended, 0);
    pwi_fifo_pop(&net->ended);
    net->moved = true;
    if (net->base.actor->done) net->base.actor->done(net->base.self, ended.link, ended.cookie, ended.status);
  }
}

/* One round of polling. */

static void take_event(struct tcp_net *net, const struct epoll_event *event) {
  uint64_t who = event->data.u64;
  if (who == PWI_EVENT_WAKER) {
    eventfd_t ignored;
    eventfd_read(net->waker, &ignored);
    pwi_tcp_check_resolutions(net);
    return;
  }
  if (who == PWI_EVENT_PLANE) return; /* the plane is polled in any case */
  if (who == PWI_EVENT_DOOR) {
    pwi_tcp_door_accept(net);
    return;
  }
  if (who > PWI_EVENT_LISTENER - LISTENERS_MAX) {
    pwi_tcp_accept_all(net, &net->listeners[PWI_EVENT_LISTENER - who]);
    return;
  }
  if (who & PWI_EVENT_GUEST) {
    pwi_tcp_door_guest(net, (size_t)(who & ~PWI_EVENT_GUEST));
    return;
  }
  struct tcp_link *link = pwi_tcp_find_link(net, (struct pwi_link){who & ~PWI_EVENT_MEETING});
  if (!link || link->is_failed) return;
  if (who & PWI_EVENT_MEETING) {
    pwi_tcp_meet_continue(link);
    return;
  }
  if (link->stage == STAGE_CONNECTING) {
    pwi_tcp_continue_connecting(link);
    return;
  }
  if (event->events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
    link->can_read = true;
    pwi_tcp_mark_ready(link);
  }
  if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) link->has_ended = true;
  if (event->events & EPOLLOUT) {
    link->can_write = true;
    pwi_tcp_mark_dirty(link);
    if (link->stage == STAGE_SHAKING) pwi_tcp_mark_ready(link);
  }
}

static void collect_events(struct tcp_net *net, int64_t wait) {
  struct epoll_event events[EVENTS];
  struct timespec timeout = {wait / INT64_C(1000000000), wait % INT64_C(1000000000)};
  int count = epoll_pwait2(net->epoll, events, EVENTS, wait == PWI_NET_NEVER ? NULL : &timeout, NULL);
  if (count < 0 && errno == ENOSYS)
    count = epoll_wait(net->epoll, events, EVENTS,
                       wait == PWI_NET_NEVER          ? -1
                       : wait > 1000000 * MILLISECOND ? 1000000
                                                      : (int)((wait + MILLISECOND - 1) / MILLISECOND));
  for (int i = 0; i < count; i++) take_event(net, &events[i]);
}

static void read_ready(struct tcp_net *net) {
  struct tcp_link *link = net->ready;
  net->ready = NULL;
  while (link) {
    struct tcp_link *next = link->next_ready;
    link->is_ready = false;
    if (!link->is_failed) {
      if (link->stage == STAGE_SHAKING)
        pwi_tcp_link_shake(link);
      else if (link->stage > STAGE_SHAKING)
        pwi_tcp_link_read(link);
    }
    link = next;
  }
}

/* Takes the messages of a data plane that a hold had stopped. */
static void resume_plane(struct tcp_link *link) {
  if (!link->plane || !link->plane_blocked || link->stage < STAGE_UP || pwi_tcp_is_holding(link)) return;
  link->plane_blocked = false;
  pwi_plane_resume(link->plane);
}

static void flush_dirty(struct tcp_net *net) {
  struct tcp_link *link = net->dirty;
  net->dirty = NULL;
  while (link) {
    struct tcp_link *next = link->next_dirty;
    link->is_dirty = false;
    if (!link->is_failed && link->stage > STAGE_SHAKING) {
      resume_plane(link);
      if (link->can_write) pwi_tcp_link_flush(link);
      pwi_tcp_link_step_closing(link);
      pwi_tcp_check_writable(link);
    }
    link = next;
  }
}

static void fire_timers(struct tcp_net *net, int64_t now) {
  uint64_t id, cookie;
  /* A timer that is set for now by another timer waits for the next round, so that other events have their
   * turn. */
  uint64_t newest = net->timers.last_id;
  while (pwi_timers_next(&net->timers) <= now && pwi_timers_take(&net->timers, now, &id, &cookie)) {
    net->moved = true;
    if (net->base.actor->timer) net->base.actor->timer(net->base.self, (struct pwi_timer){id}, cookie);
    if (id > newest) break;
  }
}

static void tick(struct tcp_net *net, int64_t now) {
  const struct pwi_net_limits *limits = &net->base.limits;
  if (now < net->next_tick) return;
  if (net->is_watching) {
    pwi_delay_note(&net->own_delay, now - net->next_tick, now);
    pwi_delay_note(&net->delay, now - net->next_tick, now);
  }
  int64_t stopped = now - net->last_tick > 2 * limits->beat_ns ? now - net->last_tick : 0;
  for (size_t i = 0; i < net->slot_count; i++) {
    struct tcp_link *link = net->slots[i];
    if (!link) continue;
    if (stopped > 0) pwi_tcp_link_excuse(link, now, stopped);
    pwi_tcp_link_check(link, now);
  }
  pwi_tcp_door_check(net, now, stopped);
  pwi_tcp_body_memory_check(net, now);
  net->last_tick = now;
  net->next_tick = now + limits->beat_ns / 2;
  net->is_watching = net->link_count > 0;
}

static void unlist(struct tcp_net *net, struct tcp_link *link) {
  if (link->is_ready)
    for (struct tcp_link **at = &net->ready; *at; at = &(*at)->next_ready)
      if (*at == link) {
        *at = link->next_ready;
        break;
      }
  if (link->is_dirty)
    for (struct tcp_link **at = &net->dirty; *at; at = &(*at)->next_dirty)
      if (*at == link) {
        *at = link->next_dirty;
        break;
      }
}

static void bury_failed(struct tcp_net *net) {
  struct tcp_link *link = net->failed;
  net->failed = NULL;
  while (link) {
    struct tcp_link *next = link->next_failed;
    pwi_tcp_link_finish(link);
    hand_out_ended(net);
    net->moved = true;
    if (link->is_announced && net->base.actor->link_down)
      net->base.actor->link_down(net->base.self, link->id, link->why);
    unlist(net, link);
    pwi_tcp_link_destroy(link);
    link = next;
  }
}

static void hear_wake(struct tcp_net *net) {
  if (!atomic_load_explicit(&net->is_woken, memory_order_relaxed) || !atomic_exchange(&net->is_woken, false)) return;
  net->moved = true;
  if (net->base.actor->woken) net->base.actor->woken(net->base.self);
}

/* Spinning saves the time of going to sleep and being woken if the answer comes soon. Otherwise, for example
 * when the peer needs the same core, spinning only delays it. Each useless spin therefore doubles the number
 * of waits without spinning, and a useful one resets it. */
static bool may_spin(struct pwi_spin *spin, int64_t now, int64_t most) {
  if (spin->stage == SPIN_READY) {
    spin->stage = spin->skip > 0 ? SPIN_OVER : SPIN_UNDER_WAY;
    if (spin->skip > 0) spin->skip--;
    spin->end = now + most;
  }
  if (spin->stage == SPIN_UNDER_WAY && now >= spin->end) {
    spin->penalty = 2 * spin->penalty + 1 > SPIN_SKIP_MAX ? SPIN_SKIP_MAX : 2 * spin->penalty + 1;
    spin->skip = spin->penalty;
    spin->stage = SPIN_OVER;
  }
  return spin->stage == SPIN_UNDER_WAY;
}

static void end_spin(struct pwi_spin *spin) {
  if (spin->stage == SPIN_UNDER_WAY) spin->penalty = 0;
  spin->stage = SPIN_READY;
}

/* How long this round may sleep; 0 if there is work or spinning is worthwhile. */
static int64_t sleep_time(struct tcp_net *net, int64_t now, int64_t deadline) {
  if (net->ready || net->dirty || net->failed || pwi_fifo_count(&net->ended) > 0) return 0;
  int64_t until = deadline;
  int64_t timer = pwi_timers_next(&net->timers);
  if (timer < until) until = timer;
  if ((net->link_count > 0 || net->guest_count > 0) && net->next_tick < until) until = net->next_tick;
  if (until <= now || may_spin(&net->spin, now, net->plane ? SPIN_PLANE : SPIN)) return 0;
  if (net->plane && !pwi_plane_arm(net->plane)) return 0;
  if (net->plane && pwi_plane_is_pending(net->plane) && until - now > PENDING_SLEEP) return PENDING_SLEEP;
  return until == PWI_NET_NEVER ? PWI_NET_NEVER : until - now;
}

static bool look_at_plane(struct tcp_net *net) {
  if (!net->plane) return false;
  size_t ports = pwi_plane_port_count(net->plane);
  size_t spins = ports == 0 ? 1 : ports > PORT_SPINS / PLANE_SPINS ? PORT_SPINS / ports + 1 : PLANE_SPINS;
  for (size_t i = 0; i < spins; i++)
    if (pwi_plane_progress(net->plane)) return true;
  return false;
}

/* A busy plane must not starve the sockets, over which heartbeats and hang-ups arrive. Its messages may be
 * large and take long, so time counts as well as their number. */
static bool is_overdue(struct tcp_net *net, int64_t now) {
  return ++net->plane_rounds >= PLANE_ROUNDS || now - net->looked > net->base.limits.beat_ns / 2;
}

static void run_round(struct tcp_net *net, int64_t begin, int64_t wait) {
  net->moved = false;
  bool plane_moved = look_at_plane(net);
  if (!plane_moved || is_overdue(net, begin)) {
    net->plane_rounds = 0;
    net->looked = begin;
    collect_events(net, plane_moved ? 0 : wait);
  }
  hear_wake(net);
  read_ready(net);
  int64_t now = pwi_tcp_now();
  fire_timers(net, now);
  tick(net, now);
  hand_out_ended(net);
  bury_failed(net);
  flush_dirty(net);
  if (net->failed) bury_failed(net);
  if (net->moved) end_spin(&net->spin);
}

static pawl_status poll_net(struct pwi_net *base, int64_t deadline) {
  struct tcp_net *net = (struct tcp_net *)base;
  flush_dirty(net); /* data queued since the last poll is written first */
  for (;;) {
    int64_t now = pwi_tcp_now();
    run_round(net, now, sleep_time(net, now, deadline));
    if (net->moved) return PAWL_OK;
    if (deadline != PWI_NET_NEVER && pwi_tcp_now() >= deadline) return PAWL_TIMED_OUT;
  }
}

static void wake_net(struct pwi_net *base) {
  struct tcp_net *net = (struct tcp_net *)base;
  if (!atomic_exchange(&net->is_woken, true)) eventfd_write(net->waker, 1);
}

static pawl_status set_timer(struct pwi_net *base, int64_t at, uint64_t cookie, struct pwi_timer *timer_out) {
  return pwi_timers_set(&((struct tcp_net *)base)->timers, at, cookie, &timer_out->id);
}

static void cancel_timer(struct pwi_net *base, struct pwi_timer timer) {
  pwi_timers_cancel(&((struct tcp_net *)base)->timers, timer.id);
}

static pawl_status set_hello(struct pwi_net *base, const void *hello, size_t size) {
  struct tcp_net *net = (struct tcp_net *)base;
  if (size) memcpy(net->hello, hello, size);
  net->hello_size = size;
  return PAWL_OK;
}

static const char *address_of(const struct pwi_net *base) { return ((const struct tcp_net *)base)->address; }

static void destroy_net(struct pwi_net *base) {
  struct tcp_net *net = (struct tcp_net *)base;
  for (size_t i = 0; i < net->slot_count; i++)
    if (net->slots[i]) pwi_tcp_link_destroy(net->slots[i]);
  while (net->regions) pwi_tcp_region_close(base, &net->regions->base);
  pwi_plane_destroy(net->plane);
  pwi_tcp_door_close(net);
  pwi_tcp_close_sources(net);
  pwi_tls_context_destroy(net->tls);
  pwi_timers_fini(&net->timers);
  pwi_fifo_fini(&net->ended);
  if (net->spare >= 0) close(net->spare);
  if (net->waker >= 0) close(net->waker);
  if (net->epoll >= 0) close(net->epoll);
  pwi_tcp_free_parked(net);
  pwi_free(net->slots);
  pwi_free(net->scratch);
  pwi_free(net->name);
  pwi_free(net);
}

/* The next poll detects failures. `last_tick` is not updated: this node did not listen in the meantime, so
 * its peers were not silent. */
static void beat_net(struct pwi_net *base) {
  struct tcp_net *net = (struct tcp_net *)base;
  int64_t now = pwi_tcp_now();
  for (size_t i = 0; i < net->slot_count; i++)
    if (net->slots[i]) pwi_tcp_link_beat(net->slots[i], now);
}

static int64_t allowance_of(const struct pwi_net *base) {
  const struct tcp_net *net = (const struct tcp_net *)base;
  return pwi_delay_allowance(pwi_delay_recent(&net->delay, pwi_tcp_now()));
}

static const struct pwi_net_ops ops = {
    .destroy = destroy_net,
    .poll = poll_net,
    .wake = wake_net,
    .beat = beat_net,
    .allowance = allowance_of,
    .now = now_of,
    .timer_set = set_timer,
    .timer_cancel = cancel_timer,
    .hello_set = set_hello,
    .listen = pwi_tcp_listen,
    .address = address_of,
    .connect = pwi_tcp_connect,
    .close = pwi_tcp_close,
    .send = pwi_tcp_send,
    .hold = pwi_tcp_hold,
    .sends_at_once = true,
    .region_open = pwi_tcp_region_open,
    .region_close = pwi_tcp_region_close,
    .region_share = pwi_tcp_region_share,
    .remote_open = pwi_tcp_remote_open,
    .remote_close = pwi_tcp_remote_close,
    .remote_map = pwi_tcp_remote_map,
    .put = pwi_tcp_put,
    .get = pwi_tcp_get,
    .fence = pwi_tcp_fence,
};

/* Making it. */

void pwi_tcp_config_init(struct pwi_tcp_config *config) {
  *config = (struct pwi_tcp_config){.name = "-"};
  pwi_net_limits_init(&config->limits);
}

const char *pwi_tcp_plane_about(bool *available_out) { return pwi_plane_about(available_out); }

/* host, host:port, or either with an IPv6 address in brackets. */
static pawl_status read_advertised(const char *text, struct pwi_address *address_out) {
  char whole[PWI_NET_ADDRESS_MAX];
  const char *bracket = strchr(text, ']');
  bool has_port = strchr(bracket ? bracket : text, ':') != NULL;
  if (snprintf(whole, sizeof whole, has_port ? "tcp://%s" : "tcp://%s:0", text) >= (int)sizeof whole)
    return PAWL_INVALID;
  return pwi_address_parse(whole, address_out);
}

static pawl_status check_config(const struct pwi_tcp_config *config) {
  int files = (config->certificate != NULL) + (config->private_key != NULL) + (config->authority != NULL);
  if (files != 0 && files != 3) return PAWL_INVALID;
  if (files == 3 && config->keys) return PAWL_INVALID;
  if (config->keys && pwi_keyring_count(config->keys) == 0) return PAWL_INVALID;
  if (config->dscp > PWI_DSCP_MAX) return PAWL_INVALID;
  if (config->require_encryption && (config->plane == PWI_PLANE_MUST || (!config->keys && files == 0)))
    return PAWL_INVALID;
  return PAWL_OK;
}

/* A server has thousands of links; the usual soft limit of 1024 files is meant for programs that use
 * select. */
static void raise_file_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static pawl_status open_descriptors(struct tcp_net *net) {
  raise_file_limit();
  net->epoll = epoll_create1(EPOLL_CLOEXEC);
  net->waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  net->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_WAKER};
  if (net->epoll < 0 || net->waker < 0 || net->spare < 0) return PAWL_NODE_LIMIT;
  return epoll_ctl(net->epoll, EPOLL_CTL_ADD, net->waker, &event) == 0 ? PAWL_OK : PAWL_NODE_LIMIT;
}

static pawl_status open_tls(struct tcp_net *net, const struct pwi_tcp_config *config) {
  if (!config->keys && !config->certificate) return PAWL_OK;
  const char *why = "";
  pawl_status status = pwi_tls_context_create(config->keys, config->certificate, config->private_key, config->authority,
                                              &net->tls, &why);
  if (status == PAWL_LINK_KEY) pwi_log(&net->log, PAWL_LOG_ERROR, "net.certificate", "why='%s'", why);
  return status;
}

static pawl_status open_plane(struct tcp_net *net, const struct pwi_tcp_config *config) {
  if (config->plane == PWI_PLANE_OFF || config->require_encryption) return PAWL_OK;
  const char *why = "";
  pawl_status status = pwi_plane_create(&pwi_tcp_link_plane_events, &net->log, config->rdma, &net->plane, &why);
  if (status != PAWL_OK) {
    pwi_log(&net->log, config->plane == PWI_PLANE_MUST ? PAWL_LOG_ERROR : PAWL_LOG_DEBUG, "net.plane", "why='%s'", why);
    return config->plane == PWI_PLANE_MUST || status == PAWL_NO_MEMORY ? status : PAWL_OK;
  }
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_PLANE};
  int added = epoll_ctl(net->epoll, EPOLL_CTL_ADD, pwi_plane_descriptor(net->plane), &event);
  return added == 0 ? pwi_tcp_door_open(net) : PAWL_NODE_LIMIT;
}

pawl_status pwi_tcp_create(const struct pwi_tcp_config *config, const struct pwi_actor *actor, void *self,
                           struct pwi_net **net_out) {
  struct pwi_address advertised = {0};
  pawl_status status = check_config(config);
  if (status == PAWL_OK && config->advertise) status = read_advertised(config->advertise, &advertised);
  if (status != PAWL_OK) return status;
  struct tcp_net *net = pwi_alloc_zero(1, sizeof *net);
  if (!net) return PAWL_NO_MEMORY;
  net->base = (struct pwi_net){.ops = &ops, .actor = actor, .self = self, .limits = config->limits};
  net->base.counts.inbound_max = config->limits.inbound_bytes == SIZE_MAX ? UINT64_MAX : config->limits.inbound_bytes;
  net->epoll = net->waker = net->spare = net->door = -1;
  for (size_t i = 0; i < PWI_GUESTS_MAX; i++) net->guests[i].socket = -1;
  net->keys = config->keys;
  net->require_encryption = config->require_encryption;
  net->plane_wish = config->plane;
  net->dscp = config->dscp;
  net->has_advertised = config->advertise != NULL;
  net->advertised = advertised;
  net->last_tick = pwi_tcp_now();
  pwi_timers_init(&net->timers);
  pwi_fifo_init(&net->ended, sizeof(struct ended));
  pwi_tcp_identify_host(net->host);
  net->scratch = pwi_alloc(SCRATCH_SIZE + PWI_FRAME_ALIGN);
  net->name = pwi_copy_string(config->name ? config->name : "-");
  net->log.node = net->name;
  status = !net->scratch || !net->name ? PAWL_NO_MEMORY : open_descriptors(net);
  if (status == PAWL_OK) status = open_tls(net, config);
  if (status == PAWL_OK) status = open_plane(net, config);
  if (status != PAWL_OK) {
    destroy_net(&net->base);
    return status;
  }
  *net_out = &net->base;
  return PAWL_OK;
}
