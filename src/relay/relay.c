/* The life of a relay, and the requests of its children. */
#include "relay/relay.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "relay/inside.h"
#include "wire/keys.h"
#include "wire/values.h"

#define MEMORY_DEFAULT (UINT64_C(1) << 30)
#define SECOND INT64_C(1000000000)
#define LIST_MAX ((uint32_t)1 << 24)

/* --- requests ------------------------------------------------------------------------------------------- */

static struct relay_child *child_of(struct pwi_relay *relay, struct pwi_link link) {
  struct relay_child *child = pwi_idmap_get(&relay->children, link.id);
  if (child) return child;
  child = pwi_alloc_zero(1, sizeof *child);
  if (child && !pwi_idmap_put(&relay->children, link.id, child)) return child;
  pwi_free(child);
  return NULL;
}

/* Returns true if the link is bound to the sender of the message, by a proof now or before. */
static bool is_proven(struct pwi_relay *relay, struct relay_child *child, const struct pwi_control *control,
                      const void *body) {
  size_t size;
  struct pwi_client_state state;
  const void *seal = pwi_control_find(control, body, PWI_SECTION_PROOF, &size);
  pwi_client_state(relay->client, &state);
  if (seal && size == PWI_SEAL_SIZE) {
    pwi_shown_take(&child->shown, control->head.sender, seal, size);
    memcpy(child->seal, seal, size);
    child->proved_to = state.sender;
  }
  return pwi_shown_is(&child->shown, pwi_client_membership(relay->client), state.cluster,
                      state.sender | PWI_VERIFIER_IS_SENDER, control->head.sender);
}

static pawl_status read_keys(const struct pwi_control *control, const void *body, struct relay_request *push,
                             uint64_t **keys_out) {
  const struct pwi_section *section = pwi_sections_find(&control->sections, PWI_SECTION_KEYS);
  *keys_out = NULL;
  if (push->terms.keys == PWI_KEYS_RANGE) return PAWL_OK;
  if (push->terms.keys != PWI_KEYS_LIST) return PAWL_UNSUPPORTED;
  if (!section || section->count != push->terms.rows) return PAWL_CORRUPT;
  if (section->count > LIST_MAX) return PAWL_TOO_LARGE;
  size_t count = section->count;
  const char *data = (const char *)body + section->offset;
  uint64_t *keys = pwi_resize_array(NULL, count + 1, sizeof *keys);
  if (!keys) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_UNSUPPORTED;
  if (section->codec == PWI_SECTION_CODEC_KEYS) {
    status = pwi_keys_decode(data, section->length, keys, count, &count);
  } else if (section->codec == PWI_CODEC_RAW && section->length == count * sizeof *keys) {
    memcpy(keys, data, section->length);
    status = pwi_keys_rise(keys, count) ? PAWL_OK : PAWL_UNSORTED;
  }
  if (!status && count != section->count) status = PAWL_CORRUPT;
  if (status) {
    pwi_free(keys);
    return status;
  }
  *keys_out = keys;
  push->keys = keys;
  return PAWL_OK;
}

/* Values must be plain, and as many as the rows need. */
static bool read_values(const struct pwi_control *control, const void *body, struct relay_request *push) {
  const struct pwi_section *section = pwi_sections_find(&control->sections, PWI_SECTION_VALUES);
  size_t bytes;
  if (!section || section->codec != PWI_CODEC_RAW || section->value_type != (uint8_t)push->entry->is.type) return false;
  if (!pwi_mul_size((size_t)push->terms.rows, pwi_entry_pushed_bytes(push->entry), &bytes)) return false;
  push->values = (const char *)body + section->offset;
  push->bytes = section->length;
  return bytes > 0 && bytes == section->length;
}

static bool is_pull(const struct pwi_terms *terms) { return terms->kind == PWI_REQUEST_PULL && terms->other != 0; }

/* A child that knows more of vectors or of the view may have seen what this relay has not. */
static bool is_behind(const struct pwi_relay *relay, const struct pwi_control *control) {
  const struct pwi_view *view = pwi_client_view(relay->client);
  return !view || control->head.view > (uint32_t)view->epoch ||
         control->head.catalogue > (uint32_t)pwi_client_catalogue(relay->client)->number;
}

static bool is_sound(const struct pwi_relay *relay, const struct pwi_control *control, struct relay_request *push) {
  const struct pwi_membership *membership = pwi_client_membership(relay->client);
  const struct pwi_terms *terms = &push->terms;
  push->entry = pwi_catalogue_find(pwi_client_catalogue(relay->client), terms->vector);
  if (terms->rows == 0 || !push->entry) return false;
  if (is_pull(terms) && (is_behind(relay, control) || terms->clocks)) return false;
  if (is_pull(terms) && pwi_sections_find(&control->sections, PWI_SECTION_FILTERS)) return false;
  if (push->entry->kind != PWI_ENTRY_VECTOR || push->entry->incarnation != terms->incarnation) return false;
  /* Coefficients of an operand are no rows that could be added, even if they are as long. */
  if (pwi_sections_find(&control->sections, PWI_SECTION_OPERAND)) return false;
  if (terms->keys == PWI_KEYS_RANGE && pawl_range_size(terms->range) != terms->rows) return false;
  /* What the relay sends in its own name must be no older than what its children know. */
  return control->head.membership <= (uint32_t)membership->number;
}

