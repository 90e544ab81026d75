/* The life of a link.
 *
 *   1. One side connects, and the other accepts.
 *   2. TLS, if the net has keys or a certificate.
 *   3. Both send an opening, then a hello.
 *   4. Each side accepts the hello of the other by its offer of a data plane.
 *   5. Both try the data plane, if both offered one. The link is up.
 *   6. The link ends by bye and hang-up, or by a failure.
 *
 * The offer is sent once the actor has accepted the hello of the peer, so that a refused node never sees the
 * link come up. link_plane.c negotiates the data plane.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/tcp/world.h"

#define BYE_FIELDS 16

pawl_status pwi_tcp_link_create(struct tcp_net *net, struct tcp_link **link_out) {
  if (net->link_count >= net->base.limits.links) return PAWL_NODE_LIMIT;
  struct tcp_link *link = pwi_alloc_zero(1, sizeof *link);
  if (!link) return PAWL_NO_MEMORY;
  if (net->link_count == net->slot_count) {
    size_t count = net->slot_count ? 2 * net->slot_count : 16;
    struct tcp_link **slots = pwi_resize_array(net->slots, count, sizeof *slots);
    if (!slots) {
      pwi_free(link);
      return PAWL_NO_MEMORY;
    }
    memset(slots + net->slot_count, 0, (count - net->slot_count) * sizeof *slots);
    net->slots = slots;
    net->slot_count = count;
  }
  while (net->slots[net->slot_hint]) net->slot_hint = (net->slot_hint + 1) % net->slot_count;
  net->slots[net->slot_hint] = link;
  net->link_count++;
  link->net = net;
  link->id.id = ++net->last_link << 24 | (net->slot_hint + 1);
  link->socket = link->channel = -1;
  link->process = PWI_NO_PROCESS;
  link->deadline = pwi_tcp_now() + net->base.limits.greet_ns;
  pwi_fifo_init(&link->segments, sizeof(struct segment));
  pwi_fifo_init(&link->questions, sizeof(struct tcp_question));
  pwi_fifo_init(&link->parked, sizeof(struct pwi_parked *));
  *link_out = link;
  return PAWL_OK;
}

void pwi_tcp_link_destroy(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  pwi_tcp_forget_stranger(link);
  pwi_tcp_drop_resolution(link);
  pwi_plane_close(link->plane, PAWL_CANCELLED);
  pwi_plane_port_close(link->port);
  pwi_tcp_meet_end(link);
  pwi_tcp_body_memory_close(link);
  pwi_tls_destroy(link->tls);
  if (link->socket >= 0) close(link->socket);
  pwi_incoming_fini(&link->incoming, &net->base);
  pwi_incoming_fini(&link->plane_incoming, &net->base);
  pwi_fifo_fini(&link->segments);
  pwi_fifo_fini(&link->questions);
  pwi_tcp_drop_parked(link, PAWL_CANCELLED);
  pwi_fifo_fini(&link->parked);
  pwi_free(link->ring);
  pwi_free(link->small);
  pwi_free(link->fabric);
  pwi_free(link->hello);
  pwi_free(link->shares);
  pwi_free(link->remotes);
  net->slots[(link->id.id & 0xffffff) - 1] = NULL;
  net->link_count--;
  pwi_free(link);
}

pawl_status pwi_tcp_link_watch(struct tcp_link *link) {
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u64 = link->id.id};
  return epoll_ctl(link->net->epoll, EPOLL_CTL_ADD, link->socket, &event) == 0 ? PAWL_OK : PAWL_NODE_LIMIT;
}

void pwi_tcp_link_fail(struct tcp_link *link, pawl_status why, const char *detail) {
  if (link->is_failed) return;
  link->is_failed = true;
  link->next_failed = link->net->failed;
  link->net->failed = link;
  link->why = why;
  link->detail = detail;
}

/* The peer has closed its side, but not everything that it sent on the data plane has arrived. */
static bool awaits_plane(const struct tcp_link *link) {
  if (!link->bye_came || !link->plane || link->stage != STAGE_UP) return false;
  return link->plane_received < link->bye_plane_count || link->plane_incoming.active;
}

