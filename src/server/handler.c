/* Requests: receiving, checking, serving. */
#include "server/handler.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "server/handler_inside.h"
#include "protocol/planted.h"

#define ANSWER_MAX ((size_t)64 << 20) /* bytes of values that one answer may carry */
#define SCAN_ROWS_MAX ((uint64_t)1 << 16)

/* A head that lacks memory for so many bytes is useless. A larger request may fail on any server. */
#define MODEST_BYTES ((size_t)4 << 20)

pawl_status pwi_handler_create(const struct pwi_handler_config *config, struct pwi_handler **handler_out) {
  struct pwi_handler *handler = pwi_alloc_zero(1, sizeof *handler);
  if (!handler) return PAWL_NO_MEMORY;
  handler->config = *config;
  *handler_out = handler;
  return PAWL_OK;
}

void pwi_handler_set_shard(struct pwi_handler *handler, struct pwi_shard *shard) { handler->config.shard = shard; }

static void free_link(struct pwi_handler_link *link) {
  struct pwi_handler *handler = link->handler;
  if (link->before)
    link->before->next = link->next;
  else
    handler->links = link->next;
  if (link->next) link->next->before = link->before;
  pwi_handler_free_buffers(link);
  pwi_handler_exit(link);
  pwi_inbox_fini(&link->inbox);
  pwi_free(link->adapting);
  pwi_free(link);
}

/* The net may be destroyed already, with its regions. */
void pwi_handler_destroy(struct pwi_handler *handler) {
  if (!handler) return;
  while (handler->links) free_link(handler->links);
  pwi_handler_replies_fini(handler);
  pwi_staging_fini(&handler->staging);
  pwi_reading_fini(&handler->reading);
  pwi_pages_fini(&handler->stamps);
  pwi_handler_filters_fini(&handler->filters);
  pwi_idmap_fini(&handler->vouched);
  pwi_free(handler->released);
  pwi_free(handler);
}

pawl_status pwi_handler_link_up(struct pwi_handler *handler, struct pwi_link link, const struct pwi_peering *peering,
                                const char *identity, const struct pwi_rights *rights,
                                struct pwi_quota_account *account, struct pwi_handler_link **link_out) {
  struct pwi_handler_link *fresh = pwi_alloc_zero(1, sizeof *fresh);
  if (!fresh) return PAWL_NO_MEMORY;
  fresh->handler = handler;
  if (pwi_handler_enter(fresh, identity)) {
    pwi_free(fresh);
    return PAWL_NO_MEMORY;
  }
  fresh->link = link;
  fresh->peering = *peering;
  fresh->rights = *rights;
  fresh->account = account;
  fresh->inbox.shared = &handler->staging;
  fresh->next = handler->links;
  if (fresh->next) fresh->next->before = fresh;
  handler->links = fresh;
  *link_out = fresh;
  return PAWL_OK;
}

void pwi_handler_set_rights(struct pwi_handler_link *link, const struct pwi_rights *rights,
                            struct pwi_quota_account *account) {
  link->rights = *rights;
  link->account = account;
}

void pwi_handler_link_down(struct pwi_handler_link *link) {
  if (!link) return;
  struct pwi_shard *shard = link->handler->config.shard;
  if (shard) pwi_shard_forget_waiters(shard, link->link.id);
  pwi_handler_forget_deferred(link);
  pwi_handler_close_buffers(link);
  free_link(link);
}

/* --- receiving ------------------------------------------------------------------------------------------ */

struct pwi_receive pwi_handler_message(struct pwi_handler_link *link, const struct pwi_message *message) {
  return pwi_inbox_begin(&link->inbox, message, &link->peering.data, link);
}

void pwi_handler_piece(struct pwi_handler_link *link, size_t offset, const void *data, size_t size) {
  pwi_inbox_piece(&link->inbox, offset, data, size);
}

/* --- serving -------------------------------------------------------------------------------------------- */

/* A push of an aggregate needs the newest membership: otherwise a member could be taken for a stranger. */
static bool is_aggregate(const struct pwi_request *request) { return pwi_terms_are_aggregate(&request->terms); }

/* True if this server lacks news that the client has, and could answer wrongly without them. A client that takes over
 * from a retired one reads with a PUSHPULL: no push of the retired client may be applied afterwards. */
