/* The two roles of the demonstrations. They use nothing but the net and the files they are given. */
#include "cli/demo/roles.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"

#define TICK_NS INT64_C(10000000) /* how often a client checks its progress */
#define LOG "log"

enum { SAY_ASK = 1, SAY_WRITE, SAY_HAVE };

/* Offsets in a message header and in a record of the log. */
enum { HEAD_WHAT = 0, HEAD_CLIENT = 8, HEAD_NUMBER = 16, HEAD_VALUE = 24 };
enum { RECORD_CLIENT = 0, RECORD_NUMBER = 8, RECORD_VALUE = 16, RECORD_CHECK = 24, RECORD_SIZE = 32 };

static pawl_status say(struct pwi_net *net, struct pwi_link link, uint8_t what, uint64_t client, uint64_t number) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {what};
  pwi_put_u64(head + HEAD_CLIENT, client);
  pwi_put_u64(head + HEAD_NUMBER, number);
  pwi_put_u64(head + HEAD_VALUE, pwi_hash(head, HEAD_VALUE, 0));
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head};
  return pwi_net_send(net, link, &send);
}

/* --- the store ---------------------------------------------------------------------------------------------------- */

struct pwi_demo_store {
  struct pwi_net *net;
  struct pwi_file *log;
  uint64_t end; /* of the log */
  uint64_t has[PWI_DEMO_CLIENTS];
  uint64_t duplicates;
  bool careless;
};

uint64_t pwi_demo_store_has(const struct pwi_demo_store *store, uint64_t client) { return store->has[client]; }
uint64_t pwi_demo_store_duplicates(const struct pwi_demo_store *store) { return store->duplicates; }

static pawl_status append(struct pwi_demo_store *store, uint64_t client, uint64_t number, uint64_t value) {
  uint8_t record[RECORD_SIZE];
  pwi_put_u64(record + RECORD_CLIENT, client);
  pwi_put_u64(record + RECORD_NUMBER, number);
  pwi_put_u64(record + RECORD_VALUE, value);
  pwi_put_u64(record + RECORD_CHECK, pwi_hash(record, RECORD_CHECK, 0));
  pawl_status status = pwi_file_write(store->log, store->end, record, sizeof record);
  if (!status) status = pwi_file_sync(store->log);
  if (status) return status;
  store->end += sizeof record;
  store->has[client] = number;
  return PAWL_OK;
}

/* Reads the log up to the first incomplete record. That record was being written when the store died, and was
 * not acknowledged. */
static pawl_status read_log(struct pwi_demo_store *store) {
  uint8_t record[RECORD_SIZE];
  size_t size;
  for (;; store->end += RECORD_SIZE) {
    pawl_status status = pwi_file_read(store->log, store->end, record, sizeof record, &size);
    if (status) return status;
    uint64_t client = pwi_get_u64(record + RECORD_CLIENT);
    if (size < RECORD_SIZE || pwi_get_u64(record + RECORD_CHECK) != pwi_hash(record, RECORD_CHECK, 0)) break;
    if (client >= PWI_DEMO_CLIENTS) return PAWL_CORRUPT;
    store->has[client] = pwi_get_u64(record + RECORD_NUMBER);
  }
  return pwi_file_truncate(store->log, store->end);
}

static pawl_status store_open(struct pwi_demo_store *store, struct pwi_files *files) {
  pawl_status status = pwi_files_open(files, LOG, PWI_OPEN_WRITE | PWI_OPEN_CREATE, &store->log);
  if (!status) status = pwi_files_sync_directory(files, ".");
  if (!status) status = read_log(store);
  return status ? status : pwi_net_listen(store->net, PWI_DEMO_STORE_ADDRESS);
}

pawl_status pwi_demo_store_create(struct pwi_net *net, struct pwi_files *files, bool careless,
                                  struct pwi_demo_store **store_out) {
  struct pwi_demo_store *store = pwi_alloc_zero(1, sizeof *store);
  if (!store) return PAWL_NO_MEMORY;
  store->net = net;
  store->careless = careless;
  pawl_status status = store_open(store, files);
  if (status) {
    pwi_demo_store_destroy(store);
    return status;
  }
  *store_out = store;
  return PAWL_OK;
}

void pwi_demo_store_destroy(struct pwi_demo_store *store) { pwi_free(store); }