void pwi_tcp_link_hung_up(struct tcp_link *link, pawl_status why, const char *detail) {
  bool we_closed =
      link->stage == STAGE_LEAVING || (link->stage == STAGE_CLOSING && (link->bye_written || link->bye_came));
  if (we_closed)
    pwi_tcp_link_fail(link, link->verdict, detail);
  else if (awaits_plane(link) && why != PAWL_LINK_PLANE)
    link->can_read = link->can_write = false; /* the rest of the data plane or the deadline ends the link */
  else if (link->bye_came)
    pwi_tcp_link_fail(link, link->why, detail); /* the peer has stated its reason before */
  else
    pwi_tcp_link_fail(link, why, detail);
}

/* Logs peers that were refused, known peers that violate the protocol, and lost links. If a link could not be
 * made, the caller that asked for it logs this. */
static void warn_of(struct tcp_link *link, pawl_status why, const char *detail) {
  bool is_attempt = !link->accepted && link->stage < STAGE_UP;
  if (!link->is_announced)
    pwi_tcp_warn_of_stranger(link, "link.refused", why, detail);
  else if (why == PAWL_LINK_PROTOCOL && !link->bye_came && !is_attempt) /* otherwise the peer reports it */
    pwi_tcp_warn_of_stranger(link, "link.misused", why, detail);
  else if (link->stage == STAGE_UP && !link->bye_came && why != PAWL_OK)
    pwi_tcp_warn_of_stranger(link, "link.lost", why, detail);
}

void pwi_tcp_link_finish(struct tcp_link *link) {
  struct pwi_net *base = &link->net->base;
  pawl_status lost = link->why == PAWL_OK ? PAWL_CANCELLED : link->why;
  if (link->is_announced)
    pwi_log(&link->net->log, PAWL_LOG_DEBUG, "link.down", "peer=%s why=%s%s%s", link->peer, pawl_status_name(link->why),
            link->detail ? " detail=" : "", link->detail ? link->detail : "");
  if (link->stage < STAGE_CLOSING) warn_of(link, link->why, link->detail);
  link->stage = STAGE_DEAD;
  pwi_plane_close(link->plane, lost);
  link->plane = NULL;
  pwi_incoming_end(&link->incoming, base, link->id, lost);
  pwi_incoming_end(&link->plane_incoming, base, link->id, lost);
  pwi_tcp_drop_output(link, lost);
  pwi_tcp_drop_questions(link, lost);
  pwi_tcp_body_memory_release(link);
}

/* Bringing it up. */