static bool is_behind(const struct pwi_handler_link *link, const struct pwi_request *request,
                      const struct pwi_entry *entry) {
  const struct pwi_handler_numbers *numbers = link->handler->config.numbers;
  if (!entry && link->inbox.head.catalogue > (uint32_t)numbers->catalogue->number) return true;
  if (link->inbox.head.membership > (uint32_t)numbers->membership->number &&
      ((pwi_request_is_numbered(request->terms.kind) &&
        !pwi_membership_is_live(numbers->membership, request->sender)) ||
       request->terms.kind == PWI_REQUEST_COLLECT || request->terms.kind == PWI_REQUEST_AWAIT ||
       request->terms.kind == PWI_REQUEST_ENTER || request->terms.kind == PWI_REQUEST_PUSHPULL ||
       is_aggregate(request)))
    return true;
  /* The pushes of a live sender are not final. */
  struct pwi_sender other = {request->terms.other};
  return request->terms.kind == PWI_REQUEST_COLLECT && pwi_membership_is_live(numbers->membership, other);
}

bool pwi_handler_is_shown(struct pwi_handler_link *link, struct pwi_sender sender) {
  const struct pwi_handler_numbers *numbers = link->handler->config.numbers;
  uint64_t verifier = numbers->node | (numbers->is_sender ? PWI_VERIFIER_IS_SENDER : 0);
  return pwi_shown_is(&link->shown, numbers->membership, numbers->cluster, verifier, sender.id);
}

/* Numbered requests of a live sender are accepted only with its proof. A sender that is not live is told so anyway. */
static bool is_impostor(struct pwi_handler_link *link, const struct pwi_request *request) {
  const struct pwi_handler_numbers *numbers = link->handler->config.numbers;
  if (!pwi_request_is_numbered(request->terms.kind) || link->shown.bound == request->sender.id) return false;
  return pwi_membership_is_live(numbers->membership, request->sender) && !pwi_handler_is_shown(link, request->sender);
}

/* A COLLECT about a retired sender is answered only to a client that proves the same key. */
static bool may_collect(struct pwi_handler_link *link, const struct pwi_request *request, struct pwi_outcome *outcome) {
  const struct pwi_handler_numbers *numbers = link->handler->config.numbers;
  const struct pwi_membership_sender *sender = pwi_membership_find(numbers->membership, request->sender);
  const struct pwi_membership_sender *other =
      pwi_membership_find(numbers->membership, (struct pwi_sender){request->terms.other});
  *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE}; /* one side may lack the newest membership */
  if (!sender || sender->retired) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_UNPROVEN};
  if (!pwi_handler_is_shown(link, request->sender)) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_FORBIDDEN};
  return !other || memcmp(sender->key, other->key, sizeof sender->key) == 0;
}

static bool is_allowed(const struct pwi_handler_link *link, const struct pwi_request *request,
                       const struct pwi_entry *entry) {
  bool changes = pwi_request_is_numbered(request->terms.kind) || request->terms.kind == PWI_REQUEST_COLLECT;
  return changes ? pwi_rights_may_change(&link->rights, entry->name) : pwi_rights_may_read(&link->rights, entry->name);
}

/* Vectors of other spaces are not visible, whether they exist or not. */
static const struct pwi_entry *find_entry(const struct pwi_handler_link *link, struct pwi_vector_id vector) {
  const struct pwi_entry *entry = pwi_catalogue_find(link->handler->config.numbers->catalogue, vector);
  return entry && pwi_rights_reach(&link->rights, entry->name) ? entry : NULL;
}

/* Beyond its rate, a link may neither push nor pull. Other requests, and pushes for which a group waits, are counted,
 * but served. */
static pawl_status charge(struct pwi_handler_link *link, const struct pwi_request *request) {
  if (!link->account) return PAWL_OK;
  int64_t now = pwi_net_now(link->handler->config.net);
  bool pushes = pwi_request_has_rows(request->terms.kind) && !is_aggregate(request);
  bool is_limited = pushes || request->terms.kind == PWI_REQUEST_PULL;
  if (pwi_quota_account_may(link->account, now) || !is_limited) {
    pwi_quota_account_take(link->account, link->inbox.body_size, now);
    return PAWL_OK;
  }
  return PAWL_QUOTA_RATE;
}

/* The request is for another incarnation: the vector was loaded from a checkpoint, or this server does not
 * know it yet. */
