/* Encoding, decoding and negotiation of hellos; hello.h shows the frame. */
#include "wire/hello.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <pawl/version.h>

#include "base/bytes.h"

#define AT_LOWEST 4
#define AT_HIGHEST 5
#define AT_SIZE 6
#define FRAME 8      /* bytes before the fields */
#define FIELD_HEAD 4 /* bytes before the data of a field */

/* Tags of version 1. Those after LAST_TAG were added later, and may be missing. */
enum { SOFTWARE = 1, CLUSTER, NODE, INCARNATION, ROLE, FEATURES, HOST, LAST_TAG = HOST, PRIORITY };

#define ALL_FIELDS (((1u << LAST_TAG) - 1) << 1)

static_assert(FRAME + PRIORITY * FIELD_HEAD + PWI_HELLO_SOFTWARE_MAX + 4 * sizeof(uint64_t) + 2 + PWI_HELLO_HOST_MAX <=
                  PWI_HELLO_MAX,
              "every hello fits, with room for the fields of later versions");

const char *pwi_hello_role_text(uint8_t role) {
  static const char *const names[] = {
      [PWI_ROLE_MANAGER] = "manager",     [PWI_ROLE_SERVER] = "server", [PWI_ROLE_CLIENT] = "client",
      [PWI_ROLE_SCHEDULER] = "scheduler", [PWI_ROLE_RELAY] = "relay",   [PWI_ROLE_PEER] = "peer"};
  return role < sizeof names / sizeof *names && names[role] ? names[role] : names[PWI_ROLE_CLIENT];
}

void pwi_hello_init(struct pwi_hello *hello) {
  *hello = (struct pwi_hello){.lowest = PWI_PROTOCOL_LOWEST, .highest = PWI_PROTOCOL_HIGHEST};
  snprintf(hello->software, sizeof hello->software, "%d.%d.%d", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR,
           PAWL_VERSION_PATCH);
}

/* Spaces are refused too: they would end the value in a line of key=value pairs. */
static bool is_printable(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    if (text[i] <= ' ' || text[i] > '~') return false;
  }
  return true;
}

static bool versions_are_good(const struct pwi_hello *hello) {
  return hello->lowest > 0 && hello->lowest <= hello->highest;
}

/* --- encoding ------------------------------------------------------------------------------------------- */

struct writer {
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size;
};

static void put_field(struct writer *writer, uint16_t tag, const void *data, size_t length) {
  uint8_t *to = writer->bytes + writer->size;
  pwi_put_u16(to, tag);
  pwi_put_u16(to + 2, (uint16_t)length);
  memcpy(to + FIELD_HEAD, data, length);
  writer->size += FIELD_HEAD + length;
}

static void put_number(struct writer *writer, uint16_t tag, uint64_t value) {
  uint8_t bytes[sizeof value];
  pwi_put_u64(bytes, value);
  put_field(writer, tag, bytes, sizeof bytes);
}

/* False if the string is not terminated within its array or is not printable. */
static bool text_is_good(const char *text, size_t max) {
  size_t length = strnlen(text, max + 1);
  return length <= max && is_printable(text, length);
}

static void put_frame(struct writer *writer, const struct pwi_hello *hello) {
  pwi_put_u32(writer->bytes, PWI_HELLO_MAGIC);
  writer->bytes[AT_LOWEST] = hello->lowest;
  writer->bytes[AT_HIGHEST] = hello->highest;
  pwi_put_u16(writer->bytes + AT_SIZE, (uint16_t)writer->size);
}

pawl_status pwi_hello_encode(const struct pwi_hello *hello, void *buffer, size_t capacity, size_t *size_out) {
  struct writer writer = {.size = FRAME};
  if (!versions_are_good(hello) || hello->role == 0) return PAWL_INVALID;
  if (!text_is_good(hello->software, PWI_HELLO_SOFTWARE_MAX)) return PAWL_INVALID;
  if (!text_is_good(hello->host, PWI_HELLO_HOST_MAX)) return PAWL_INVALID;
  put_field(&writer, SOFTWARE, hello->software, strlen(hello->software));
  put_number(&writer, CLUSTER, hello->cluster);
  put_number(&writer, NODE, hello->node);
  put_number(&writer, INCARNATION, hello->incarnation);
  put_field(&writer, ROLE, &hello->role, 1);
  put_number(&writer, FEATURES, hello->features);
  put_field(&writer, HOST, hello->host, strlen(hello->host));
  if (hello->priority != 0) put_field(&writer, PRIORITY, &hello->priority, 1);
  put_frame(&writer, hello);
  if (writer.size > capacity) return PAWL_TOO_LARGE;
  memcpy(buffer, writer.bytes, writer.size);
  *size_out = writer.size;
  return PAWL_OK;
}

