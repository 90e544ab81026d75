/* Parses etcd's answers (host/etcd/etcd_text.h). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "host/etcd/etcd_text.h"

#define SECOND INT64_C(1000000000)
#define TTL_MAX 86400 /* seconds; we never ask for more */
#define HTTP_GOOD 200

/* Codes of gRPC. */
enum {
  GRPC_INVALID = 3,
  GRPC_NOT_FOUND = 5,
  GRPC_PERMISSION = 7,
  GRPC_EXHAUSTED = 8,
  GRPC_PRECONDITION = 9,
  GRPC_OUT_OF_RANGE = 11,
  GRPC_UNIMPLEMENTED = 12,
  GRPC_UNAUTHENTICATED = 16,
};

/* --- numbers -------------------------------------------------------------------------------------------- */

/* A whole number, as a string of digits or as a JSON number; absent: 0. False for anything else. */
static bool read_number(const json_t *object, const char *name, uint64_t *number_out) {
  const json_t *item = json_object_get(object, name);
  uint64_t number = 0;
  if (item && json_is_integer(item)) {
    json_int_t value = json_integer_value(item);
    if (value < 0) return false;
    *number_out = (uint64_t)value;
    return true;
  }
  const char *text = item ? json_string_value(item) : "0";
  size_t length = item ? json_string_length(item) : 1;
  if (!text || length == 0) return false;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    if (!pwi_mul_u64(number, 10, &number) || !pwi_add_u64(number, (uint64_t)(text[i] - '0'), &number)) return false;
  }
  *number_out = number;
  return true;
}

/* --- errors --------------------------------------------------------------------------------------------- */

static void say(struct pwi_etcd_reply *reply, const char *message) {
  snprintf(reply->message, sizeof reply->message, "%s", message);
  for (char *at = reply->message; *at; at++)
    if (*at < ' ' || *at > '~') *at = '?';
}

static void fail(struct pwi_etcd_reply *reply, pawl_status status, bool is_passing) {
  reply->status = status;
  reply->is_passing = is_passing;
}

/* etcd reports a request that is too large under two codes. */
static void read_code(struct pwi_etcd_reply *reply, uint64_t code, const char *message) {
  bool is_large = strstr(message, "too large") || strstr(message, "larger than max");
  bool is_user = strstr(message, "user name") || strstr(message, "auth");
  if (is_large)
    fail(reply, PAWL_TOO_LARGE, false);
  else if (code == GRPC_PERMISSION || code == GRPC_UNAUTHENTICATED || is_user)
    fail(reply, PAWL_FORBIDDEN, false);
  else if (code == GRPC_NOT_FOUND || code == GRPC_OUT_OF_RANGE)
    fail(reply, PAWL_NOT_FOUND, false);
  else if (code == GRPC_INVALID || code == GRPC_PRECONDITION || code == GRPC_UNIMPLEMENTED)
    fail(reply, PAWL_INVALID, false);
  else if (code == GRPC_EXHAUSTED && strstr(message, "space"))
    fail(reply, PAWL_NO_SPACE, true);
  else
    fail(reply, PAWL_LINK_UNREACHABLE, true); /* the member has no leader, is busy, or is shutting down */
}