static bool is_other_incarnation(const struct pwi_handler_link *link, const struct pwi_request *request,
                                 struct pwi_outcome *outcome) {
  uint32_t here = pwi_shard_incarnation(link->handler->config.shard, request->terms.vector);
  *outcome = request->terms.incarnation < here ? (struct pwi_outcome){.code = PWI_CODE_RESTORED, .found = here}
                                               : (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  return request->terms.incarnation != here;
}

/* Checks whether this client may read the second vector of an operation here. A failing change uses up its number. */
static bool decide_other(const struct pwi_handler_link *link, struct pwi_request *request,
                         struct pwi_outcome *outcome) {
  const struct pwi_handler_numbers *numbers = link->handler->config.numbers;
  const struct pwi_operation *operation = &request->operation;
  if (operation->other.id == 0) return false;
  const struct pwi_entry *entry = find_entry(link, operation->other);
  bool is_behind = !entry && link->inbox.head.catalogue > (uint32_t)numbers->catalogue->number;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  if (is_behind ||
      (entry && operation->incarnation > pwi_shard_incarnation(link->handler->config.shard, operation->other)))
    return true;
  if (entry) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_NOT_FOUND};
  request->refusal = PAWL_NOT_FOUND;
  return !pwi_request_is_numbered(request->terms.kind);
}