/* The contributors of an aggregate or of a pull of a relay, or the sender itself. `*all_out` is freed by the caller. */
static pawl_status read_contributors(const struct relay_child *child, const struct pwi_control *control,
                                     const void *body, struct relay_request *push, struct pwi_contributor **all_out) {
  size_t size;
  const void *bytes = pwi_control_find(control, body, PWI_SECTION_CONTRIBUTORS, &size);
  if (bytes) {
    pawl_status status = pwi_contributors_decode(bytes, size, all_out, &push->count, &push->hops);
    push->contributors = *all_out;
    return status;
  }
  struct pwi_contributor *self = pwi_alloc_zero(1, sizeof *self);
  if (!self) return PAWL_NO_MEMORY;
  *self = (struct pwi_contributor){.sender = {control->head.sender},
                                   .task = is_pull(&push->terms) ? 1 : control->head.task,
                                   .prior = is_pull(&push->terms) ? 0 : push->terms.prior,
                                   .settled = push->terms.settled,
                                   .relay = child->proved_to};
  memcpy(self->seal, child->seal, sizeof self->seal);
  push->contributors = *all_out = self;
  push->count = 1;
  return self->task != 0 && self->prior < self->task ? PAWL_OK : PAWL_CORRUPT;
}

static bool is_cycle(struct pwi_relay *relay, const struct relay_request *push) {
  if (push->hops < PWI_RELAY_HOPS_MAX) return false;
  pwi_log(relay->config.log, PAWL_LOG_WARN, "relay.cycle",
          "vector=%s tick=%llu hops=%u what=relays-send-to-one-another-in-a-circle", push->entry->name,
          (unsigned long long)push->tick, push->hops);
  return true;
}

/* Takes a push or pull whose sender is proven. Only malformed bytes are an error. Only a relay may pull for others:
 * rows that are here are given without asking a server. */
static pawl_status take(struct pwi_relay *relay, const struct relay_child *child, const struct pwi_control *control,
                        const void *body, struct relay_request *push, bool *taken_out) {
  struct pwi_contributor *all = NULL;
  uint64_t *keys = NULL;
  *taken_out = false;
  bool pulls = is_pull(&push->terms);
  if (relay->is_leaving || !is_sound(relay, control, push)) return PAWL_OK;
  if (!pulls && !read_values(control, body, push)) return PAWL_OK;
  if (pulls && pwi_sections_find(&control->sections, PWI_SECTION_CONTRIBUTORS) &&
      !pwi_relay_is_listed(pwi_client_membership(relay->client), control->head.sender))
    return PAWL_OK;
  pawl_status status = read_keys(control, body, push, &keys);
  if (!status) status = read_contributors(child, control, body, push, &all);
  if (!status && !is_cycle(relay, push)) *taken_out = pulls ? pwi_relay_read(relay, push) : pwi_relay_take(relay, push);
  pwi_free(all);
  pwi_free(keys);
  return status == PAWL_CORRUPT || status == PAWL_TRUNCATED ? status : PAWL_OK;
}

static void say(struct pwi_relay *relay, const struct relay_waiter *waiter, enum pwi_code code, pawl_status why) {
  pwi_relay_answer(relay, waiter, &(struct pwi_outcome){.code = code, .status = why});
}

static pawl_status request(void *context, struct pwi_link link, const struct pwi_peering *peering,
                           const struct pwi_control *control, const void *body) {
  struct pwi_relay *relay = context;
  struct relay_request push = {.tick = control->head.tick};
  bool is_taken;
  size_t size;
  (void)peering;
  if (control->head.kind != PWI_SAY_REQUEST) return PAWL_LINK_PROTOCOL;
  const void *terms = pwi_control_find(control, body, PWI_SECTION_TERMS, &size);
  pawl_status status = terms ? pwi_terms_decode(terms, size, &push.terms) : PAWL_CORRUPT;
  if (status) return status;
  push.waiter = (struct relay_waiter){
      .link = link, .number = push.terms.number, .task = control->head.task, .sender = control->head.sender};
  if (!pwi_terms_are_aggregate(&push.terms) && !is_pull(&push.terms)) {
    say(relay, &push.waiter, PWI_CODE_FAILED, PAWL_UNSUPPORTED);
    return PAWL_OK;
  }
  struct relay_child *child = child_of(relay, link);
  if (!child) return PAWL_NO_MEMORY;
  push.waiter.priority = child->priority;
  if (!is_proven(relay, child, control, body)) {
    say(relay, &push.waiter, PWI_CODE_UNPROVEN, PAWL_OK);
    return PAWL_OK;
  }
  status = take(relay, child, control, body, &push, &is_taken);
  if (status) return status;
  if (!is_taken) {
    relay->figures.refused++;
    say(relay, &push.waiter, PWI_CODE_DIRECT, PAWL_OK);
  }
  pwi_relay_look(relay, pwi_net_now(relay->config.net));
  return PAWL_OK;
}

