/* Meeting: two nodes verify that they are processes of one user on one host, and that they are the two ends
 * of the link.
 *
 * A data plane on one host trusts its peer completely: UCX trusts the address that it receives, and memory is
 * read and mapped. It is therefore only for processes that have full control over this process anyway, those
 * of the same user, and the kernel identifies them. A node with a plane has a *door*, a unix socket with a
 * random abstract name, which cannot be reached from another host. The acceptor of a link names its door in
 * its offer; the connector connects to it and sends a *card*; the acceptor answers with its own. Each side
 * accepts a card only if
 *
 *   - the kernel confirms that the other end of the socket is a process of the same user, with a process
 *     number that is valid here;
 *   - the card contains the proof of this link: a hash of the TLS export (of nothing for a plain link) and of
 *     the nonces of both offers, which only the two ends of the link know. A peer in the middle between two
 *     honest nodes has two links and so two proofs, neither of which is valid for the other link;
 *   - the same proof can be read in the memory of that process, which shows that the process itself has the
 *     link;
 *   - both see the same memory and have the same kind of plane.
 *
 * A process that stalls at the door, sends no card, or sends a wrong one is disconnected; the link is not
 * affected. The plane keeps the socket, over which descriptors are passed.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/tcp/world.h"

#define DOOR_PATIENCE PWI_PLANE_PATIENCE
#define DOOR_BACKLOG 1024 /* all peers of a host may come at once */
#define EXPORT_LABEL "EXPORTER-pawl-data-plane"

/* A card: magic 8 bytes, the acceptor's number of the link u64, proof 32 bytes, host 16 bytes, address of the
 * proof in the memory of the sender u64, tag u64, address of its port. */
static const char card_magic[8] = "pawlcard";
#define CARD_HEAD 80
#define CARD_MAX (CARD_HEAD + 4096)

/* The door. */

/* Nodes with the same value can share memory: same boot of the same kernel, same /dev/shm, same process
 * numbers, and the same kind of plane. It only separates nodes that could not work together; it proves
 * nothing. */
void pwi_tcp_identify_host(uint8_t host[16]) {
  char text[320] = {0};
  size_t used = 0;
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file) {
    used = fread(text, 1, 64, file);
    fclose(file);
  }
  struct stat shared = {0}, processes = {0};
  stat("/dev/shm", &shared);
  stat("/proc/self/ns/pid", &processes);
  int more = snprintf(text + used, sizeof text - used, "|%llu|%llu|%llu|%.64s", (unsigned long long)shared.st_dev,
                      (unsigned long long)shared.st_ino, (unsigned long long)processes.st_ino, pwi_plane_kind());
  size_t size = used + (size_t)(more > 0 ? more : 0);
  uint64_t halves[2] = {pwi_hash(text, size, 1), pwi_hash(text, size, 2)};
  memcpy(host, halves, sizeof halves);
}

static socklen_t print_door(const uint8_t name[PWI_DOOR_SIZE], struct sockaddr_un *address_out) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "pawl-plane-");
  for (size_t i = 0; i < PWI_DOOR_SIZE; i++)
    size += snprintf(address.sun_path + 1 + size, sizeof address.sun_path - 1 - (size_t)size, "%02x", name[i]);
  *address_out = address;
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

pawl_status pwi_tcp_door_open(struct tcp_net *net) {
  struct sockaddr_un address;
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_DOOR};
  if (RAND_bytes(net->door_name, sizeof net->door_name) != 1) return PAWL_IO;
  socklen_t size = print_door(net->door_name, &address);
  net->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (net->door < 0) return PAWL_NODE_LIMIT;
  if (bind(net->door, (const struct sockaddr *)&address, size) != 0 || listen(net->door, DOOR_BACKLOG) != 0)
    return PAWL_NODE_LIMIT;
  return epoll_ctl(net->epoll, EPOLL_CTL_ADD, net->door, &event) == 0 ? PAWL_OK : PAWL_NODE_LIMIT;
}