/* --- decoding ------------------------------------------------------------------------------------------- */

struct field {
  unsigned tag;
  size_t length;
  const uint8_t *data;
};

static bool get_number(const struct field *field, uint64_t *value) {
  if (field->length != sizeof *value) return false;
  *value = pwi_get_u64(field->data);
  return true;
}

static bool get_text(const struct field *field, char *text, size_t max) {
  if (field->length > max || !is_printable((const char *)field->data, field->length)) return false;
  memcpy(text, field->data, field->length);
  text[field->length] = 0;
  return true;
}

static bool get_byte(const struct field *field, uint8_t *byte) {
  if (field->length != 1 || field->data[0] == 0) return false;
  *byte = field->data[0];
  return true;
}

static bool get_field(const struct field *field, struct pwi_hello *hello) {
  switch (field->tag) {
  case SOFTWARE:
    return get_text(field, hello->software, PWI_HELLO_SOFTWARE_MAX);
  case CLUSTER:
    return get_number(field, &hello->cluster);
  case NODE:
    return get_number(field, &hello->node);
  case INCARNATION:
    return get_number(field, &hello->incarnation);
  case ROLE:
    return get_byte(field, &hello->role);
  case FEATURES:
    return get_number(field, &hello->features);
  case HOST:
    return get_text(field, hello->host, PWI_HELLO_HOST_MAX);
  case PRIORITY:
    return get_byte(field, &hello->priority);
  default:
    return true; /* of a later version */
  }
}

/* Tags ascend, so that each field occurs at most once; all fields of version 1 must be present. */
static pawl_status get_fields(const uint8_t *at, size_t left, struct pwi_hello *hello) {
  unsigned found = 0, last = 0;
  while (left > 0) {
    if (left < FIELD_HEAD) return PAWL_TRUNCATED;
    struct field field = {.tag = pwi_get_u16(at), .length = pwi_get_u16(at + 2), .data = at + FIELD_HEAD};
    if (field.tag <= last) return PAWL_CORRUPT;
    if (field.length > left - FIELD_HEAD) return PAWL_TRUNCATED;
    if (!get_field(&field, hello)) return PAWL_CORRUPT;
    if (field.tag <= LAST_TAG) found |= 1u << field.tag;
    last = field.tag;
    at += FIELD_HEAD + field.length;
    left -= FIELD_HEAD + field.length;
  }
  return found == ALL_FIELDS ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_hello_decode(const void *data, size_t size, struct pwi_hello *hello_out) {
  const uint8_t *bytes = data;
  struct pwi_hello hello = {0};
  if (size > PWI_HELLO_MAX) return PAWL_TOO_LARGE;
  if (size < sizeof(uint32_t)) return PAWL_TRUNCATED;
  if (pwi_get_u32(bytes) != PWI_HELLO_MAGIC) return PAWL_LINK_PROTOCOL;
  if (size < FRAME || size < pwi_get_u16(bytes + AT_SIZE)) return PAWL_TRUNCATED;
  if (size > pwi_get_u16(bytes + AT_SIZE)) return PAWL_CORRUPT;
  hello.lowest = bytes[AT_LOWEST];
  hello.highest = bytes[AT_HIGHEST];
  if (!versions_are_good(&hello)) return PAWL_CORRUPT;
  pawl_status status = get_fields(bytes + FRAME, size - FRAME, &hello);
  if (status == PAWL_OK) *hello_out = hello;
  return status;
}

/* --- negotiation ---------------------------------------------------------------------------------------- */

pawl_status pwi_hello_negotiate(const struct pwi_hello *ours, const struct pwi_hello *theirs, uint8_t *version_out,
                                uint64_t *features_out) {
  uint8_t highest = ours->highest < theirs->highest ? ours->highest : theirs->highest;
  uint8_t lowest = ours->lowest > theirs->lowest ? ours->lowest : theirs->lowest;
  if (highest < lowest) return PAWL_LINK_VERSION;
  *version_out = highest;
  *features_out = ours->features & theirs->features;
  return PAWL_OK;
}

void pwi_hello_mismatch(const struct pwi_hello *ours, const struct pwi_hello *theirs, char *text, size_t size) {
  snprintf(text, size, "our_versions=%u..%u our_pawl=%s their_versions=%u..%u their_pawl=%s update=%s", ours->lowest,
           ours->highest, ours->software, theirs->lowest, theirs->highest, theirs->software,
           ours->highest < theirs->lowest ? "us" : "them");
}
