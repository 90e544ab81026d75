/* Requests on their way in: receiving, checking, serving. */
#include "role/holder.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "role/holder_inside.h"
#include "role/planted.h"

#define ANSWER_MAX ((size_t)64 << 20) /* bytes of values that one answer may carry */
#define SCAN_ROWS_MAX ((uint64_t)1 << 16)

#define PUT_OFF_MAX 16384 /* answers of one link that wait for chains */

/* A head that has no memory for so many bytes is of no use as a head. That there is none for more says nothing about it. */
#define MODEST_BYTES ((size_t)4 << 20)

pawl_status pwi_holder_create(const struct pwi_holder_config *config, struct pwi_holder **holder_out) {
  struct pwi_holder *holder = pwi_alloc_zero(1, sizeof *holder);
  if (!holder) return PAWL_NO_MEMORY;
  holder->config = *config;
  *holder_out = holder;
  return PAWL_OK;
}

void pwi_holder_set_holding(struct pwi_holder *holder, struct pwi_holding *holding) {
  holder->config.holding = holding;
}

static void free_link(struct pwi_holder_link *link) {
  struct pwi_holder *holder = link->holder;
  if (link->before)
    link->before->next = link->next;
  else
    holder->links = link->next;
  if (link->next) link->next->before = link->before;
  pwi_holder_free_buffers(link);
  pwi_holder_exit(link);
  pwi_inbox_fini(&link->inbox);
  pwi_free(link->pace);
  pwi_free(link);
}

/* The net may be gone by now, and the regions with it. */
void pwi_holder_destroy(struct pwi_holder *holder) {
  if (!holder) return;
  while (holder->links) free_link(holder->links);
  pwi_staging_fini(&holder->staging);
  pwi_reading_fini(&holder->reading);
  pwi_pages_fini(&holder->stamps);
  pwi_holder_filters_fini(&holder->filters);
  pwi_free(holder->released);
  pwi_free(holder);
}

pawl_status pwi_holder_link_up(struct pwi_holder *holder, struct pwi_link link, const struct pwi_peering *peering,
                               const char *identity, const struct pwi_rights *rights, struct pwi_account *account,
                               struct pwi_holder_link **link_out) {
  struct pwi_holder_link *fresh = pwi_alloc_zero(1, sizeof *fresh);
  if (!fresh) return PAWL_NO_MEMORY;
  fresh->holder = holder;
  if (pwi_holder_enter(fresh, identity)) {
    pwi_free(fresh);
    return PAWL_NO_MEMORY;
  }
  fresh->link = link;
  fresh->peering = *peering;
  fresh->rights = *rights;
  fresh->account = account;
  fresh->inbox.shared = &holder->staging;
  fresh->next = holder->links;
  if (fresh->next) fresh->next->before = fresh;
  holder->links = fresh;
  *link_out = fresh;
  return PAWL_OK;
}

void pwi_holder_set_rights(struct pwi_holder_link *link, const struct pwi_rights *rights) { link->rights = *rights; }

void pwi_holder_link_down(struct pwi_holder_link *link) {
  if (!link) return;
  struct pwi_holding *holding = link->holder->config.holding;
  if (holding) pwi_holding_forget_waiters(holding, link->link.id);
  if (link->holder->config.chains) pwi_chains_forget_link(link->holder->config.chains, link);
  pwi_holder_close_buffers(link);
  free_link(link);
}

/* --- receiving ----------------------------------------------------------------------------------------------------- */

struct pwi_receive pwi_holder_message(struct pwi_holder_link *link, const struct pwi_message *message) {
  return pwi_inbox_begin(&link->inbox, message, &link->peering.data, link);
}

void pwi_holder_piece(struct pwi_holder_link *link, size_t offset, const void *data, size_t size) {
  pwi_inbox_piece(&link->inbox, offset, data, size);
}

/* --- serving -------------------------------------------------------------------------------------------------------- */