static void send_away(struct tcp_net *net, size_t index) {
  struct pwi_guest *guest = &net->guests[index];
  if (guest->socket >= 0) close(guest->socket);
  pwi_process_close(&guest->process);
  pwi_free(guest->card);
  *guest = (struct pwi_guest){.socket = -1, .process = PWI_NO_PROCESS};
  net->guest_count--;
}

void pwi_tcp_door_close(struct tcp_net *net) {
  for (size_t i = 0; i < PWI_GUESTS_MAX; i++)
    if (net->guests[i].socket >= 0) send_away(net, i);
  if (net->door >= 0) close(net->door);
  net->door = -1;
}

void pwi_tcp_door_check(struct tcp_net *net, int64_t now, int64_t stopped) {
  for (size_t i = 0; net->guest_count > 0 && i < PWI_GUESTS_MAX; i++) {
    struct pwi_guest *guest = &net->guests[i];
    if (guest->socket < 0) continue;
    if (stopped > 0) guest->deadline = pwi_tcp_later(guest->deadline, now, stopped, DOOR_PATIENCE);
    if (now > guest->deadline) send_away(net, i);
  }
}

/* A free place; if there is none, the place of the guest that has waited longest. */
static size_t seat(struct tcp_net *net) {
  size_t oldest = 0;
  for (size_t i = 0; i < PWI_GUESTS_MAX; i++) {
    if (net->guests[i].socket < 0) return i;
    if (net->guests[i].deadline < net->guests[oldest].deadline) oldest = i;
  }
  send_away(net, oldest);
  return oldest;
}

static void let_in(struct tcp_net *net, int socket) {
  struct pwi_process process;
  if (!pwi_process_open(socket, &process)) { /* another user or another namespace: refused at once */
    close(socket);
    return;
  }
  size_t index = seat(net);
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_GUEST | index};
  net->guests[index] =
      (struct pwi_guest){.socket = socket, .process = process, .deadline = pwi_tcp_now() + DOOR_PATIENCE};
  net->guest_count++;
  if (epoll_ctl(net->epoll, EPOLL_CTL_ADD, socket, &event) != 0) send_away(net, index);
}

/* Guests that have just come are heard before others take their places; the others wait outside. */
void pwi_tcp_door_accept(struct tcp_net *net) {
  size_t free_places = PWI_GUESTS_MAX - net->guest_count;
  for (size_t i = 0; i == 0 || i < free_places; i++) {
    int socket = accept4(net->door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    let_in(net, socket);
  }
}

/* Proofs and cards. */

static bool make_proof(const struct tcp_link *link, const uint8_t door[PWI_DOOR_SIZE], uint64_t number,
                       bool of_acceptor, uint8_t proof_out[PWI_PROOF_SIZE]) {
  uint8_t text[32 + 2 * PWI_NONCE_SIZE + PWI_DOOR_SIZE + 16] = {0};
  const uint8_t *connectors = link->accepted ? link->their_nonce : link->nonce;
  const uint8_t *acceptors = link->accepted ? link->nonce : link->their_nonce;
  if (link->tls && pwi_tls_export(link->tls, EXPORT_LABEL, text, 32) != PAWL_OK) return false;
  uint8_t *at = text + 32;
  memcpy(at, connectors, PWI_NONCE_SIZE);
  memcpy(at + PWI_NONCE_SIZE, acceptors, PWI_NONCE_SIZE);
  memcpy(at + 2 * PWI_NONCE_SIZE, door, PWI_DOOR_SIZE);
  pwi_put_u64(at + 2 * PWI_NONCE_SIZE + PWI_DOOR_SIZE, number);
  pwi_put_u64(at + 2 * PWI_NONCE_SIZE + PWI_DOOR_SIZE + 8, of_acceptor ? 2 : 1);
  SHA256(text, sizeof text, proof_out);
  OPENSSL_cleanse(text, sizeof text);
  return true;
}

static pawl_status make_proofs(struct tcp_link *link, const uint8_t door[PWI_DOOR_SIZE], uint64_t number) {
  link->meeting = number;
  bool made = make_proof(link, door, number, link->accepted, link->proof) &&
              make_proof(link, door, number, !link->accepted, link->their_proof);
  return made ? PAWL_OK : PAWL_LINK_PLANE;
}

/* The proof is stored in the link, whose address does not change. */
static pawl_status show_card(struct tcp_link *link, int channel) {
  uint8_t head[CARD_HEAD];
  size_t size;
  const void *address = pwi_plane_port_address(link->port, &size);
  memcpy(head, card_magic, sizeof card_magic);
  pwi_put_u64(head + 8, link->meeting);
  memcpy(head + 16, link->proof, PWI_PROOF_SIZE);
  memcpy(head + 48, link->net->host, 16);
  pwi_put_u64(head + 64, (uint64_t)(uintptr_t)link->proof);
  pwi_put_u64(head + 72, link->our_tag);
  struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)address, size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  ssize_t moved = sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  return moved == (ssize_t)(sizeof head + size) ? PAWL_OK : PAWL_LINK_PLANE;
}