/* The checks before the shard is asked; PWI_CODE_OK if it is to be asked. */
static bool decide_early(struct pwi_handler_link *link, const struct pwi_request *request,
                         const struct pwi_entry *entry, struct pwi_outcome *outcome) {
  if (is_behind(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  else if (is_impostor(link, request))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_UNPROVEN};
  else if (!entry || !pwi_shard_has(link->handler->config.shard, entry->id))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_NOT_FOUND};
  else if (!is_allowed(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_FORBIDDEN};
  else if (request->terms.kind != PWI_REQUEST_COLLECT || may_collect(link, request, outcome))
    return is_other_incarnation(link, request, outcome);
  return true;
}

/* Finds the chain of the claim; false if this server is not its head. A handler without chains serves the
 * whole shard. */
static bool route(const struct pwi_handler_link *link, const struct pwi_request *request, const struct pwi_entry *entry,
                  struct pwi_chain **chain_out) {
  struct pwi_place place = pwi_entry_place(entry);
  if (!link->handler->config.chains) return true;
  if (request->terms.claim.begin >= place.size) return true; /* the shard reports the error */
  *chain_out = pwi_chains_route(link->handler->config.chains, &place, request->terms.claim);
  return *chain_out != NULL;
}

/* The size of an answer: values, then the keys of a scan, then clocks. */
static pawl_status answer_room(struct pwi_handler_link *link, struct pwi_request *request, size_t row_bytes,
                               size_t *bytes_out) {
  size_t values;
  if (request->terms.kind == PWI_REQUEST_SCAN) {
    uint64_t most = ANSWER_MAX / row_bytes; /* the next scan reads the rest */
    if (most > SCAN_ROWS_MAX) most = SCAN_ROWS_MAX;
    if (request->terms.rows > most) request->terms.rows = most > 0 ? most : 1;
  }
  pawl_status status = pwi_shard_answer_bytes(link->handler->config.shard, request, ANSWER_MAX, &values);
  if (status) return status;
  *bytes_out = values;
  if (request->terms.kind == PWI_REQUEST_SCAN) /* and another section */
    *bytes_out += (size_t)request->terms.rows * sizeof(uint64_t) + PWI_ANSWER_PREFIX;
  size_t clocks = pwi_shard_clock_bytes(link->handler->config.shard, request);
  if (clocks > ANSWER_MAX) return PAWL_TOO_LARGE;
  if (clocks > 0) *bytes_out += clocks + PWI_ANSWER_PREFIX; /* and another section */
  return PAWL_OK;
}

/* A payload that the net does not copy, or that has to wait, needs a buffer of the link. */
static pawl_status make_payload_room(struct pwi_handler_link *link, const struct pwi_served *served, bool may_wait,
                                     struct pwi_handler_buffer **buffer) {
  char *unused;
  if (*buffer || served->payload_size == 0) return PAWL_OK;
  if (served->payload_size > ANSWER_MAX) return PAWL_TOO_LARGE;
  if (!may_wait && served->payload_size + 2 * PWI_ANSWER_PREFIX <= PWI_NET_COPY_MAX) return PAWL_OK;
  return pwi_handler_make_room(link, served->payload_size + PWI_NET_COPY_MAX, true, buffer, &unused);
}

static bool is_early(const struct pwi_request *request, const struct pwi_served *served) {
  bool has_effect = served->effect != PWI_EFFECT_NONE;
  if (pwi_is_planted(PWI_PLANTED_EARLY_ACK)) return has_effect;
  if (pwi_is_planted(PWI_PLANTED_EARLY_PULL)) return !pwi_request_is_numbered(request->terms.kind);
  return pwi_is_planted(PWI_PLANTED_DUPLICATE_ACK) && !has_effect && pwi_request_is_numbered(request->terms.kind);
}

static void starve(struct pwi_handler *handler, struct pwi_chain *chain) {
  struct pwi_chains *chains = handler->config.chains;
  if (chain && chains->starve) chains->starve(chains->context, chain);
}

/* An answer over a socket can be written from the table itself: the buffer takes only the bytes that the socket
 * does not take at once. A client that reads in place needs all of them in the buffer. */
static bool may_view(const struct pwi_handler_link *link, const struct pwi_request *request,
                     const struct pawl_filters *filters, const struct pwi_handler_buffer *buffer, bool may_wait) {
  return request->terms.kind == PWI_REQUEST_PULL && buffer && !may_wait && !link->peering.in_place &&
         pwi_handler_leaves_values(link, request, filters);
}

/* As in an outcome. */
static uint64_t version_of(const struct pwi_chain *chain, struct pawl_range positions) {
  uint64_t version;
  return pwi_chain_version_at(chain, positions, &version) ? version + 1 : 0;
}

/* Sends the answer now, or defers it until all members of the chain have everything that it has seen. */
static void answer(struct pwi_handler_link *link, struct pwi_chain *chain, const struct pwi_request *request,
                   const struct pwi_entry *entry, struct pwi_served *served, struct pwi_handler_buffer *buffer,
                   const char *values, struct pwi_answer_form form) {
  enum pawl_type type = entry->is.type;
  struct pwi_place place = pwi_entry_place(entry);
  struct pawl_range positions = pawl_range_of(pwi_place_position(&place, request->terms.claim.begin),
                                              pwi_place_position(&place, request->terms.claim.end - 1) + 1);
  struct pwi_reply reply = {.link = link,
                            .number = request->terms.number,
                            .task = request->task,
                            .served = *served,
                            .value_type = (uint8_t)type,
                            .value_codec = form.codec,
                            .value_count = form.count,
                            .value_size = pawl_type_size(type),
                            .buffer = buffer,
                            .values = values};
  bool tells = served->outcome.code == PWI_CODE_OK || served->outcome.code == PWI_CODE_REFUSED;
  if (chain && tells && link->peering.features & PWI_FEATURE_RELAYED_PULLS)
    reply.served.outcome.version = version_of(chain, positions);
  if (!chain || !tells || pwi_chain_is_settled(chain) || is_early(request, served)) {
    pwi_handler_send(&reply);
    return;
  }
  /* Far more than a client has under way; a resend finds its effect. */
  if (link->deferred_count >= PWI_HANDLER_DEFERRED_MAX) {
    struct pwi_outcome later = {.code = PWI_CODE_NOT_HERE};
    pwi_handler_unmake_room(buffer);
    pwi_handler_say(link, request->terms.number, request->task, &later);
    return;
  }
  if (pwi_handler_defer(chain, positions, &reply) == PAWL_OK) return;
  /* No memory to defer it: the client asks again over another link. */
  starve(link->handler, chain);
  pwi_handler_unmake_room(buffer);
  pwi_net_close(link->handler->config.net, link->link, PAWL_NO_MEMORY);
}

/* Bytes that the request needs, for its body and its rows; SIZE_MAX if the sum overflows. */
static size_t bytes_needed(const struct pwi_handler_link *link, const struct pwi_request *request) {
  const struct pwi_entry *entry = pwi_catalogue_find(link->handler->config.numbers->catalogue, request->terms.vector);
  struct pwi_table_options table = entry ? pwi_entry_table(entry) : (struct pwi_table_options){0};
  size_t row = entry ? pwi_entry_row_bytes(entry) + table.state_width * pawl_type_size(entry->is.type) : 0, bytes;
  bool is_counted = request->terms.rows <= SIZE_MAX && pwi_mul_size((size_t)request->terms.rows, row, &bytes) &&
                    pwi_add_size(bytes, link->inbox.body_size, &bytes);
  return is_counted ? bytes : SIZE_MAX;
}

/* A head without memory is replaced by the following member, and the client tries again. A large request is
 * no reason for that, so that no client can depose a head. */
static struct pwi_outcome failure(struct pwi_handler_link *link, struct pwi_chain *chain,
                                  const struct pwi_request *request, pawl_status status) {
  bool is_starved = status == PAWL_NO_MEMORY && chain && pwi_chain_has_followers(chain) &&
                    bytes_needed(link, request) <= MODEST_BYTES;
  if (is_starved) starve(link->handler, chain);
  if (is_starved || status == PAWL_QUEUE_FULL) return (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  return (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
}

static void say_failed(struct pwi_handler_link *link, struct pwi_chain *chain, const struct pwi_request *request,
                       pawl_status status) {
  struct pwi_outcome outcome = failure(link, chain, request, status);
  pwi_handler_say(link, request->terms.number, request->task, &outcome);
}

/* Malformed: the link is closed. */
static bool is_garbage(pawl_status status) { return status == PAWL_CORRUPT || status == PAWL_TRUNCATED; }

/* A push that cannot be served is refused: this needs hardly any memory, and uses up the number that later pushes name.
 * A push of an aggregate has to try again instead, because the group waits for it, unless it needs too much memory. */
static bool may_refuse(const struct pwi_handler_link *link, const struct pwi_request *request, pawl_status why) {
  if (why == PAWL_OK || why == PAWL_QUEUE_FULL || is_garbage(why) || request->refusal) return false;
  if (!pwi_request_has_rows(request->terms.kind)) return false;
  return why != PAWL_NO_MEMORY || !is_aggregate(request) || bytes_needed(link, request) > MODEST_BYTES;
}

static pawl_status prepare_log_entry(struct pwi_handler *handler, struct pwi_chain *chain,
                                     const struct pwi_request *request, const struct pwi_entry *entry, size_t stamps,
                                     struct pwi_log_entry **log_entry_out) {
  struct pwi_table_options table = pwi_entry_table(entry);
  struct pwi_request changes = *request;
  size_t state = table.state_width * pawl_type_size(entry->is.type);
  if (request->refusal) {
    changes.terms.keys = PWI_KEYS_RANGE;
    changes.terms.rows = 0;
  }
  return pwi_chain_prepare(handler->config.chains, chain, &changes, pwi_entry_row_bytes(entry), state, stamps,
                           log_entry_out);
}

/* Prepares the log entry of a request; false if an answer was sent instead. */
static bool prepare(struct pwi_handler_link *link, struct pwi_chain *chain, struct pwi_request *request,
                    const struct pwi_entry *entry, struct pwi_log_entry **log_entry_out) {
  *log_entry_out = NULL;
  if (!chain || !pwi_request_is_numbered(request->terms.kind)) return true;
  pawl_status status = prepare_log_entry(link->handler, chain, request, entry, 0, log_entry_out);
  if (may_refuse(link, request, status)) {
    request->refusal = status;
    status = prepare_log_entry(link->handler, chain, request, entry, 0, log_entry_out);
  }
  if (!status) return true;
  say_failed(link, chain, request, status);
  return false;
}

static void serve(struct pwi_handler_link *link, struct pwi_request *request, const struct pwi_entry *entry,
                  struct pwi_chain *chain) {
  struct pwi_handler *handler = link->handler;
  struct pwi_handler_buffer *buffer;
  struct pwi_log_entry *log_entry;
  struct pwi_served served;
  struct pawl_filters *filters = NULL;
  struct pwi_answer_form form;
  char *values;
  size_t bytes = 0;
  pawl_status status = request->refusal ? PAWL_OK : pwi_shard_inspect(handler->config.shard, request);
  if (!status) {
    status = pwi_handler_find_filters(handler, request, entry, &filters);
    if (status && status != PAWL_NO_MEMORY) status = PAWL_UNSUPPORTED;
  }
  if (!status && request->operand && !request->refusal) status = pwi_shard_expand(handler->config.shard, request);
  if (may_refuse(link, request, status)) {
    request->refusal = status;
    status = PAWL_OK;
  }
  if (status) {
    say_failed(link, chain, request, status);
    return;
  }
  if (request->terms.kind == PWI_REQUEST_LINEAR && !request->refusal)
    request->refusal = pwi_shard_cut_linear(handler->config.shard, request);
  if (!prepare(link, chain, request, entry, &log_entry)) return;
  bool may_wait = chain && (log_entry || !pwi_chain_is_settled(chain));
  status = request->refusal ? PAWL_OK : answer_room(link, request, pwi_entry_row_bytes(entry), &bytes);
  if (!status) status = pwi_handler_make_room(link, bytes, may_wait && bytes > 0, &buffer, &values);
  if (may_refuse(link, request, status)) { /* the log entry may be larger than a refusal needs */
    request->refusal = status;
    status = pwi_handler_make_room(link, 0, false, &buffer, &values);
  }
  if (status) {
    pwi_log_entry_release(log_entry);
    say_failed(link, chain, request, status);
    return;
  }
  if (log_entry && !request->refusal) request->result = pwi_log_entry_values(log_entry);
  request->may_view = may_view(link, request, filters, buffer, may_wait);
  pwi_shard_serve(handler->config.shard, request, values, &served);
  if (chain) pwi_chain_commit(handler->config.chains, chain, handler->config.shard, request, &served, NULL, log_entry);
  if (served.outcome.code == PWI_CODE_FAILED) served.outcome = failure(link, chain, request, served.outcome.status);
  if (served.is_deferred) {
    pwi_handler_unmake_room(buffer);
    return;
  }
  status = pwi_handler_filter(link, request, entry, filters, values, &served, &form);
  if (status) { /* the client may ask again; a push is then a duplicate */
    served.outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
    if (status == PAWL_NO_MEMORY) served.outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
    served.value_bytes = 0;
  }
  if (served.value_bytes == 0 && served.payload_size == 0) {
    pwi_handler_unmake_room(buffer);
    buffer = NULL;
  }
  status = make_payload_room(link, &served, may_wait, &buffer);
  if (status) {
    say_failed(link, chain, request, status);
    return;
  }
  if (link->account) pwi_quota_account_take(link->account, served.value_bytes, pwi_net_now(handler->config.net));
  answer(link, chain, request, entry, &served, buffer, values, form);
}

/* --- sums ----------------------------------------------------------------------------------------------- */

struct aggregate_answer {
  struct pwi_handler *handler;
  struct pwi_chain *chain;
  const struct pwi_entry *entry;
  struct pwi_request request;
};

/* Reads the rows after an aggregate. Without memory for them the client asks again, and its push is then a
 * duplicate. */
static void fetch_rows(struct pwi_handler_link *link, struct pwi_chain *chain, struct pwi_request *pull,
                       const struct pwi_entry *entry, struct pwi_served *served, struct pwi_handler_buffer **buffer,
                       char **values) {
  size_t bytes = 0;
  pawl_status status = answer_room(link, pull, pwi_entry_row_bytes(entry), &bytes);
  if (!status) status = pwi_handler_make_room(link, bytes, chain && !pwi_chain_is_settled(chain), buffer, values);
  if (!status) pwi_shard_serve(link->handler->config.shard, pull, *values, served);
  if (!status && served->outcome.code == PWI_CODE_OK) return;
  if (!status) pwi_handler_unmake_room(*buffer);
  *buffer = NULL;
  *served = (struct pwi_served){.outcome = {.code = PWI_CODE_NOT_HERE}};
}

/* Answers one sender of an aggregate. */
static void tell_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull) {
  struct aggregate_answer *telling = context;
  struct pwi_handler_link *link = pwi_handler_find_link(telling->handler, waiter.owner);
  struct pwi_served served = {.outcome = {.code = PWI_CODE_OK}};
  struct pwi_handler_buffer *buffer = NULL;
  char *values = NULL;
  if (!link) return;
  if (pull) {
    struct pwi_request fetched = *pull;
    fetch_rows(link, telling->chain, &fetched, telling->entry, &served, &buffer, &values);
  }
  telling->request.terms.number = waiter.number;
  telling->request.terms.claim = telling->request.arc; /* it was that of the last range */
  telling->request.task = task;
  answer(link, telling->chain, &telling->request, telling->entry, &served, buffer, values, (struct pwi_answer_form){0});
}

/* An aggregate becomes one change of the chain. */
static pawl_status settle_sum(struct pwi_handler *handler, struct pwi_aggregate *sum,
                              struct aggregate_answer *telling) {
  const struct pwi_request *request = &telling->request;
  size_t count = pwi_aggregate_stamps(sum, NULL);
  struct pwi_log_entry *log_entry = NULL;
  struct pwi_served served;
  pawl_status status = pwi_pages_grow(&handler->stamps, (count + 1) * sizeof(struct pwi_stamp));
  if (status) return status;
  struct pwi_stamp *stamps = handler->stamps.memory;
  pwi_aggregate_stamps(sum, stamps);
  if (count > 0) status = prepare_log_entry(handler, telling->chain, request, telling->entry, count, &log_entry);
  if (log_entry) telling->request.result = pwi_log_entry_values(log_entry);
  if (!status) status = pwi_shard_apply_sum(handler->config.shard, sum, request, &served);
  if (status) {
    pwi_log_entry_release(log_entry);
    return status;
  }
  pwi_chain_commit(handler->config.chains, telling->chain, handler->config.shard, request, &served, stamps, log_entry);
  return PAWL_OK;
}

/* Answers AWAITs whose tick is reached, once the chain has confirmed everything that is here. */
static void tell_released(struct pwi_handler *handler) {
  for (size_t i = 0; i < handler->released_count; i++) {
    const struct pwi_released *released = &handler->released[i];
    struct pwi_handler_link *link = pwi_handler_find_link(handler, released->waiter.owner);
    const struct pwi_entry *entry = pwi_catalogue_find(handler->config.numbers->catalogue, released->waiter.vector);
    struct pwi_served served = {.outcome = released->outcome};
    struct pwi_request request = {.terms = {.kind = PWI_REQUEST_AWAIT, .number = released->waiter.number}};
    struct pwi_chain *chain = NULL;
    if (!link) continue;
    if (entry) {
      uint64_t key = pwi_group_key(entry->name);
      request.terms.claim = pawl_range_of(key, key + 1);
      if (!route(link, &request, entry, &chain)) chain = NULL;
    }
    if (!chain) served.outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
    if (chain)
      answer(link, chain, &request, entry, &served, NULL, NULL, (struct pwi_answer_form){0});
    else
      pwi_handler_say(link, released->waiter.number, 0, &served.outcome);
  }
  handler->released_count = 0;
}

void pwi_handler_settle_sums(struct pwi_handler *handler) {
  struct aggregate_answer telling = {.handler = handler};
  struct pwi_shard *shard = handler->config.shard;
  struct pwi_aggregate *sum;
  if (!handler->config.chains) return;
  if (handler->released_count > 0) tell_released(handler);
  while ((sum = pwi_shard_next_sum(shard, &telling.request))) {
    telling.entry = pwi_catalogue_find(handler->config.numbers->catalogue, telling.request.terms.vector);
    struct pwi_place place = telling.entry ? pwi_entry_place(telling.entry) : (struct pwi_place){0};
    telling.chain =
        telling.entry ? pwi_chains_route(handler->config.chains, &place, telling.request.terms.claim) : NULL;
    pawl_status status = telling.chain ? settle_sum(handler, sum, &telling) : PAWL_NOT_FOUND;
    if (!status)
      pwi_shard_end_sum(shard, sum, tell_in, &telling);
    else if (status == PAWL_NODE_FULL || status == PAWL_QUOTA_MEMORY || status == PAWL_REFUSED ||
             status == PAWL_TOO_LARGE)
      /* each push uses up its number */
      pwi_shard_break_sum(shard, sum);
    else /* no effect: the clients send again */
      pwi_shard_drop_sum(shard, sum, PWI_CODE_NOT_HERE, PAWL_OK);
  }
}

/* If the body was dropped, the proof may be missing; the client is then asked for it again. */
static void take_proof(struct pwi_handler_link *link, const struct pwi_sections *sections) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_PROOF);
  uint8_t scratch[PWI_SEAL_SIZE];
  if (!section || section->length != sizeof scratch || link->inbox.is_dropped) return;
  pwi_shown_take(&link->shown, link->inbox.head.sender,
                 pwi_inbox_at(&link->inbox, section->offset, sizeof scratch, scratch), sizeof scratch);
  (void)pwi_handler_is_shown(link, (struct pwi_sender){link->inbox.head.sender});
}