/* Others would wait for a member's push that was taken for a stranger's. */
static bool is_together(const struct pwi_request *request) { return pwi_terms_are_together(&request->terms); }

/* True if we lack news that the client has, and without which we would give a wrong answer. Whoever takes over from one that it
 * knows to be retired reads by a PUSHPULL: nothing of that one may be applied after it. */
static bool is_behind(const struct pwi_holder_link *link, const struct pwi_request *request,
                      const struct pwi_entry *entry) {
  const struct pwi_holder_numbers *numbers = link->holder->config.numbers;
  if (!entry && link->inbox.head.catalogue > (uint32_t)numbers->catalogue->number) return true;
  if (link->inbox.head.roster > (uint32_t)numbers->roster->number &&
      ((pwi_request_is_numbered(request->terms.kind) && !pwi_roster_is_live(numbers->roster, request->sender)) ||
       request->terms.kind == PWI_REQUEST_COLLECT || request->terms.kind == PWI_REQUEST_AWAIT ||
       request->terms.kind == PWI_REQUEST_ENTER || request->terms.kind == PWI_REQUEST_PUSHPULL || is_together(request)))
    return true;
  /* What a live sender did cannot be told for good. */
  struct pwi_sender other = {request->terms.other};
  return request->terms.kind == PWI_REQUEST_COLLECT && pwi_roster_is_live(numbers->roster, other);
}

/* A live sender's numbers are taken from nobody else. Who is not live is told so in any case. */
static bool is_impostor(struct pwi_holder_link *link, const struct pwi_request *request) {
  const struct pwi_holder_numbers *numbers = link->holder->config.numbers;
  if (!pwi_request_is_numbered(request->terms.kind) || link->shown.bound == request->sender.id) return false;
  uint64_t verifier = numbers->node | (numbers->is_sender ? PWI_VERIFIER_IS_SENDER : 0);
  return pwi_roster_is_live(numbers->roster, request->sender) &&
         !pwi_shown_is(&link->shown, numbers->roster, numbers->cluster, verifier, request->sender.id);
}

/* What a sender did, and on which keys, is told to the client that it was and to nobody else: to one that shows the same key. */
static bool may_collect(struct pwi_holder_link *link, const struct pwi_request *request, struct pwi_outcome *outcome) {
  const struct pwi_holder_numbers *numbers = link->holder->config.numbers;
  const struct pwi_roster_sender *sender = pwi_roster_find(numbers->roster, request->sender);
  const struct pwi_roster_sender *other = pwi_roster_find(numbers->roster, (struct pwi_sender){request->terms.other});
  uint64_t verifier = numbers->node | (numbers->is_sender ? PWI_VERIFIER_IS_SENDER : 0);
  *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE}; /* we may not have heard of it yet, or it not of us */
  if (!sender || sender->retired) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_UNPROVEN};
  if (!pwi_shown_is(&link->shown, numbers->roster, numbers->cluster, verifier, request->sender.id)) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_FORBIDDEN};
  return !other || memcmp(sender->key, other->key, sizeof sender->key) == 0;
}

static bool is_allowed(const struct pwi_holder_link *link, const struct pwi_request *request,
                       const struct pwi_entry *entry) {
  bool changes = pwi_request_is_numbered(request->terms.kind) || request->terms.kind == PWI_REQUEST_COLLECT;
  return changes ? pwi_rights_may_change(&link->rights, entry->name) : pwi_rights_may_read(&link->rights, entry->name);
}

/* Of another space nothing is here, whether it exists or not. */
static const struct pwi_entry *find_entry(const struct pwi_holder_link *link, struct pwi_vector_id vector) {
  const struct pwi_entry *entry = pwi_catalogue_find(link->holder->config.numbers->catalogue, vector);
  return entry && pwi_rights_reach(&link->rights, entry->name) ? entry : NULL;
}

