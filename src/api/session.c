/* Opens and closes sessions. */
#include "api/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "api/credentials.h"
#include "api/options.h"
#include "base/memory.h"
#include "host/clock.h"
#include "host/run/address.h"
#include "net/address.h"
#include "net/net_ops.h" /* pwi_net.self */
#include "net/seal.h"
#include "net/tcp/tcp.h"
#include "ring/view.h"
#include "wire/hello.h"

#define OPEN_NS (30 * PWI_HOST_SECOND)
/* after this time without any other news there is no manager */
#define DISCOURAGED_NS (PWI_HOST_SECOND * 3 / 4)
#define PATIENCE_NS (PWI_HOST_SECOND / 10) /* between two checks */
#define LEAVE_NS (2 * PWI_HOST_SECOND)     /* longest wait for a manager that does not answer */

void pawl_session_options_init_sized(struct pawl_session_options *options, size_t struct_size) {
  const struct pawl_session_options defaults = {0};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- creating the parts --------------------------------------------------------------------------------- */

static const char *find_address(const struct pawl_session_options *options) {
  const char *address = options->address && *options->address ? options->address : getenv("PAWL_ADDRESS");
  return address && *address ? address : NULL;
}

/* An embedded cluster listens where this session is reached: at any port of the same host. */
static bool embedded_listen(const char *ours, char listen_out[PWI_NET_ADDRESS_MAX]) {
  struct pwi_address address;
  if (!ours || !*ours || pwi_address_parse(ours, &address) != PAWL_OK || address.kind != PWI_ADDRESS_TCP) return false;
  pwi_address_print(&address, 0, listen_out);
  return true;
}

static pawl_status embed(struct pawl_session *session, const struct pawl_session_options *options,
                         const struct pwi_credentials *credentials, int64_t deadline) {
  struct pwi_embedded_config config = {
      .servers = options->servers,
      .shards = options->shards,
      .replicas = options->replicas,
      .memory_max = options->server_memory,
      .peers_only = options->peers_only,
      .key = credentials->key,
      .key_file = credentials->key_file,
      .deadline_ns = deadline,
  };
  char listen[PWI_NET_ADDRESS_MAX];
  if (options->certificate) return pwi_error(PAWL_INVALID, "certificates need a cluster with an address");
  if (embedded_listen(options->listen, listen)) config.listen = listen;
  return pwi_embedded_start(&config, &session->embedded);
}

/* Finds the cluster or starts one, and finds its key. */
static pawl_status find_cluster(struct pawl_session *session, const struct pawl_session_options *options,
                                int64_t deadline) {
  struct pwi_credentials credentials;
  char key[PWI_KEY_TEXT_MAX];
  const char *address = find_address(options);
  pawl_status status = pwi_credentials_find(options, &credentials);
  if (!status && !address) {
    status = embed(session, options, &credentials, deadline);
    if (!status) address = pwi_embedded_address(session->embedded);
  }
  if (status) return status;
  session->address = pwi_copy_string(address);
  if (!session->address) return pwi_error_status(PAWL_NO_MEMORY, "session");
  bool has_key = (credentials.key && *credentials.key) || (credentials.key_file && *credentials.key_file);
  if (!has_key && !options->certificate && pwi_embedded_key(address, key)) credentials.key = key;
  status = pwi_credentials_read(&credentials, &session->keys);
  explicit_bzero(key, sizeof key);
  return status;
}

/* Peers must reach the session: it listens where this machine reaches the first of the managers. */
static pawl_status find_listen(const struct pawl_session *session, char listen_out[PWI_NET_ADDRESS_MAX]) {
  char first[PWI_NET_ADDRESS_MAX], host[PWI_NET_ADDRESS_MAX];
  bool is_loopback;
  int size = (int)strcspn(session->address, ",");
  pawl_status status = PAWL_INVALID;
  if (snprintf(first, sizeof first, "%.*s", size, session->address) < (int)sizeof first)
    status = pwi_run_route(first, host, &is_loopback);
  if (status == PAWL_INVALID) return pwi_error(status, "'%.*s' is not an address", size, session->address);
  if (!status && snprintf(listen_out, PWI_NET_ADDRESS_MAX, "%s:0", host) >= PWI_NET_ADDRESS_MAX)
    status = PAWL_TOO_LARGE;
  if (status)
    return pwi_error(status, "cannot find a route to the manager at %.*s: %s; set listen to an address of this machine",
                     size, session->address, pawl_status_text(status));
  return PAWL_OK;
}

/* `listen` is "" for a session that does not listen. */
static pawl_status choose_listen(const struct pawl_session *session, const struct pawl_session_options *options,
                                 char listen_out[PWI_NET_ADDRESS_MAX]) {
  *listen_out = '\0';
  if (options->listen && *options->listen) {
    if (strlen(options->listen) >= PWI_NET_ADDRESS_MAX)
      return pwi_error(PAWL_INVALID, "cannot listen on %s: the address is too long", options->listen);
    memcpy(listen_out, options->listen, strlen(options->listen) + 1);
    return PAWL_OK;
  }
  return options->peers_only && !options->read_only ? find_listen(session, listen_out) : PAWL_OK;
}

static pawl_status explain_listen(pawl_status status, const char *address) {
  if (status == PAWL_FORBIDDEN)
    return pwi_error(status,
                     "cannot listen on %s: without a key a session listens on loopback addresses only; create a key "
                     "with 'pawl key new' and give it to all nodes",
                     address);
  return pwi_error_status(status, "cannot listen on %s", address);
}

/* An option, or the environment variable of the same meaning. */
static pawl_status read_number(uint32_t option, const char *option_name, const char *variable, uint32_t most,
                               uint32_t *number_out) {
  const char *text = getenv(variable), *name = option ? option_name : variable;
  uint64_t number = option;
  if (option == 0 && text && *text) {
    char *end;
    number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : UINT64_MAX;
    if (number == UINT64_MAX || *end || number == 0) number = UINT64_MAX;
  }
  if (number > most)
    return option ? pwi_error(PAWL_INVALID, "%s %u: expected a number from 1 to %u", name, option, most)
                  : pwi_error(PAWL_INVALID, "%s '%.20s': expected a number from 1 to %u", name, text, most);
  *number_out = (uint32_t)number;
  return PAWL_OK;
}

static pawl_status make_net(struct pawl_session *session, const struct pawl_session_options *options) {
  char listen[PWI_NET_ADDRESS_MAX];
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.name = session->log.node;
  config.keys = session->keys;
  config.certificate = options->certificate;
  config.private_key = options->private_key;
  config.authority = options->authority;
  config.require_encryption = options->require_encryption;
  config.limits.inbound_bytes = PWI_SESSION_INBOUND;
  config.plane = options->tcp_only ? PWI_PLANE_OFF : PWI_PLANE_AUTO;
  const char *transport = getenv("PAWL_TRANSPORT");
  config.rdma = transport && strcmp(transport, "rdma") == 0;
  pawl_status status = read_number(options->dscp, "dscp", "PAWL_DSCP", PWI_DSCP_MAX, &config.dscp);
  if (status) return status;
  status = pwi_tcp_create(&config, &pwi_client_actor, NULL, &session->net);
  if (status == PAWL_INVALID && options->require_encryption)
    return pwi_error(status, "encryption is required, but neither a key nor a certificate is given");
  if (status) return pwi_error_status(status, "network");
  status = choose_listen(session, options, listen);
  session->listens = listen[0] != '\0';
  if (status || !session->listens) return status;
  status = pwi_net_listen(session->net, listen);
  return status ? explain_listen(status, listen) : PAWL_OK;
}

static pawl_status make_client(struct pawl_session *session, const struct pawl_session_options *options) {
  char host[PWI_SITE_MAX + 1] = "";
  uint64_t seed;
  const char *rack = options->rack ? options->rack : getenv("PAWL_RACK");
  if (gethostname(host, sizeof host - 1) != 0 || !pwi_site_is_sound(host)) host[0] = '\0';
  if (rack && !pwi_site_is_sound(rack))
    return pwi_error(PAWL_INVALID, "rack '%.80s': a label has at most %d printable characters and no blanks", rack,
                     PWI_SITE_MAX);
  if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
    return pwi_error(PAWL_IO, "the system returned no random numbers");
  pwi_random_init(&session->random, seed, 0);
  uint32_t priority;
  pawl_status status = read_number(options->priority, "priority", "PAWL_PRIORITY", PWI_PRIORITY_HIGHEST, &priority);
  if (status) return status;
  uint8_t identity[PWI_SEAL_SECRET];
  if (pwi_seal_draw(identity)) return pwi_error(PAWL_IO, "the system returned no random numbers");
  struct pwi_client_config config = {
      .net = session->net,
      .random = &session->random,
      .log = &session->log,
      .manager = session->address,
      .host = host,
      .rack = rack,
      .job = options->job ? options->job : "",
      .reader = options->read_only,
      .stays_dead = options->stays_dead,
      .priority = (uint8_t)priority,
      .memory_max = UINT64_MAX,
      .identity = identity,
      .membership_changed = pwi_session_peers_changed,
      .context = session,
  };
  status = pwi_client_create(&config, &session->client);
  if (status == PAWL_INVALID)
    return pwi_error(status, "'%s' is not an address, or '%s' is not a job's name (a word)", session->address,
                     options->job ? options->job : "");
  if (status) return pwi_error_status(status, "session");
  session->sequence.client = session->client;
  /* net and client refer to each other; the net calls no callback before it is polled */
  session->net->self = session->client;
  return PAWL_OK;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static bool is_final(pawl_status trouble) {
  return trouble == PAWL_FORBIDDEN || trouble == PAWL_LINK_KEY || trouble == PAWL_LINK_VERSION ||
         trouble == PAWL_CLUSTER_OTHER || trouble == PAWL_NODE_GONE || trouble == PAWL_LINK_REVOKED;
}

/* There seems to be no manager, and none will come unless a user starts one. A few of these errors in a
 * row may occur while it starts, or with one of several addresses. */
static bool is_discouraging(pawl_status trouble) {
  return trouble == PAWL_LINK_REFUSED || trouble == PAWL_LINK_RESOLVE || trouble == PAWL_LINK_PROTOCOL ||
         trouble == PAWL_LINK_CLOSED || trouble == PAWL_LINK_RESET;
}

static pawl_status explain_join(const struct pawl_session *session, pawl_status trouble) {
  const char *address = session->address;
  switch (trouble) {
  case PAWL_LINK_RESOLVE:
    return pwi_error(trouble, "%s: unknown host", address);
  case PAWL_LINK_REFUSED:
    return pwi_error(trouble, "nothing listens on %s: is a manager running there?", address);
  case PAWL_LINK_PROTOCOL:
  case PAWL_LINK_CLOSED:
  case PAWL_LINK_RESET:
    return pwi_error(trouble, "the peer at %s is not a pawl manager, or it has a key and this session has none",
                     address);
  default:
    return pwi_error_status(trouble, "no answer from the manager at %s", address);
  }
}

/* Waits until we have joined and, unless the session is for peers only, there are servers. No other thread
 * knows the session yet, so the gate is not needed. */
static pawl_status join(struct pawl_session *session, bool is_impatient, int64_t deadline) {
  struct pwi_client_state state;
  const struct pwi_view *view;
  for (int64_t hopeful = pwi_host_now();;) {
    pwi_client_state(session->client, &state);
    view = pwi_client_view(session->client);
    bool is_served = session->is_peers_only || (view && view->arc_count > 0);
    if (state.joined && is_served) return PAWL_OK;
    if (is_final(state.trouble))
      return pwi_error_status(state.trouble, "cannot join the cluster at %s", session->address);
    int64_t now = pwi_host_now();
    if (!is_discouraging(state.trouble)) hopeful = now;
    if (now >= deadline || (is_impatient && now - hopeful > DISCOURAGED_NS)) break;
    (void)pwi_net_poll(session->net, deadline < now + PATIENCE_NS ? deadline : now + PATIENCE_NS);
  }
  if (state.trouble) return explain_join(session, state.trouble);
  if (!state.joined || !view) return pwi_error(PAWL_TIMED_OUT, "the manager at %s does not answer", session->address);
  return pwi_error(PAWL_TIMED_OUT, "the cluster at %s has no servers yet (add one with 'pawl server --join %s')",
                   session->address, session->address);
}

static void free_ring(struct pwi_owned *ring, void (*release)(struct pwi_owned *owned)) {
  while (ring->next && ring->next != ring) {
    struct pwi_owned *owned = ring->next;
    pwi_owned_remove(owned);
    release(owned);
  }
}

/* Works in any state; its own thread has ended. Lists may use the client when they are freed, so they go
 * before it. */
static void destroy(struct pawl_session *session) {
  pwi_offered_functions_destroy(session->functions);
  pwi_net_destroy(session->net); /* with the regions of buffers */
  free_ring(&session->items, pwi_items_free);
  free_ring(&session->reduces, pwi_reduce_free);
  free_ring(&session->factors, pwi_factor_free);
  free_ring(&session->collectives, pwi_collective_free);
  free_ring(&session->iterations, pwi_iterations_free);
  free_ring(&session->lists, pwi_keys_free);
  pwi_client_destroy(session->client);
  free_ring(&session->groups, pwi_group_free);
  free_ring(&session->vectors, pwi_vector_free);
  pwi_sequence_fini(&session->sequence);
  pwi_task_pool_release(session->pool);
  pwi_embedded_stop(session->embedded);
  pwi_keyring_destroy(session->keys);
  pwi_free(session->address);
  pwi_free(session);
}

static pawl_status build(struct pawl_session *session, const struct pawl_session_options *options, int64_t deadline) {
  pawl_status status = find_cluster(session, options, deadline);
  if (!status) status = make_net(session, options);
  if (!status) status = make_client(session, options);
  if (!status) status = join(session, options->impatient || options->timeout_ns == 0, deadline);
  if (status) return status;
  status = pwi_task_pool_create(&session->pool);
  if (status) return pwi_error_status(status, "session");
  if (session->listens) status = pwi_offered_functions_create(session, &session->functions);
  if (status) return pwi_error_status(status, "session");
  status = pwi_driver_init(&session->driver, session->net);
  if (status) return pwi_error_status(status, "session");
  status = pwi_driver_start(&session->driver);
  if (status == PAWL_OK) return PAWL_OK;
  pwi_driver_fini(&session->driver);
  return pwi_error_status(status, "cannot start the thread of the session");
}

pawl_status pawl_session_open(const struct pawl_session_options *options, struct pawl_session **session_out) {
  struct pawl_session_options is;
  pawl_session_options_init(&is);
  pawl_status status = pwi_take_options("session", options, &is, sizeof is);
  if (status) return status;
  if (!session_out || is.timeout_ns < 0)
    return pwi_error(PAWL_INVALID, "open: session_out is NULL, or timeout_ns is negative");
  struct pawl_session *session = pwi_alloc_zero(1, sizeof *session);
  if (!session) return pwi_error_status(PAWL_NO_MEMORY, "session");
  session->log.node = "client";
  session->is_peers_only = is.peers_only;
  session->line.driver = session->awaits.driver = session->owns.driver = &session->driver;
  session->line.sequence = session->awaits.sequence = session->owns.sequence = &session->sequence;
  pwi_sequence_init(&session->sequence);
  pwi_owned_init(&session->iterations);
  pwi_owned_init(&session->vectors);
  pwi_owned_init(&session->lists);
  pwi_owned_init(&session->groups);
  pwi_owned_init(&session->reduces);
  pwi_owned_init(&session->factors);
  pwi_owned_init(&session->collectives);
  pwi_owned_init(&session->items);
  status = build(session, &is, pwi_host_after(is.timeout_ns ? is.timeout_ns : OPEN_NS));
  if (status) {
    destroy(session);
    return status;
  }
  *session_out = session;
  return PAWL_OK;
}

/* --- flushing and closing ------------------------------------------------------------------------------- */

static pawl_status flush_until(struct pawl_session *session, int64_t deadline) {
  pwi_driver_enter(&session->driver);
  uint64_t serial = session->line.serial;
  pwi_driver_leave(&session->driver);
  if (!pwi_session_settle(session, serial, deadline)) return PAWL_TIMED_OUT;
  pwi_driver_enter(&session->driver);
  pawl_status failure = session->line.failure;
  session->line.failure = PAWL_OK;
  pwi_driver_leave(&session->driver);
  return failure;
}

static pawl_status explain_flush(pawl_status status, const char *what, const char *why) {
  if (status == PAWL_TIMED_OUT)
    return pwi_error(status, "%s: some tasks have not finished%s%s", what, *why ? "; " : "", why);
  return status ? pwi_error_status(status, "%s: a task without a handle failed", what) : PAWL_OK;
}

pawl_status pawl_session_flush(struct pawl_session *session, int64_t timeout_ns) {
  if (!session) return pwi_error(PAWL_INVALID, "flush: session is NULL");
  char why[PWI_ERROR_TEXT_MAX + 1] = "";
  pawl_status status = flush_until(session, pwi_driver_deadline(timeout_ns));
  if (status == PAWL_TIMED_OUT) (void)pwi_session_waits(session, why, sizeof why);
  return explain_flush(status, "flush", why);
}

/* Its own thread has ended, so this one polls. */
static void leave_cluster(struct pawl_session *session) {
  int64_t deadline = pwi_net_now(session->net) + LEAVE_NS;
  struct pwi_client_state state;
  pwi_client_state(session->client, &state);
  if (state.trouble) return; /* there is no link to say goodbye on; the manager will notice */
  pwi_client_leave(session->client);
  while (!pwi_client_has_left(session->client) && pwi_net_now(session->net) < deadline)
    if (pwi_net_poll(session->net, deadline) != PAWL_OK) break;
  pwi_client_hang_up(session->client); /* so that the peers do not take it for a failure */
  while (pwi_client_links(session->client) > 0 && pwi_net_now(session->net) < deadline)
    if (pwi_net_poll(session->net, deadline) != PAWL_OK) break;
}

pawl_status pawl_session_close(struct pawl_session *session, int64_t timeout_ns) {
  if (!session) return PAWL_OK;
  struct pwi_driver *driver = &session->driver;
  pwi_offered_functions_stop(session->functions);
  char why[PWI_ERROR_TEXT_MAX + 1] = "";
  pawl_status status = flush_until(session, pwi_driver_deadline(timeout_ns));
  if (status == PAWL_TIMED_OUT) (void)pwi_session_waits(session, why, sizeof why);
  pwi_driver_stop(driver);
  pwi_driver_enter(driver);
  if (status != PAWL_TIMED_OUT) leave_cluster(session);
  session->is_closed = true;
  pwi_offered_functions_mute(session->functions);
  pwi_task_line_end(&session->owns, PAWL_NODE_STOPPED);
  /* The net still uses their memory, so it must be destroyed before they finish. */
  pwi_net_destroy(session->net);
  session->net = NULL;
  pwi_task_line_end(&session->awaits, PAWL_NODE_STOPPED);
  pwi_task_line_end(&session->line, PAWL_NODE_STOPPED);
  pwi_driver_leave(driver);
  pwi_driver_fini(driver);
  destroy(session);
  return explain_flush(status, "close", why); /* only now, because callbacks may have set texts in the meantime */
}

/* --- queries -------------------------------------------------------------------------------------------- */

struct pawl_node pawl_session_node(const struct pawl_session *session) {
  struct pawl_session *ours = (struct pawl_session *)(uintptr_t)session;
  struct pwi_client_state state;
  pwi_driver_enter(&ours->driver);
  pwi_client_state(session->client, &state);
  pwi_driver_leave(&ours->driver);
  return (struct pawl_node){state.sender};
}

void pawl_session_figures(struct pawl_session *session, struct pawl_session_figures *figures_out) {
  struct pwi_net_counts counts;
  pwi_driver_enter(&session->driver);
  pwi_net_counts(session->net, &counts);
  pwi_driver_leave(&session->driver);
  *figures_out = (struct pawl_session_figures){.bytes_sent = counts.bytes_sent,
                                               .bytes_received = counts.bytes_received,
                                               .messages_sent = counts.messages_sent,
                                               .messages_received = counts.messages_received};
}

const char *pawl_session_address(const struct pawl_session *session) { return session->address; }

pawl_status pawl_session_status(struct pawl_session *session, int64_t timeout_ns, char **json_out) {
  void *reply;
  size_t size;
  if (!session || !json_out) return pwi_error(PAWL_INVALID, "status: session or json_out is NULL");
  int64_t deadline = pwi_driver_deadline(timeout_ns);
  pawl_status status = pwi_session_ask(session, PWI_ASK_STATUS, NULL, deadline, &reply, &size);
  if (status) return pwi_error_status(status, "status of the cluster at %s", session->address);
  char *text = pwi_resize(reply, size + 1);
  if (!text) {
    pwi_free(reply);
    return pwi_error_status(PAWL_NO_MEMORY, "status");
  }
  text[size] = '\0';
  *json_out = text;
  return PAWL_OK;
}

void pawl_text_free(char *text) { pwi_free(text); }