/* The client repeats a request without an answer, so the status of sending an answer is ignored. */
static void answer(struct pwi_demo_store *store, struct pwi_link link, uint64_t client, uint64_t number) {
  pawl_status status = say(store->net, link, SAY_HAVE, client, number);
  (void)status;
}

static struct pwi_receive store_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct pwi_demo_store *store = self;
  const struct pwi_receive drop = {.how = PWI_RECEIVE_DROP}, refuse = {.how = PWI_RECEIVE_REFUSE};
  uint8_t what = message->head[HEAD_WHAT];
  uint64_t client = pwi_get_u64(message->head + HEAD_CLIENT), number = pwi_get_u64(message->head + HEAD_NUMBER);
  if ((what != SAY_ASK && what != SAY_WRITE) || client >= PWI_DEMO_CLIENTS) return refuse;
  if (what == SAY_WRITE && number == store->has[client] + 1) {
    if (store->careless) answer(store, link, client, number);
    if (append(store, client, number, pwi_get_u64(message->head + HEAD_VALUE))) return refuse;
  } else if (what == SAY_WRITE && number <= store->has[client]) {
    store->duplicates++;
  }
  answer(store, link, client, store->has[client]);
  return drop;
}

const struct pwi_actor pwi_demo_store_actor = {.message = store_message};

/* --- the clients -------------------------------------------------------------------------------------------------- */

struct pwi_demo_client {
  struct pwi_net *net;
  struct pwi_link link;
  struct pwi_demo_witness witness;
  uint64_t index;
  uint64_t number; /* number of the write that is not yet acknowledged; 0: the store has not answered the ask yet */
  bool is_up;
  bool moved; /* progress since the last tick */
};

/* As in the store, the status of sending is ignored: the next tick repeats the request. */
static void ask(struct pwi_demo_client *client) {
  uint8_t what = client->number ? SAY_WRITE : SAY_ASK;
  pawl_status status = say(client->net, client->link, what, client->index, client->number);
  (void)status;
}

static pawl_status tick_soon(struct pwi_demo_client *client, int64_t delay) {
  struct pwi_timer timer;
  return pwi_net_timer_set(client->net, pwi_net_now(client->net) + delay, 0, &timer);
}

pawl_status pwi_demo_client_create(struct pwi_net *net, uint64_t index, const struct pwi_demo_witness *witness,
                                   struct pwi_demo_client **client_out) {
  struct pwi_demo_client *client = pwi_alloc_zero(1, sizeof *client);
  if (!client) return PAWL_NO_MEMORY;
  client->net = net;
  client->index = index;
  client->witness = *witness;
  pawl_status status = tick_soon(client, 0);
  if (status) {
    pwi_demo_client_destroy(client);
    return status;
  }
  *client_out = client;
  return PAWL_OK;
}

void pwi_demo_client_destroy(struct pwi_demo_client *client) { pwi_free(client); }

static void client_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct pwi_demo_client *client = self;
  (void)link, (void)info;
  client->is_up = true;
  ask(client);
}

static void client_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct pwi_demo_client *client = self;
  (void)link, (void)why;
  client->is_up = false;
  client->link.id = 0;
}

static struct pwi_receive client_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct pwi_demo_client *client = self;
  (void)link;
  if (message->head[HEAD_WHAT] != SAY_HAVE) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  uint64_t number = pwi_get_u64(message->head + HEAD_NUMBER);
  if (client->number == 0 || number == client->number) {
    if (client->number) client->witness.acknowledged(client->witness.context, client->index, number);
    client->number = number + 1;
    client->moved = true;
    ask(client);
  }
  return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
}

static void client_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct pwi_demo_client *client = self;
  (void)timer, (void)cookie;
  if (client->is_up && !client->moved) ask(client);
  client->moved = false;
  pawl_status status = PAWL_OK; /* if both calls run out of memory, the client falls silent */
  if (!client->link.id) status = pwi_net_connect(client->net, PWI_DEMO_STORE_ADDRESS, &client->link);
  if (!status) status = tick_soon(client, TICK_NS);
  (void)status;
}

const struct pwi_actor pwi_demo_client_actor = {
    .link_up = client_link_up,
    .link_down = client_link_down,
    .message = client_message,
    .timer = client_timer,
};
