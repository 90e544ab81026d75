#include "host/etcd/etcd_text.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "net/address.h"

#define PREFIX "pawl"
#define SECOND INT64_C(1000000000)

/* --- addresses ------------------------------------------------------------------------------------------ */

static pawl_status read_endpoint(const char *word, bool is_secure, char *endpoint_out, size_t size) {
  char full[PWI_NET_ADDRESS_MAX];
  struct pwi_address address;
  const char *bracket = strrchr(word, ']');
  bool has_port = strchr(bracket ? bracket : word, ':') != NULL;
  int length = snprintf(full, sizeof full, has_port ? "%s" : "%s:2379", word);
  if (length < 0 || (size_t)length >= sizeof full) return PAWL_INVALID;
  if (strncmp(full, "tcp:", 4) == 0 || strncmp(full, "unix:", 5) == 0) return PAWL_INVALID;
  if (pwi_address_parse(full, &address) || address.kind != PWI_ADDRESS_TCP) return PAWL_INVALID;
  if (address.port_first == 0 || address.port_first != address.port_last) return PAWL_INVALID;
  /* the host is inserted into a URL, and must be a host there, too */
  for (const char *at = address.host; *at; at++)
    if (*at <= ' ' || *at > '~' || strchr("@#?%\\\"'<>", *at)) return PAWL_INVALID;
  length = snprintf(endpoint_out, size, "%s%s", is_secure ? "https://" : "http://", full);
  return length > 0 && (size_t)length < size ? PAWL_OK : PAWL_INVALID;
}

static pawl_status read_endpoints(const char *list, size_t size, struct pwi_etcd_place *place) {
  char word[PWI_NET_ADDRESS_MAX];
  for (const char *at = list, *end = list + size; at <= end;) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    size_t length = (size_t)((comma ? comma : end) - at);
    if (place->count == PWI_ETCD_ENDPOINTS || length == 0 || length >= sizeof word) return PAWL_INVALID;
    memcpy(word, at, length);
    word[length] = '\0';
    pawl_status status =
        read_endpoint(word, place->is_secure, place->endpoints[place->count], sizeof place->endpoints[0]);
    if (status) return status;
    place->count++;
    at += length + 1;
  }
  return PAWL_OK;
}

static pawl_status read_prefix(const char *text, struct pwi_etcd_place *place) {
  while (*text == '/') text++;
  size_t size = strlen(text);
  while (size > 0 && text[size - 1] == '/') size--;
  if (size == 0) {
    memcpy(place->prefix, PREFIX, sizeof PREFIX);
    return PAWL_OK;
  }
  if (size > PWI_PREFIX_MAX) return PAWL_INVALID;
  for (size_t i = 0; i < size; i++)
    if (text[i] <= ' ' || text[i] > '~') return PAWL_INVALID;
  memcpy(place->prefix, text, size);
  place->prefix[size] = '\0';
  return PAWL_OK;
}

pawl_status pwi_etcd_place_parse(const char *text, struct pwi_etcd_place *place_out) {
  static const char plain[] = "etcd://", secure[] = "etcds://";
  struct pwi_etcd_place place = {.is_secure = strncmp(text, secure, sizeof secure - 1) == 0};
  if (!place.is_secure && strncmp(text, plain, sizeof plain - 1) != 0) return PAWL_INVALID;
  const char *list = text + (place.is_secure ? sizeof secure : sizeof plain) - 1;
  const char *slash = strchr(list, '/');
  size_t size = slash ? (size_t)(slash - list) : strlen(list);
  pawl_status status = read_endpoints(list, size, &place);
  if (!status) status = read_prefix(slash ? slash : "", &place);
  if (!status) *place_out = place;
  return status;
}

/* --- base64 --------------------------------------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pwi_base64_write(struct pwi_text *text, const void *bytes, size_t size) {
  const unsigned char *from = bytes;
  char block[1024];
  size_t filled = 0;
  for (size_t i = 0; i < size; i += 3) {
    size_t left = size - i < 3 ? size - i : 3;
    uint32_t word = (uint32_t)from[i] << 16;
    if (left > 1) word |= (uint32_t)from[i + 1] << 8;
    if (left > 2) word |= from[i + 2];
    block[filled++] = alphabet[word >> 18];
    block[filled++] = alphabet[word >> 12 & 63];
    block[filled++] = left > 1 ? alphabet[word >> 6 & 63] : '=';
    block[filled++] = left > 2 ? alphabet[word & 63] : '=';
    if (filled < sizeof block) continue;
    pwi_text_add_bytes(text, block, filled);
    filled = 0;
  }
  pwi_text_add_bytes(text, block, filled);
}

static int value_of(char control) {
  if (control >= 'A' && control <= 'Z') return control - 'A';
  if (control >= 'a' && control <= 'z') return control - 'a' + 26;
  if (control >= '0' && control <= '9') return control - '0' + 52;
  return control == '+' ? 62 : control == '/' ? 63 : -1;
}

/* Decodes four characters, of which the last two may be padding. Returns the number of bytes; 0 if they
 * are invalid. */