/* Receives exactly one card. Returns its size; 0 if nothing has arrived yet, or if it is not a card
 * (`*is_wrong_out`). */
static size_t read_card(int channel, uint8_t card[CARD_MAX], bool *is_wrong_out) {
  struct iovec part = {card, CARD_MAX};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  ssize_t moved;
  do moved = recvmsg(channel, &message, MSG_DONTWAIT);
  while (moved < 0 && errno == EINTR);
  *is_wrong_out = moved < 0 ? errno != EAGAIN : true;
  if (moved <= CARD_HEAD || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) return 0;
  if (memcmp(card, card_magic, sizeof card_magic) != 0) return 0;
  *is_wrong_out = false;
  return (size_t)moved;
}

/* True if the card is for this link and from the process at its other end. */
static bool is_genuine(const struct tcp_link *link, const uint8_t *card, const struct pwi_process *process) {
  uint8_t seen[PWI_PROOF_SIZE];
  struct iovec local = {seen, sizeof seen};
  if (pwi_get_u64(card + 8) != link->meeting) return false;
  if (CRYPTO_memcmp(card + 16, link->their_proof, PWI_PROOF_SIZE) != 0) return false;
  if (!pwi_process_read(process, &local, 1, pwi_get_u64(card + 64), sizeof seen)) return false;
  return CRYPTO_memcmp(seen, link->their_proof, PWI_PROOF_SIZE) == 0;
}

static bool is_compatible(const struct tcp_link *link, const uint8_t *card) {
  return memcmp(card + 48, link->net->host, 16) == 0;
}

/* Continues with the plane, which takes over channel and process. */
static void have_met(struct tcp_link *link, const uint8_t *card, size_t size, struct pwi_process process, int channel) {
  struct pwi_plane_route route = {
      .address = card + CARD_HEAD,
      .address_size = size - CARD_HEAD,
      .their_tag = pwi_get_u64(card + 72),
      .same_host = true,
      .process = process,
      .channel = channel,
  };
  epoll_ctl(link->net->epoll, EPOLL_CTL_DEL, channel, NULL);
  link->net->moved = true;
  pwi_tcp_plane_try(link, &route);
}

/* The connector. */

pawl_status pwi_tcp_meet_begin(struct tcp_link *link, const uint8_t door[PWI_DOOR_SIZE], uint64_t number) {
  struct tcp_net *net = link->net;
  struct sockaddr_un address;
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = PWI_EVENT_MEETING | link->id.id};
  socklen_t size = print_door(door, &address);
  link->channel = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  pawl_status status = PAWL_LINK_PLANE;
  if (link->channel < 0 || connect(link->channel, (const struct sockaddr *)&address, size) != 0) goto end;
  if (!pwi_process_open(link->channel, &link->process)) goto end;
  if (!link->port && (status = pwi_plane_port_open(net->plane, &link->port)) != PAWL_OK) goto end;
  status = make_proofs(link, door, number);
  if (status == PAWL_OK) status = show_card(link, link->channel);
  if (status == PAWL_OK && epoll_ctl(net->epoll, EPOLL_CTL_ADD, link->channel, &event) != 0) status = PAWL_NODE_LIMIT;