/* True if the object is an error. */
static bool read_error(const json_t *root, struct pwi_etcd_reply *reply) {
  const json_t *error = json_object_get(root, "error");
  const json_t *from = json_is_object(error) ? error : root;
  const char *message = json_string_value(json_object_get(from, "message"));
  uint64_t code = 0;
  bool has_code = json_object_get(from, "code") || json_object_get(from, "grpc_code");
  if (!error && !has_code) return false;
  if (!message && error) message = json_string_value(error);
  if (!read_number(from, json_object_get(from, "grpc_code") ? "grpc_code" : "code", &code)) code = 0;
  say(reply, message ? message : "");
  read_code(reply, code, message ? message : "");
  return true;
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

static const json_t *kvs_of(const json_t *response) {
  return json_object_get(json_object_get(response, "response_range"), "kvs");
}

/* The number of pairs, and an upper bound for the bytes of their keys and values. False if the answer is
 * malformed. */
static bool measure(const json_t *responses, size_t *count_out, size_t *size_out) {
  size_t i, j, count = 0, size = 0;
  json_t *response, *pair;
  json_array_foreach(responses, i, response){json_array_foreach(kvs_of(response), j, pair){
      const json_t *key = json_object_get(pair, "key"), *value = json_object_get(pair, "value");
  if (!json_is_string(key) || (value && !json_is_string(value))) return false;
  if (!pwi_add_size(size, json_string_length(key) + 1, &size)) return false;
  if (value && !pwi_add_size(size, json_string_length(value), &size)) return false;
  count++;
}
}
*count_out = count;
*size_out = size;
return true;
}

/* Decodes to `*at` and advances it. */
static bool read_bytes(const json_t *text, char **at, const char **bytes_out, size_t *size_out) {
  size_t size = 0;
  if (text && pwi_base64_read(json_string_value(text), json_string_length(text), *at, &size)) return false;
  *bytes_out = *at;
  *size_out = size;
  *at += size;
  return true;
}

static bool read_pair(const json_t *object, char **at, struct pwi_meta_pair *pair_out) {
  size_t key_size;
  const char *value;
  if (!read_bytes(json_object_get(object, "key"), at, &pair_out->key, &key_size)) return false;
  if (key_size == 0 || key_size >= PWI_META_KEY_MAX || memchr(pair_out->key, '\0', key_size)) return false;
  *(*at)++ = '\0';
  if (!read_bytes(json_object_get(object, "value"), at, &value, &pair_out->size)) return false;
  pair_out->value = value;
  return read_number(object, "create_revision", &pair_out->created) && pair_out->created != 0 &&
         read_number(object, "lease", &pair_out->lease);
}

static pawl_status read_pairs(const json_t *responses, struct pwi_etcd_reply *reply) {
  size_t i, j, count, size;
  json_t *response, *object;
  if (!measure(responses, &count, &size)) return PAWL_CORRUPT;
  reply->pairs = pwi_alloc_zero(count, sizeof *reply->pairs);
  reply->memory = pwi_alloc(size);
  if (!reply->pairs || !reply->memory) return PAWL_NO_MEMORY;
  char *at = reply->memory;
  count = 0;
  json_array_foreach(responses, i, response) {
    if (json_is_true(json_object_get(json_object_get(response, "response_range"), "more"))) reply->answer.more = true;
    json_array_foreach(kvs_of(response), j,
                       object) if (!read_pair(object, &at, &reply->pairs[count++])) return PAWL_CORRUPT;
  }
  reply->answer.pairs = reply->pairs;
  reply->answer.pair_count = count;
  return PAWL_OK;
}

/* --- answers -------------------------------------------------------------------------------------------- */

static pawl_status read_txn(const json_t *root, struct pwi_etcd_reply *reply) {
  const json_t *header = json_object_get(root, "header"), *responses = json_object_get(root, "responses");
  if (!json_is_object(header) || (responses && !json_is_array(responses))) return PAWL_CORRUPT;
  if (!read_number(header, "revision", &reply->answer.revision) || reply->answer.revision == 0) return PAWL_CORRUPT;
  reply->answer.held = json_is_true(json_object_get(root, "succeeded"));
  return read_pairs(responses, reply);
}

static pawl_status read_lease(const json_t *root, bool is_new, struct pwi_etcd_reply *reply) {
  uint64_t seconds;
  if (!read_number(root, "ID", &reply->answer.lease) || !read_number(root, "TTL", &seconds)) return PAWL_CORRUPT;
  if (reply->answer.lease == 0 || seconds > TTL_MAX) return PAWL_CORRUPT;
  if (seconds == 0) return is_new ? PAWL_CORRUPT : PAWL_NOT_FOUND;
  reply->answer.ttl_ns = (int64_t)seconds * SECOND;
  return PAWL_OK;
}

static pawl_status read_good(enum pwi_etcd_ask ask, const json_t *root, struct pwi_etcd_reply *reply) {
  if (ask == PWI_ETCD_TXN) return read_txn(root, reply);
  if (ask == PWI_ETCD_GRANT) return read_lease(root, true, reply);
  if (ask == PWI_ETCD_RENEW) return read_lease(json_object_get(root, "result"), false, reply);
  return json_is_object(json_object_get(root, "header")) ? PAWL_OK : PAWL_CORRUPT;
}

void pwi_etcd_read(enum pwi_etcd_ask ask, long code, const char *body, size_t size, struct pwi_etcd_reply *reply_out) {
  json_error_t error;
  struct pwi_etcd_reply reply = {0};
  json_t *root = json_loadb(body, size, 0, &error);
  if (!json_is_object(root)) {
    say(&reply, code == HTTP_GOOD ? "the answer is not JSON" : "the endpoint is not etcd, or has no JSON gateway");
    fail(&reply, PAWL_LINK_PROTOCOL, true);
  } else if (!read_error(root, &reply)) {
    reply.status = code == HTTP_GOOD ? read_good(ask, root, &reply) : PAWL_LINK_PROTOCOL;
    reply.is_passing = code != HTTP_GOOD;
    if (reply.status == PAWL_CORRUPT) say(&reply, "the answer is malformed");
  }
  json_decref(root);
  if (reply.status) {
    reply.answer = (struct pwi_meta_answer){0};
    pwi_free(reply.pairs);
    pwi_free(reply.memory);
    reply.pairs = NULL;
    reply.memory = NULL;
  }
  *reply_out = reply;
}

void pwi_etcd_reply_fini(struct pwi_etcd_reply *reply) {
  pwi_free(reply->pairs);
  pwi_free(reply->memory);
  *reply = (struct pwi_etcd_reply){0};
}