/* If the body was not buffered for lack of memory, the request is refused, or fails, by its terms alone. */
static pawl_status deal_with(struct pwi_handler_link *link) {
  struct pwi_sections sections;
  char function[PAWL_RULE_MAX + 1];
  struct pwi_request request = {
      .sender = {link->inbox.head.sender}, .task = link->inbox.head.task, .tick = link->inbox.head.tick};
  pawl_status status = pwi_inbox_check(&link->inbox, &sections);
  if (!status) status = pwi_reading_terms(&link->inbox, &sections, &request.terms);
  if (!status) status = pwi_reading_operation(&link->inbox, &sections, &request.operation);
  if (!status) status = pwi_reading_function(&link->inbox, &sections, function, &request.function);
  if (!status) status = pwi_reading_first(&link->inbox, &sections, &request.first);
  if (status) return status;
  take_proof(link, &sections);
  request.waiter = (struct pwi_waiter){link->link.id, request.terms.number, request.terms.vector};

  const struct pwi_entry *entry = find_entry(link, request.terms.vector);
  struct pwi_outcome outcome;
  if (decide_early(link, &request, entry, &outcome) || decide_other(link, &request, &outcome)) {
    pwi_handler_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  status = charge(link, &request);
  if (status && !pwi_request_is_numbered(request.terms.kind)) {
    say_failed(link, NULL, &request, status);
    return PAWL_OK;
  }
  if (status) request.refusal = status;
  request.value_type = (uint8_t)entry->is.type; /* even if there are no values */
  status = link->inbox.is_dropped ? PAWL_NO_MEMORY
                                  : pwi_reading_body(&link->handler->reading, &link->inbox, &sections, &request);
  if (!status) status = pwi_reading_operand(&link->handler->reading, &link->inbox, &sections, &request);
  if (may_refuse(link, &request, status)) {
    request.refusal = status;
    status = PAWL_OK;
  }
  if (is_garbage(status)) return status;
  struct pwi_chain *chain = NULL;
  bool is_ours = route(link, &request, entry, &chain);
  if (chain && is_aggregate(&request)) {
    struct pwi_place place = pwi_entry_place(entry);
    request.arc = pwi_place_keys(&place, chain->positions);
    /* Otherwise the client cut it by another view. */
    is_ours = pawl_range_contains(request.arc, request.terms.claim);
  }
  if (!is_ours) { /* also without memory for the request: another server may have both */
    outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
    pwi_handler_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  bool is_relayed = pwi_sections_find(&sections, PWI_SECTION_CONTRIBUTORS) != NULL;
  if (is_relayed && request.terms.kind == PWI_REQUEST_PULL && !status) {
    bool may;
    status = pwi_handler_relayed_pull(link, &sections, &request, entry, &may);
    if (status || !may) return status;
  } else if (is_relayed) {
    if (!status && is_aggregate(&request)) status = pwi_shard_inspect(link->handler->config.shard, &request);
    if (status) request.refusal = status;
    status = pwi_handler_relayed(link, &sections, &request, entry, is_aggregate(&request) ? chain : NULL);
    if (!status) pwi_handler_settle_sums(link->handler);
    return status;
  }
  if (status) {
    say_failed(link, chain, &request, status);
    return PAWL_OK;
  }
  serve(link, &request, entry, chain);
  pwi_handler_settle_sums(link->handler);
  return PAWL_OK;
}

void pwi_handler_message_end(struct pwi_handler_link *link, pawl_status status) {
  if (status) return; /* incomplete: not applied */
  status = deal_with(link);
  if (status) {
    pwi_log(link->handler->config.log, PAWL_LOG_WARN, "request.bad", "link=%llu why=%s",
            (unsigned long long)link->link.id, pawl_status_name(status));
    pwi_net_close(link->handler->config.net, link->link, status);
  }
  pwi_inbox_end(&link->inbox);
}

bool pwi_handler_is_answering(const struct pwi_handler_link *link) {
  for (size_t i = 0; link && i < link->buffer_count; i++)
    if (link->buffers[i]->busy) return true;
  return false;
}

void pwi_handler_figures(const struct pwi_handler *handler, struct pwi_handler_figures *figures_out) {
  *figures_out = (struct pwi_handler_figures){handler->answer_bytes, handler->answers_dropped};
}