void pwi_tcp_link_connected(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  link->can_read = link->can_write = true;
  link->heard = link->spoke = pwi_tcp_now();
  bool is_unix = strncmp(link->peer, "unix:", 5) == 0;
  struct ucred who;
  socklen_t who_size = sizeof who;
  if (is_unix && getsockopt(link->socket, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0)
    snprintf(link->identity, sizeof link->identity, "user:%lu", (unsigned long)who.uid);
  if (!net->tls || is_unix) {
    link->stage = STAGE_OPENING;
  } else {
    pawl_status status =
        pwi_tls_create(net->tls, link->socket, link->accepted, link->host[0] ? link->host : NULL, &link->tls);
    if (status != PAWL_OK) {
      pwi_tcp_link_fail(link, status, NULL);
      return;
    }
    link->stage = STAGE_SHAKING;
    link->can |= PWI_LINK_ENCRYPTED;
  }
  pwi_tcp_link_shake(link);
}

static void send_opening(struct tcp_link *link) {
  uint8_t bytes[PWI_OPENING_SIZE];
  link->ours.lowest = PWI_FRAME_LOWEST;
  link->ours.highest = PWI_FRAME_VERSION;
  if (RAND_bytes(link->ours.challenge, PWI_CHALLENGE_SIZE) != 1) {
    pwi_tcp_link_fail(link, PAWL_IO, "no random numbers");
    return;
  }
  pwi_opening_write(bytes, &link->ours);
  size_t moved = 0;
  pawl_status status = PAWL_OK;
  if (link->tls)
    status = pwi_tls_write(link->tls, bytes, sizeof bytes, &moved);
  else
    moved = (size_t)send(link->socket, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  /* A new socket always has room for 32 bytes; otherwise it is broken. */
  if (status != PAWL_OK || moved != sizeof bytes) pwi_tcp_link_fail(link, PAWL_LINK_RESET, "cannot write the opening");
  pwi_tcp_mark_dirty(link);
}

void pwi_tcp_link_shake(struct tcp_link *link) {
  if (link->stage == STAGE_SHAKING) {
    bool finished;
    pawl_status status = pwi_tls_handshake(link->tls, &finished);
    if (status != PAWL_OK) {
      pwi_tcp_link_fail(link, status, pwi_tls_error(link->tls));
      return;
    }
    if (!finished) return;
    link->stage = STAGE_OPENING;
  }
  send_opening(link);
  pwi_tcp_mark_ready(link);
}

void pwi_tcp_link_opened(struct tcp_link *link, const uint8_t *opening) {
  pawl_status status = pwi_opening_read(opening, &link->theirs);
  if (status == PAWL_OK) status = pwi_opening_agree(&link->ours, &link->theirs, &link->version);
  if (status != PAWL_OK) {
    snprintf(link->words, sizeof link->words, "other version of the framing: ours=%u..%u theirs=%u..%u",
             link->ours.lowest, link->ours.highest, link->theirs.lowest, link->theirs.highest);
    pwi_tcp_link_fail(link, status, status == PAWL_LINK_VERSION ? link->words : "not the opening of a link");
    return;
  }
  struct tcp_net *net = link->net;
  struct iovec body = {net->hello, net->hello_size};
  status = pwi_tcp_queue_frame(link, PWI_FRAME_HELLO, link->theirs.challenge, &body, 1, net->hello_size, false, 0);
  if (status != PAWL_OK) pwi_tcp_link_fail(link, status, NULL);
  link->stage = STAGE_HELLO;
}

static struct pwi_link_info info_of(const struct tcp_link *link) {
  return (struct pwi_link_info){
      .peer = link->peer,
      .hello = link->hello,
      .hello_size = link->hello_size,
      .identity = link->tls ? pwi_tls_peer(link->tls) : link->identity,
      .accepted = link->accepted,
      .can = link->can,
  };
}

static void send_bye(struct tcp_link *link, pawl_status why) {
  uint8_t fields[BYE_FIELDS] = {0};
  pwi_put_u32(fields, (uint32_t)why);
  pwi_put_u64(fields + 8, link->plane_sent + (link->plane ? pwi_plane_notifications(link->plane) : 0));
  if (pwi_tcp_queue_frame(link, PWI_FRAME_BYE, fields, NULL, 0, 0, false, 0) != PAWL_OK)
    pwi_tcp_link_fail(link, PAWL_NO_MEMORY, NULL);
  link->bye_queued = true;
}

/* Tells the peer the reason, and closes once it is sent. */
void pwi_tcp_link_refuse(struct tcp_link *link, pawl_status why, const char *detail) {
  if (link->is_failed || link->stage >= STAGE_CLOSING) return;
  warn_of(link, why, detail);
  link->close_why = link->verdict = why;
  link->detail = detail;
  link->stage = STAGE_CLOSING;
  link->deadline = pwi_tcp_now() + link->net->base.limits.linger_ns;
  send_bye(link, why);
}

void pwi_tcp_link_greeted(struct tcp_link *link) {
  if (memcmp(link->fields, link->ours.challenge, PWI_CHALLENGE_SIZE) != 0) {
    pwi_tcp_link_fail(link, PAWL_LINK_PROTOCOL, "the hello repeats another challenge");
    return;
  }
  link->hello = link->small;
  link->hello_size = (size_t)link->frame.body_size;
  link->small = NULL;
  struct pwi_net *base = &link->net->base;
  struct pwi_link_info info = info_of(link);
  link->net->moved = true;
  pawl_status status = base->actor->greet ? base->actor->greet(base->self, link->id, &info) : PAWL_OK;
  if (link->stage != STAGE_HELLO) return; /* closed inside greet */
  if (status != PAWL_OK) {
    pwi_tcp_link_refuse(link, status, "greeting refused");
    return;
  }
  link->stage = STAGE_OFFER;
  pwi_tcp_plane_offer(link);
}

void pwi_tcp_link_come_up(struct tcp_link *link) {
  struct pwi_net *base = &link->net->base;
  if (!link->plane && link->net->plane_wish == PWI_PLANE_MUST) {
    pwi_tcp_link_refuse(link, PAWL_LINK_PLANE, "no data plane to this peer");
    return;
  }
  if (pwi_tcp_body_memory_open(link) != PAWL_OK) {
    pwi_tcp_link_fail(link, PAWL_NO_MEMORY, NULL);
    return;
  }
  pwi_tcp_forget_stranger(link);
  link->stage = STAGE_UP;
  link->is_announced = true;
  link->heard = pwi_tcp_now();
  base->counts.links_up++;
  pwi_log(&link->net->log, PAWL_LOG_DEBUG, "link.up", "peer=%s accepted=%d plane=%d encrypted=%d", link->peer,
          link->accepted, link->plane != NULL, (link->can & PWI_LINK_ENCRYPTED) != 0);
  struct pwi_link_info info = info_of(link);
  link->net->moved = true;
  if (base->actor->link_up) base->actor->link_up(base->self, link->id, &info);
  if (link->plane && link->plane_blocked) {
    link->plane_blocked = false;
    pwi_plane_resume(link->plane);
  }
}

/* Closing. */

void pwi_tcp_close(struct pwi_net *base, struct pwi_link id, pawl_status why) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  if (!link || link->is_failed || link->stage >= STAGE_CLOSING) return;
  link->deadline = pwi_tcp_now() + base->limits.linger_ns;
  link->close_why = why;
  if (link->stage < STAGE_UP) {
    bool was_greeting = link->stage == STAGE_HELLO || link->stage == STAGE_OFFER || link->stage == STAGE_PLANE;
    link->stage = STAGE_CLOSING;
    if (was_greeting)
      send_bye(link, why);
    else
      pwi_tcp_link_fail(link, PAWL_OK, NULL);
    return;
  }
  link->stage = STAGE_CLOSING;
  pwi_tcp_end_holds(link);
  pwi_tcp_mark_dirty(link);
}

/* Called while closing, whenever there may be progress. */
void pwi_tcp_link_step_closing(struct tcp_link *link) {
  if (link->stage != STAGE_CLOSING || link->is_failed) return;
  if (!link->bye_queued) {
    pwi_tcp_unpark(link);
    if (pwi_fifo_count(&link->parked) > 0) return;
    if (link->plane && pwi_plane_outstanding(link->plane) > 0) return;
    send_bye(link, link->close_why);
    return;
  }
  if (!link->bye_written || (link->tls && !link->can_write)) return;
  shutdown(link->socket, SHUT_WR);
  link->stage = STAGE_LEAVING;
  if (link->bye_came) pwi_tcp_link_fail(link, link->verdict, NULL);
}

/* The BYE of the peer has arrived, and so have all messages and notifications that it sent on the data
 * plane. */
void pwi_tcp_link_check_bye(struct tcp_link *link) {
  if (!link->bye_came || link->plane_received < link->bye_plane_count || link->plane_incoming.active) return;
  pwi_tcp_link_fail(link, link->why, "bye");
}

void pwi_tcp_link_bye(struct tcp_link *link) {
  pawl_status said = (pawl_status)(int32_t)pwi_get_u32(link->fields);
  if (said == PAWL_OK || strcmp(pawl_status_name(said), "UNKNOWN") == 0) said = PAWL_LINK_CLOSED;
  link->bye_came = true;
  link->bye_plane_count = link->plane ? pwi_get_u64(link->fields + 8) : 0;
  if (link->stage == STAGE_CLOSING || link->stage == STAGE_LEAVING) {
    if (link->stage == STAGE_LEAVING) pwi_tcp_link_fail(link, link->verdict, NULL);
    return;
  }
  if (link->holds) pwi_tcp_mark_dirty(link); /* what was held is delivered */
  link->why = said;
  link->deadline = pwi_tcp_now() + link->net->base.limits.linger_ns;
  pwi_tcp_link_check_bye(link);
}

/* Heartbeats and deadlines. */

static pawl_status late_status(const struct tcp_link *link) {
  if (link->stage < STAGE_UP) return PAWL_TIMED_OUT;
  return link->bye_came && link->why != PAWL_OK ? link->why : PAWL_LINK_SILENT;
}

/* Sends a heartbeat if it is due; true if it was. */
static bool beat(struct tcp_link *link, int64_t now) {
  if (now - link->spoke < link->net->base.limits.beat_ns || !link->can_write) return false;
  if (pwi_tcp_queue_frame(link, PWI_FRAME_PING, NULL, NULL, 0, 0, false, 0) != PAWL_OK)
    pwi_tcp_link_fail(link, PAWL_NO_MEMORY, NULL);
  return true;
}

/* This node did not listen for a while, and that time does not count as silence of its peers. No link gets more
 * time than a new one has. */
void pwi_tcp_link_excuse(struct tcp_link *link, int64_t now, int64_t stopped) {
  link->heard = now - link->heard > stopped ? link->heard + stopped : now;
  link->deadline = pwi_tcp_later(link->deadline, now, stopped, link->net->base.limits.greet_ns);
  if (link->plane_deadline > 0)
    link->plane_deadline = pwi_tcp_later(link->plane_deadline, now, stopped, PWI_PLANE_PATIENCE);
}

/* The silence limit, and the allowance for the recent delays of this node and of the peer. */
static int64_t silence_limit(const struct tcp_link *link, int64_t now) {
  int64_t own = pwi_delay_recent(&link->net->own_delay, now), peer = pwi_delay_recent(&link->delay, now);
  return link->net->base.limits.silence_ns + pwi_delay_allowance(own > peer ? own : peer);
}

void pwi_tcp_link_check(struct tcp_link *link, int64_t now) {
  if (link->is_failed) return;
  if (link->stage == STAGE_PLANE && !link->accepted && now > link->plane_deadline) {
    pwi_tcp_plane_do_without(link);
    return;
  }
  if (link->stage != STAGE_UP || link->bye_came) {
    if (now > link->deadline) pwi_tcp_link_fail(link, late_status(link), "the link did not come up or close in time");
    return;
  }
  /* While the queue to the peer is too full, its stream is not read. The peer then shows that it is alive by
   * accepting bytes. */
  if (pwi_tcp_is_choked(link) && link->took > link->heard) link->heard = link->took;
  if (link->is_waiting) link->heard = now; /* waiting for memory of this side */
  if (now - link->heard > silence_limit(link, now)) {
    pwi_tcp_link_fail(link, PAWL_LINK_SILENT, NULL);
    return;
  }
  beat(link, now);
}

void pwi_tcp_link_beat(struct tcp_link *link, int64_t now) {
  if (link->is_failed || link->stage != STAGE_UP || link->bye_came) return;
  if (beat(link, now)) pwi_tcp_link_flush(link);
}