end:
  if (status != PAWL_OK) pwi_tcp_meet_end(link);
  return status;
}

void pwi_tcp_meet_continue(struct tcp_link *link) {
  uint8_t card[CARD_MAX];
  bool is_wrong;
  if (link->channel < 0) return;
  size_t size = read_card(link->channel, card, &is_wrong);
  if (size == 0 && !is_wrong) return;
  bool is_right = link->stage == STAGE_PLANE && size > 0 && is_genuine(link, card, &link->process);
  struct pwi_process process = link->process;
  int channel = link->channel;
  if (is_right && is_compatible(link, card)) {
    link->process = PWI_NO_PROCESS;
    link->channel = -1;
    have_met(link, card, size, process, channel);
    return;
  }
  pwi_tcp_meet_end(link);
  if (link->stage == STAGE_PLANE) pwi_tcp_plane_do_without(link);
}

/* The acceptor. */

static void receive_guest(struct tcp_net *net, size_t index, struct tcp_link *link) {
  struct pwi_guest guest = net->guests[index];
  bool is_right = is_genuine(link, guest.card, &guest.process);
  if (!is_right) { /* possibly not the peer: the link continues to wait */
    send_away(net, index);
    return;
  }
  link->has_met = true;
  if (!is_compatible(link, guest.card) || (!link->port && pwi_plane_port_open(net->plane, &link->port) != PAWL_OK) ||
      show_card(link, guest.socket) != PAWL_OK) {
    send_away(net, index);
    pwi_tcp_plane_fails(link);
    return;
  }
  net->guests[index] = (struct pwi_guest){.socket = -1, .process = PWI_NO_PROCESS};
  net->guest_count--;
  have_met(link, guest.card, guest.card_size, guest.process, guest.socket);
  pwi_free(guest.card);
}

static bool expects_guest(const struct tcp_link *link) {
  return link->accepted && !link->is_failed && link->stage == STAGE_PLANE && !link->plane && !link->has_met;
}

/* A guest that comes before the offer of the link was read waits for it. */
static void look_at(struct tcp_net *net, size_t index) {
  struct pwi_guest *guest = &net->guests[index];
  struct tcp_link *link = pwi_tcp_find_link(net, (struct pwi_link){pwi_get_u64(guest->card + 8)});
  if (link && expects_guest(link))
    receive_guest(net, index, link);
  else if (!link || !link->accepted || link->is_failed || link->stage > STAGE_OFFER)
    send_away(net, index);
}

void pwi_tcp_door_guest(struct tcp_net *net, size_t index) {
  uint8_t card[CARD_MAX];
  bool is_wrong;
  if (index >= PWI_GUESTS_MAX || net->guests[index].socket < 0) return;
  struct pwi_guest *guest = &net->guests[index];
  size_t size = read_card(guest->socket, card, &is_wrong);
  if (size == 0 && !is_wrong) return;
  if (size > 0 && !guest->card && (guest->card = pwi_alloc(size))) {
    memcpy(guest->card, card, size);
    guest->card_size = size;
    look_at(net, index);
  } else {
    send_away(net, index);
  }
}

void pwi_tcp_meet_wait(struct tcp_link *link) {
  struct tcp_net *net = link->net;
  if (make_proofs(link, net->door_name, link->id.id) != PAWL_OK) {
    pwi_tcp_plane_fails(link);
    return;
  }
  for (size_t i = 0; net->guest_count > 0 && i < PWI_GUESTS_MAX; i++)
    if (net->guests[i].card && pwi_get_u64(net->guests[i].card + 8) == link->id.id && expects_guest(link))
      look_at(net, i);
}

void pwi_tcp_meet_end(struct tcp_link *link) {
  if (link->channel >= 0) close(link->channel);
  link->channel = -1;
  pwi_process_close(&link->process);
}
