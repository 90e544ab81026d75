/* The meeting protocol of data planes, written by hand. */
#include "visitor.h"

#include <errno.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "base/bytes.h"
#include "net/tcp/world.h"

uint32_t offer_flags(const struct offer *offer) { return pwi_get_u32(offer->fields + 4); }
uint64_t offer_link(const struct offer *offer) { return pwi_get_u64(offer->fields + 40); }

void visitor_hear_offer(struct raw *raw, struct offer *offer_out) {
  struct pwi_frame frame = {0};
  kit_must(raw_open(raw, PWI_FRAME_VERSION, PWI_FRAME_VERSION), "open a link");
  kit_must(raw_frame(raw, PWI_FRAME_HELLO, raw->challenge, 3, "raw", 3), "say hello");
  for (int i = 0; i < 2; i++)
    kit_must(raw_next(raw, &frame, offer_out->fields, offer_out->body, OFFER_MAX), "hear hello and offer");
  kit_must(frame.kind == PWI_FRAME_PLANE, "hear an offer");
  offer_out->size = (size_t)frame.body_size;
}

void visitor_say_offer(struct raw *raw, const uint8_t *nonce) {
  uint8_t fields[48] = {0};
  pwi_put_u32(fields, 1);
  pwi_put_u32(fields + 4, 1);
  memcpy(fields + 8, nonce, 16);
  kit_must(raw_frame(raw, PWI_FRAME_PLANE, fields, 0, NULL, 0), "say an offer");
}

void visitor_proof(struct raw *raw, const struct offer *theirs, const uint8_t *nonce, uint8_t proof_out[PROOF_SIZE]) {
  static const char label[] = "EXPORTER-pawl-data-plane";
  uint8_t text[96] = {0};
  if (raw->ssl)
    kit_must(SSL_export_keying_material(raw->ssl, text, 32, label, sizeof label - 1, NULL, 0, 0) == 1, "export a key");
  memcpy(text + 32, nonce, 16);
  memcpy(text + 48, theirs->fields + 8, 32); /* its nonce and its door */
  pwi_put_u64(text + 80, offer_link(theirs));
  pwi_put_u64(text + 88, 1);
  SHA256(text, sizeof text, proof_out);
}

size_t visitor_card(uint8_t *card, const struct offer *theirs, const uint8_t *proof, uint64_t place,
                    const uint8_t host[16], const void *address, size_t address_size) {
  memcpy(card, "pawlcard", 8);
  pwi_put_u64(card + 8, offer_link(theirs));
  memcpy(card + 16, proof, PROOF_SIZE);
  memcpy(card + 48, host, 16);
  pwi_put_u64(card + 64, place);
  pwi_put_u64(card + 72, 12345);
  if (address_size) memcpy(card + CARD_HEAD, address, address_size);
  return CARD_HEAD + address_size;
}

void visitor_host(uint8_t host_out[16]) { pwi_tcp_identify_host(host_out); }

int visitor_knock(const struct offer *theirs) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "pawl-plane-");
  for (size_t i = 0; i < 16; i++) size += sprintf(address.sun_path + 1 + size, "%02x", theirs->fields[24 + i]);
  int handle = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  struct timeval limit = {KIT_HANG_MS / 1000, 0};
  setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
  if (connect(handle, (struct sockaddr *)&address, length) == 0) return handle;
  close(handle);
  return -1;
}

bool visitor_was_sent_away(int socket) {
  char bytes[8192];
  ssize_t moved = recv(socket, bytes, sizeof bytes, 0);
  return moved == 0 || (moved < 0 && errno == ECONNRESET);
}