/* Past its rate a link is refused what moves values. Ticks and pushes that others of a group wait for are counted, and go
 * through. */
static pawl_status charge(struct pwi_holder_link *link, const struct pwi_request *request) {
  if (!link->account) return PAWL_OK;
  int64_t now = pwi_net_now(link->holder->config.net);
  bool may = pwi_account_may(link->account, now);
  if (may || is_together(request) || !pwi_request_has_rows(request->terms.kind)) {
    pwi_account_take(link->account, link->inbox.body_size, now);
    return PAWL_OK;
  }
  return PAWL_QUOTA_RATE;
}

/* What is meant is not what is here: it was loaded from a checkpoint since, or we have not heard of that yet. */
static bool is_other_incarnation(const struct pwi_holder_link *link, const struct pwi_request *request,
                                 struct pwi_outcome *outcome) {
  uint32_t here = pwi_holding_incarnation(link->holder->config.holding, request->terms.vector);
  *outcome = request->terms.incarnation < here ? (struct pwi_outcome){.code = PWI_CODE_RESTORED, .found = here}
                                               : (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  return request->terms.incarnation != here;
}

/* Of two vectors, the other one: whether it can be read here, by this client. What cannot be uses up its number, if it has
 * one. */
static bool decide_other(const struct pwi_holder_link *link, struct pwi_request *request, struct pwi_outcome *outcome) {
  const struct pwi_holder_numbers *numbers = link->holder->config.numbers;
  const struct pwi_operation *operation = &request->operation;
  if (operation->other.id == 0) return false;
  const struct pwi_entry *entry = find_entry(link, operation->other);
  bool is_behind = !entry && link->inbox.head.catalogue > (uint32_t)numbers->catalogue->number;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  if (is_behind ||
      (entry && operation->incarnation > pwi_holding_incarnation(link->holder->config.holding, operation->other)))
    return true;
  pawl_status status = entry ? PAWL_OK : PAWL_NOT_FOUND;
  if (entry && !pwi_rights_may_read(&link->rights, entry->name)) status = PAWL_FORBIDDEN;
  if (status == PAWL_OK) return false;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
  request->refusal = status;
  return !pwi_request_is_numbered(request->terms.kind);
}

/* Decided before the holding is asked: PAWL_OK in `outcome->code` if it is to be. */
static bool decide_early(struct pwi_holder_link *link, const struct pwi_request *request, const struct pwi_entry *entry,
                         struct pwi_outcome *outcome) {
  if (is_behind(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  else if (is_impostor(link, request))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_UNPROVEN};
  else if (!entry || !pwi_holding_has(link->holder->config.holding, entry->id))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_NOT_FOUND};
  else if (!is_allowed(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_FORBIDDEN};
  else if (request->terms.kind != PWI_REQUEST_COLLECT || may_collect(link, request, outcome))
    return is_other_incarnation(link, request, outcome);
  return true;
}

/* The chain whose head we are: false if the claim is not ours to serve. A holder without chains serves what it holds. */
static bool route(const struct pwi_holder_link *link, const struct pwi_request *request, const struct pwi_entry *entry,
                  struct pwi_chain **chain_out) {
  struct pwi_place place = pwi_entry_place(entry);
  if (!link->holder->config.chains) return true;
  if (request->terms.claim.begin >= place.size) return true; /* the holding will say what is wrong with it */
  *chain_out = pwi_chains_route(link->holder->config.chains, &place, request->terms.claim);
  return *chain_out != NULL;
}

/* What the answer may have to hold: values and, behind them, for a scan keys, and clocks. */
static pawl_status answer_room(struct pwi_holder_link *link, struct pwi_request *request, size_t row_bytes,
                               size_t *bytes_out) {
  size_t values;
  if (request->terms.kind == PWI_REQUEST_SCAN) {
    uint64_t most = ANSWER_MAX / row_bytes; /* the rest comes with the next one */
    if (most > SCAN_ROWS_MAX) most = SCAN_ROWS_MAX;
    if (request->terms.rows > most) request->terms.rows = most > 0 ? most : 1;
  }
  pawl_status status = pwi_holding_answer_bytes(link->holder->config.holding, request, ANSWER_MAX, &values);
  if (status) return status;
  *bytes_out = values;
  if (request->terms.kind == PWI_REQUEST_SCAN) /* the keys are a section more, too */
    *bytes_out += (size_t)request->terms.rows * sizeof(uint64_t) + PWI_ANSWER_PREFIX;
  size_t clocks = pwi_holding_clock_bytes(link->holder->config.holding, request);
  if (clocks > ANSWER_MAX) return PAWL_TOO_LARGE;
  if (clocks > 0) *bytes_out += clocks + PWI_ANSWER_PREFIX; /* a section more */
  return PAWL_OK;
}

/* A payload that the net does not copy, or that has to wait, needs a buffer of the link as well. */
static pawl_status make_payload_room(struct pwi_holder_link *link, const struct pwi_served *served, bool may_wait,
                                     struct pwi_holder_buffer **buffer) {
  char *unused;
  if (*buffer || served->payload_size == 0) return PAWL_OK;
  if (served->payload_size > ANSWER_MAX) return PAWL_TOO_LARGE;
  if (!may_wait && served->payload_size + 2 * PWI_ANSWER_PREFIX <= PWI_NET_COPY_MAX) return PAWL_OK;
  return pwi_holder_make_room(link, served->payload_size + PWI_NET_COPY_MAX, true, buffer, &unused);
}

static bool is_early(const struct pwi_request *request, const struct pwi_served *served) {
  bool has_effect = served->effect != PWI_EFFECT_NONE;
  if (pwi_is_planted(PWI_PLANTED_EARLY_ACK)) return has_effect;
  return pwi_is_planted(PWI_PLANTED_DUPLICATE_ACK) && !has_effect && pwi_request_is_numbered(request->terms.kind);
}

static void starve(struct pwi_holder *holder, struct pwi_chain *chain) {
  struct pwi_chains *chains = holder->config.chains;
  if (chain && chains->starve) chains->starve(chains->context, chain);
}

/* The answer goes out now, or when everything that it has seen is with all members of the chain. */
static void answer(struct pwi_holder_link *link, struct pwi_chain *chain, const struct pwi_request *request,
                   const struct pwi_entry *entry, struct pwi_served *served, struct pwi_holder_buffer *buffer,
                   const char *values, struct pwi_answer_form form) {
  enum pawl_type type = entry->is.type;
  struct pwi_place place = pwi_entry_place(entry);
  struct pwi_put_off put_off = {.link = link,
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
  if (!chain || !tells || pwi_chain_is_settled(chain) || is_early(request, served)) {
    pwi_holder_send(&put_off);
    return;
  }
  put_off.positions = pawl_range_of(pwi_place_position(&place, request->terms.claim.begin),
                                    pwi_place_position(&place, request->terms.claim.end - 1) + 1);
  if (link->put_off_count >= PUT_OFF_MAX) { /* far more than a client has under way: what was done will be found done */
    struct pwi_outcome later = {.code = PWI_CODE_NOT_HERE};
    pwi_holder_unmake_room(buffer);
    pwi_holder_say(link, request->terms.number, request->task, &later);
    return;
  }
  pwi_holder_keep_payload(&put_off);
  if (!pwi_chain_put_off(chain, &put_off)) {
    link->put_off_count++;
    return;
  }
  /* It cannot be remembered: the client will ask again over another link. */
  starve(link->holder, chain);
  pwi_holder_unmake_room(buffer);
  pwi_net_close(link->holder->config.net, link->link, PAWL_NO_MEMORY);
}

/* Bytes that the request takes here, for what came and for the rows that it is about; SIZE_MAX if they cannot be counted. */
static size_t bytes_needed(const struct pwi_holder_link *link, const struct pwi_request *request) {
  const struct pwi_entry *entry = pwi_catalogue_find(link->holder->config.numbers->catalogue, request->terms.vector);
  struct pwi_table_options table = entry ? pwi_entry_table(entry) : (struct pwi_table_options){0};
  size_t row = entry ? pwi_entry_row_bytes(entry) + table.state_width * pawl_type_size(entry->is.type) : 0, bytes;
  bool is_counted = request->terms.rows <= SIZE_MAX && pwi_mul_size((size_t)request->terms.rows, row, &bytes) &&
                    pwi_add_size(bytes, link->inbox.body_size, &bytes);
  return is_counted ? bytes : SIZE_MAX;
}

/* Whoever stands behind a head without memory has everything and will be the head: the client tries again. But nobody can have a
 * head deposed by asking for much. */
static struct pwi_outcome failure(struct pwi_holder_link *link, struct pwi_chain *chain,
                                  const struct pwi_request *request, pawl_status status) {
  bool is_starved = status == PAWL_NO_MEMORY && chain && pwi_chain_has_followers(chain) &&
                    bytes_needed(link, request) <= MODEST_BYTES;
  if (is_starved) starve(link->holder, chain);
  if (is_starved || status == PAWL_QUEUE_FULL) return (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  return (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
}

static void say_failed(struct pwi_holder_link *link, struct pwi_chain *chain, const struct pwi_request *request,
                       pawl_status status) {
  struct pwi_outcome outcome = failure(link, chain, request, status);
  pwi_holder_say(link, request->terms.number, request->task, &outcome);
}

/* What no client sends: the link is not worth keeping. */
static bool is_garbage(pawl_status status) { return status == PAWL_CORRUPT || status == PAWL_TRUNCATED; }

/* A push that cannot be served can still be refused: that takes next to nothing, and uses up its number, which later pushes name.
 * A member of a group is waited for, and has to try again, unless it is for more memory than there may ever be. */
static bool may_refuse(const struct pwi_holder_link *link, const struct pwi_request *request, pawl_status why) {
  if (why == PAWL_OK || why == PAWL_QUEUE_FULL || is_garbage(why) || request->refusal) return false;
  if (!pwi_request_has_rows(request->terms.kind)) return false;
  return why != PAWL_NO_MEMORY || !is_together(request) || bytes_needed(link, request) > MODEST_BYTES;
}

static pawl_status prepare_parcel(struct pwi_holder *holder, struct pwi_chain *chain, const struct pwi_request *request,
                                  const struct pwi_entry *entry, size_t stamps, struct pwi_parcel **parcel_out) {
  struct pwi_table_options table = pwi_entry_table(entry);
  struct pwi_request changes = *request;
  size_t state = table.state_width * pawl_type_size(entry->is.type);
  if (request->refusal) {
    changes.terms.keys = PWI_KEYS_RANGE;
    changes.terms.rows = 0;
  }
  return pwi_chain_prepare(holder->config.chains, chain, &changes, pwi_entry_row_bytes(entry), state, stamps,
                           parcel_out);
}

/* A parcel for what the request may change; false if an answer was given instead. */
static bool prepare(struct pwi_holder_link *link, struct pwi_chain *chain, struct pwi_request *request,
                    const struct pwi_entry *entry, struct pwi_parcel **parcel_out) {
  *parcel_out = NULL;
  if (!chain || !pwi_request_is_numbered(request->terms.kind)) return true;
  pawl_status status = prepare_parcel(link->holder, chain, request, entry, 0, parcel_out);
  if (may_refuse(link, request, status)) {
    request->refusal = status;
    status = prepare_parcel(link->holder, chain, request, entry, 0, parcel_out);
  }
  if (!status) return true;
  say_failed(link, chain, request, status);
  return false;
}

static void serve(struct pwi_holder_link *link, struct pwi_request *request, const struct pwi_entry *entry,
                  struct pwi_chain *chain) {
  struct pwi_holder *holder = link->holder;
  struct pwi_holder_buffer *buffer;
  struct pwi_parcel *parcel;
  struct pwi_served served;
  struct pawl_filters *filters = NULL;
  struct pwi_answer_form form;
  char *values;
  size_t bytes = 0;
  pawl_status status = request->refusal ? PAWL_OK : pwi_holding_inspect(holder->config.holding, request);
  if (!status) {
    status = pwi_holder_find_filters(holder, request, entry, &filters);
    if (status && status != PAWL_NO_MEMORY) status = PAWL_UNSUPPORTED;
  }
  if (may_refuse(link, request, status)) {
    request->refusal = status;
    status = PAWL_OK;
  }
  if (status) {
    say_failed(link, chain, request, status);
    return;
  }
  if (request->terms.kind == PWI_REQUEST_LINEAR && !request->refusal)
    request->refusal = pwi_holding_cut_linear(holder->config.holding, request);
  if (!prepare(link, chain, request, entry, &parcel)) return;
  bool may_wait = chain && (parcel || !pwi_chain_is_settled(chain));
  status = request->refusal ? PAWL_OK : answer_room(link, request, pwi_entry_row_bytes(entry), &bytes);
  if (!status) status = pwi_holder_make_room(link, bytes, may_wait && bytes > 0, &buffer, &values);
  if (may_refuse(link, request, status)) { /* the parcel may be larger than is needed now */
    request->refusal = status;
    status = pwi_holder_make_room(link, 0, false, &buffer, &values);
  }
  if (status) {
    pwi_parcel_release(parcel);
    say_failed(link, chain, request, status);
    return;
  }
  if (parcel && !request->refusal) request->result = pwi_parcel_values(parcel);
  pwi_holding_serve(holder->config.holding, request, values, &served);
  if (chain) pwi_chain_commit(holder->config.chains, chain, holder->config.holding, request, &served, NULL, parcel);
  if (served.outcome.code == PWI_CODE_FAILED) served.outcome = failure(link, chain, request, served.outcome.status);
  if (served.put_off) {
    pwi_holder_unmake_room(buffer);
    return;
  }
  status = pwi_holder_filter(link, request, entry, filters, values, &served, &form);
  if (status) { /* without memory it may be asked for again: a push is then a duplicate */
    served.outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
    if (status == PAWL_NO_MEMORY) served.outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
    served.value_bytes = 0;
  }
  if (served.value_bytes == 0 && served.payload_size == 0) {
    pwi_holder_unmake_room(buffer);
    buffer = NULL;
  }
  status = make_payload_room(link, &served, may_wait, &buffer);
  if (status) {
    say_failed(link, chain, request, status);
    return;
  }
  if (link->account) pwi_account_take(link->account, served.value_bytes, pwi_net_now(holder->config.net));
  answer(link, chain, request, entry, &served, buffer, values, form);
}

/* --- sums ------------------------------------------------------------------------------------------------------------ */

static struct pwi_holder_link *find_link(const struct pwi_holder *holder, uint64_t id) {
  struct pwi_holder_link *link = holder->links;
  while (link && link->link.id != id) link = link->next;
  return link;
}

struct telling {
  struct pwi_holder *holder;
  struct pwi_chain *chain;
  const struct pwi_entry *entry;
  struct pwi_request request;
};

/* The rows as the sum has left them. Without room for them they have to be asked for again, and the push is then a duplicate. */
static void fetch_rows(struct pwi_holder_link *link, struct pwi_chain *chain, struct pwi_request *pull,
                       const struct pwi_entry *entry, struct pwi_served *served, struct pwi_holder_buffer **buffer,
                       char **values) {
  size_t bytes = 0;
  pawl_status status = answer_room(link, pull, pwi_entry_row_bytes(entry), &bytes);
  if (!status) status = pwi_holder_make_room(link, bytes, chain && !pwi_chain_is_settled(chain), buffer, values);
  if (!status) pwi_holding_serve(link->holder->config.holding, pull, *values, served);
  if (!status && served->outcome.code == PWI_CODE_OK) return;
  if (!status) pwi_holder_unmake_room(*buffer);
  *buffer = NULL;
  *served = (struct pwi_served){.outcome = {.code = PWI_CODE_NOT_HERE}};
}

/* One of those whose push is in. */
static void tell_in(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull) {
  struct telling *telling = context;
  struct pwi_holder_link *link = find_link(telling->holder, waiter.owner);
  struct pwi_served served = {.outcome = {.code = PWI_CODE_OK}};
  struct pwi_holder_buffer *buffer = NULL;
  char *values = NULL;
  if (!link) return;
  if (pull) {
    struct pwi_request fetched = *pull;
    fetch_rows(link, telling->chain, &fetched, telling->entry, &served, &buffer, &values);
  }
  telling->request.terms.number = waiter.number;
  telling->request.task = task;
  answer(link, telling->chain, &telling->request, telling->entry, &served, buffer, values, (struct pwi_answer_form){0});
}

/* The sum becomes one change of the chain. */
static pawl_status settle_sum(struct pwi_holder *holder, struct pwi_gathering *sum, struct telling *telling) {
  const struct pwi_request *request = &telling->request;
  size_t count = pwi_gathering_stamps(sum, NULL);
  struct pwi_parcel *parcel = NULL;
  struct pwi_served served;
  pawl_status status = pwi_pages_grow(&holder->stamps, (count + 1) * sizeof(struct pwi_stamp));
  if (status) return status;
  struct pwi_stamp *stamps = holder->stamps.memory;
  pwi_gathering_stamps(sum, stamps);
  if (count > 0) status = prepare_parcel(holder, telling->chain, request, telling->entry, count, &parcel);
  if (parcel) telling->request.result = pwi_parcel_values(parcel);
  if (!status) status = pwi_holding_apply_sum(holder->config.holding, sum, request, &served);
  if (status) {
    pwi_parcel_release(parcel);
    return status;
  }
  pwi_chain_commit(holder->config.chains, telling->chain, holder->config.holding, request, &served, stamps, parcel);
  return PAWL_OK;
}

/* Whoever waited for ticks that are counted now is told as everybody is: once the chain has all that we have. */
static void tell_released(struct pwi_holder *holder) {
  for (size_t i = 0; i < holder->released_count; i++) {
    const struct pwi_released *released = &holder->released[i];
    struct pwi_holder_link *link = find_link(holder, released->waiter.owner);
    const struct pwi_entry *entry = pwi_catalogue_find(holder->config.numbers->catalogue, released->waiter.vector);
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
      pwi_holder_say(link, released->waiter.number, 0, &served.outcome);
  }
  holder->released_count = 0;
}

void pwi_holder_settle_sums(struct pwi_holder *holder) {
  struct telling telling = {.holder = holder};
  struct pwi_holding *holding = holder->config.holding;
  struct pwi_gathering *sum;
  if (!holder->config.chains) return;
  if (holder->released_count > 0) tell_released(holder);
  while ((sum = pwi_holding_next_sum(holding, &telling.request))) {
    telling.entry = pwi_catalogue_find(holder->config.numbers->catalogue, telling.request.terms.vector);
    struct pwi_place place = telling.entry ? pwi_entry_place(telling.entry) : (struct pwi_place){0};
    telling.chain = telling.entry ? pwi_chains_route(holder->config.chains, &place, telling.request.terms.claim) : NULL;
    pawl_status status = telling.chain ? settle_sum(holder, sum, &telling) : PAWL_NOT_FOUND;
    if (!status)
      pwi_holding_end_sum(holding, sum, tell_in, &telling);
    else if (status == PAWL_NODE_FULL || status == PAWL_QUOTA_MEMORY || status == PAWL_REFUSED ||
             status == PAWL_TOO_LARGE)
      /* then each uses up its own number */
      pwi_holding_break_sum(holding, sum);
    else /* nothing has happened: they send it again */
      pwi_holding_drop_sum(holding, sum, PWI_CODE_NOT_HERE, PAWL_OK);
  }
}

/* Where only the beginning of a message is here the proof may be missing: it is then asked for. */
static void take_proof(struct pwi_holder_link *link, const struct pwi_sections *sections) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_PROOF);
  uint8_t scratch[PWI_SEAL_SIZE];
  if (!section || section->length != sizeof scratch || link->inbox.is_dropped) return;
  pwi_shown_take(&link->shown, link->inbox.head.sender,
                 pwi_inbox_at(&link->inbox, section->offset, sizeof scratch, scratch), sizeof scratch);
}

/* Of what there was no memory to receive only the beginning is here: it is refused, or fails, by its terms alone. */
static pawl_status deal_with(struct pwi_holder_link *link) {
  struct pwi_sections sections;
  struct pwi_request request = {
      .sender = {link->inbox.head.sender}, .task = link->inbox.head.task, .tick = link->inbox.head.tick};
  pawl_status status = pwi_inbox_check(&link->inbox, &sections);
  if (!status) status = pwi_reading_terms(&link->inbox, &sections, &request.terms);
  if (!status) status = pwi_reading_operation(&link->inbox, &sections, &request.operation);
  if (status) return status;
  take_proof(link, &sections);
  request.waiter = (struct pwi_waiter){link->link.id, request.terms.number, request.terms.vector};

  const struct pwi_entry *entry = find_entry(link, request.terms.vector);
  struct pwi_outcome outcome;
  if (decide_early(link, &request, entry, &outcome) || decide_other(link, &request, &outcome)) {
    pwi_holder_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  status = charge(link, &request);
  if (status && !pwi_request_is_numbered(request.terms.kind)) {
    say_failed(link, NULL, &request, status);
    return PAWL_OK;
  }
  if (status) request.refusal = status;
  request.value_type = (uint8_t)entry->is.type; /* of no values, if none came */
  status = link->inbox.is_dropped ? PAWL_NO_MEMORY
                                  : pwi_reading_body(&link->holder->reading, &link->inbox, &sections, &request);
  if (may_refuse(link, &request, status)) {
    request.refusal = status;
    status = PAWL_OK;
  }
  struct pwi_chain *chain = NULL;
  bool is_ours = route(link, &request, entry, &chain);
  if (status && !is_garbage(status)) {
    say_failed(link, is_ours ? chain : NULL, &request, status);
    return PAWL_OK;
  }
  if (status) return status;
  if (chain && is_together(&request)) {
    struct pwi_place place = pwi_entry_place(entry);
    request.arc = pwi_place_keys(&place, chain->positions);
    is_ours = pawl_range_contains(request.arc, request.terms.claim); /* else it was cut by another view */
  }
  if (!is_ours) {
    outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
    pwi_holder_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  serve(link, &request, entry, chain);
  pwi_holder_settle_sums(link->holder);
  return PAWL_OK;
}

void pwi_holder_message_end(struct pwi_holder_link *link, pawl_status status) {
  if (status) return; /* incomplete: nothing of it is applied */
  status = deal_with(link);
  if (status) {
    pwi_log(link->holder->config.log, PAWL_LOG_WARN, "request.bad", "link=%llu why=%s",
            (unsigned long long)link->link.id, pawl_status_name(status));
    pwi_net_close(link->holder->config.net, link->link, status);
  }
  pwi_inbox_end(&link->inbox);
}

void pwi_holder_figures(const struct pwi_holder *holder, struct pwi_holder_figures *figures_out) {
  *figures_out = (struct pwi_holder_figures){holder->answer_bytes, holder->answers_dropped};
}