/* --- the client's events -------------------------------------------------------------------------------- */

static pawl_status link_up(void *context, struct pwi_link link, const struct pwi_link_info *info,
                           const struct pwi_peering *peering) {
  struct relay_child *child = child_of(context, link);
  return child ? pwi_relay_greet(context, child, info, peering) : PAWL_NO_MEMORY;
}

static pawl_status priority(void *context, struct pwi_link link, uint64_t stated) {
  return pwi_relay_hear_priority(context, link, stated);
}

static void link_down(void *context, struct pwi_link link) {
  struct pwi_relay *relay = context;
  struct relay_child *child = pwi_idmap_get(&relay->children, link.id);
  pwi_relay_lose(relay, link);
  pwi_relay_lose_taker(relay, link);
  if (child && child->shown.bound != 0) pwi_relay_forbid(relay, child->shown.bound);
  pwi_idmap_remove(&relay->children, link.id);
  pwi_free(child);
}

static void done(void *context, uint64_t cookie) { pwi_relay_done(context, cookie); }

static void look(void *context, int64_t now) {
  struct pwi_relay *relay = context;
  pwi_relay_look(relay, now);
  pwi_relay_look_at_reads(relay, now);
  if (relay->config.tree.is_auto) pwi_relay_look_at_votes(relay, now);
}

/* A member has gone, and is not waited for; or a relay has voted. Nothing may be started here. */
static void membership_changed(void *context) {
  struct pwi_relay *relay = context;
  bool is_concerned = relay->sums || relay->config.tree.is_auto;
  if (relay->client && is_concerned) pwi_client_wake(relay->client, pwi_net_now(relay->config.net));
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_relay_create(const struct pwi_relay_config *config, struct pwi_relay **relay_out) {
  struct pwi_relay *relay = pwi_alloc_zero(1, sizeof *relay);
  char job[PWI_JOB_MAX + 1];
  if (!relay) return PAWL_NO_MEMORY;
  relay->config = *config;
  if (relay->config.second == 0) relay->config.second = SECOND;
  if (relay->config.memory_max == 0) relay->config.memory_max = MEMORY_DEFAULT;
  relay->priority = config->priority ? config->priority : PWI_PRIORITY_USUAL;
  relay->relaying = (struct pwi_relaying){.context = relay,
                                          .link_up = link_up,
                                          .priority = priority,
                                          .request = request,
                                          .link_down = link_down,
                                          .done = done,
                                          .look = look};
  pwi_relay_job(&config->tree, job);
  struct pwi_client_config client = {.net = config->net,
                                     .random = config->random,
                                     .log = config->log,
                                     .manager = config->manager,
                                     .host = config->host,
                                     .rack = config->rack,
                                     .job = job,
                                     .priority = relay->priority,
                                     .identity = config->identity,
                                     .membership_changed = membership_changed,
                                     .context = relay,
                                     .relaying = &relay->relaying};
  pawl_status status = pwi_client_create(&client, &relay->client);
  if (status) {
    pwi_free(relay);
    return status;
  }
  *relay_out = relay;
  return PAWL_OK;
}

void pwi_relay_destroy(struct pwi_relay *relay) {
  if (!relay) return;
  pwi_client_destroy(relay->client);
  while (relay->sums) pwi_relay_free(relay->sums);
  while (relay->reads) pwi_relay_free_read(relay->reads);
  pwi_free(relay->rights);
  for (size_t i = 0; i < relay->children.room; i++)
    if (relay->children.slots[i].id) pwi_free(relay->children.slots[i].item);
  pwi_idmap_fini(&relay->children);
  pwi_free(relay);
}

void pwi_relay_leave(struct pwi_relay *relay) {
  relay->is_leaving = true;
  pwi_relay_give_up(relay);
  pwi_relay_give_up_reads(relay);
  pwi_client_leave(relay->client);
}

struct pwi_client *pwi_relay_client(struct pwi_relay *relay) {
  return relay->client;
}

void pwi_relay_figures(const struct pwi_relay *relay, struct pwi_relay_figures *figures_out) {
  *figures_out = relay->figures;
  figures_out->tree = relay->config.tree.is_auto ? relay->votes.in_force : relay->config.tree;
  figures_out->waiting = figures_out->kept = figures_out->kept_bytes = 0;
  for (const struct relay_sum *sum = relay->sums; sum; sum = sum->next) figures_out->waiting += !sum->is_over;
  for (const struct relay_read *read = relay->reads; read; read = read->next) {
    figures_out->kept++;
    figures_out->kept_bytes += read->memory;
  }
  figures_out->waiting_bytes = relay->memory - figures_out->kept_bytes;
  figures_out->children = relay->children.count;
  figures_out->priority = relay->priority;
  figures_out->memory_max = relay->config.memory_max;
}