static size_t read_four(const char *text, unsigned char bytes[3]) {
  size_t padding = text[3] == '=' ? (text[2] == '=' ? 2 : 1) : 0;
  uint32_t word = 0;
  for (size_t i = 0; i < 4; i++) {
    int value = i < 4 - padding ? value_of(text[i]) : 0;
    if (value < 0) return 0;
    word = word << 6 | (uint32_t)value;
  }
  /* only the canonical form is accepted */
  if (padding > 0 && (word & (padding == 2 ? 0xffffu : 0xffu)) != 0) return 0;
  bytes[0] = (unsigned char)(word >> 16);
  bytes[1] = (unsigned char)(word >> 8);
  bytes[2] = (unsigned char)word;
  return 3 - padding;
}

pawl_status pwi_base64_read(const char *text, size_t length, void *bytes_out, size_t *size_out) {
  unsigned char *to = bytes_out, three[3];
  size_t size = 0;
  if (length % 4 != 0) return PAWL_CORRUPT;
  for (size_t i = 0; i < length; i += 4) {
    size_t count = read_four(text + i, three);
    if (count == 0 || (count < 3 && i + 4 < length)) return PAWL_CORRUPT;
    memcpy(to + size, three, count);
    size += count;
  }
  *size_out = size;
  return PAWL_OK;
}

/* --- requests ------------------------------------------------------------------------------------------- */

const char *pwi_etcd_path(enum pwi_etcd_ask ask) {
  static const char *const paths[] = {"/v3/kv/txn", "/v3/lease/grant", "/v3/lease/keepalive", "/v3/lease/revoke"};
  return paths[ask];
}

static void write_bytes(struct pwi_text *text, const char *name, const void *bytes, size_t size) {
  pwi_text_print(text, "\"%s\":\"", name);
  pwi_base64_write(text, bytes, size);
  pwi_text_add(text, "\"");
}

static void write_number(struct pwi_text *text, const char *name, uint64_t number) {
  if (number != 0) pwi_text_print(text, ",\"%s\":\"%llu\"", name, (unsigned long long)number);
}

static void write_test(struct pwi_text *text, const struct pwi_meta_test *test) {
  bool is_value = test->field == PWI_META_VALUE;
  pwi_text_print(text, "{\"result\":\"EQUAL\",\"target\":\"%s\",", is_value ? "VALUE" : "CREATE");
  write_bytes(text, "key", test->key, strlen(test->key));
  pwi_text_add(text, ",");
  if (is_value)
    write_bytes(text, "value", test->value, test->size);
  else
    pwi_text_print(text, "\"create_revision\":\"%llu\"", (unsigned long long)test->created);
  pwi_text_add(text, "}");
}

static void write_step(struct pwi_text *text, const struct pwi_meta_step *step) {
  static const char *const acts[] = {"request_range", "request_put", "request_delete_range"};
  pwi_text_print(text, "{\"%s\":{", acts[step->act]);
  write_bytes(text, "key", step->key, strlen(step->key));
  if (step->act == PWI_META_PUT) {
    pwi_text_add(text, ",");
    write_bytes(text, "value", step->value, step->size);
    write_number(text, "lease", step->lease);
  } else {
    if (step->end) pwi_text_add(text, ",");
    if (step->end) write_bytes(text, "range_end", step->end, strlen(step->end));
    write_number(text, "limit", step->limit);
    write_number(text, "revision", step->revision);
  }
  pwi_text_add(text, "}}");
}

static void write_steps(struct pwi_text *text, const char *name, const struct pwi_meta_step *steps, size_t count) {
  pwi_text_print(text, ",\"%s\":[", name);
  for (size_t i = 0; i < count; i++) {
    if (i > 0) pwi_text_add(text, ",");
    write_step(text, &steps[i]);
  }
  pwi_text_add(text, "]");
}

void pwi_etcd_write_txn(struct pwi_text *text, const struct pwi_meta_transaction *transaction) {
  pwi_text_add(text, "{\"compare\":[");
  for (size_t i = 0; i < transaction->test_count; i++) {
    if (i > 0) pwi_text_add(text, ",");
    write_test(text, &transaction->tests[i]);
  }
  pwi_text_add(text, "]");
  write_steps(text, "success", transaction->steps, transaction->step_count);
  write_steps(text, "failure", transaction->others, transaction->other_count);
  pwi_text_add(text, "}");
}

void pwi_etcd_write_grant(struct pwi_text *text, int64_t ttl_ns) {
  pwi_text_print(text, "{\"TTL\":\"%lld\"}", (long long)((ttl_ns + SECOND - 1) / SECOND));
}

void pwi_etcd_write_lease(struct pwi_text *text, uint64_t lease) {
  pwi_text_print(text, "{\"ID\":\"%llu\"}", (unsigned long long)lease);
}
