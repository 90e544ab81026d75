/* Leader election. The header describes the keys and the rules. */
#include "manager/leader/election.h"

#include <stdio.h>
#include <string.h>

#define TTL_NS INT64_C(2000000000)   /* the shortest lease of etcd with its default settings */
#define DOUBT_NS INT64_C(3000000000) /* by then another manager may have led for a while */
#define LOOK_NS INT64_C(250000000)   /* interval at which managers that do not lead read the keys */
#define CALL_NS INT64_C(1000000000)  /* patience of one call */
#define RENEWALS 4                   /* renewals within the lifetime of a lease */
#define RESIGN_NS INT64_C(1000000000)

/* --- values --------------------------------------------------------------------------------------------- */

/* Reads a number without leading zeros. `*rest_out` points after its digits. */
static bool read_number(const char *text, const char *end, uint64_t *number_out, const char **rest_out) {
  uint64_t number = 0;
  const char *at = text;
  for (; at < end && *at >= '0' && *at <= '9'; at++)
    if (__builtin_mul_overflow(number, 10u, &number) || __builtin_add_overflow(number, (unsigned)(*at - '0'), &number))
      return false;
  if (at == text || *text == '0') return false;
  *number_out = number;
  *rest_out = at;
  return true;
}

pawl_status pwi_leader_decode(const void *value, size_t size, uint64_t *term_out, char *address_out) {
  const char *text = value, *end = text + size, *rest;
  uint64_t term;
  if (!read_number(text, end, &term, &rest) || rest == end || *rest++ != ' ') return PAWL_CORRUPT;
  size_t length = (size_t)(end - rest);
  if (length == 0 || length >= PWI_NET_ADDRESS_MAX) return PAWL_CORRUPT;
  for (size_t i = 0; i < length; i++)
    if (rest[i] <= ' ' || rest[i] > '~') return PAWL_CORRUPT;
  memcpy(address_out, rest, length);
  address_out[length] = '\0';
  *term_out = term;
  return PAWL_OK;
}

static pawl_status term_decode(const struct pwi_meta_pair *pair, uint64_t *term_out) {
  const char *text = pair->value, *end = text + pair->size, *rest;
  return read_number(text, end, term_out, &rest) && rest == end ? PAWL_OK : PAWL_CORRUPT;
}

static const struct pwi_meta_pair *find(const struct pwi_meta_answer *answer, const char *key) {
  for (size_t i = 0; i < answer->pair_count; i++)
    if (strcmp(answer->pairs[i].key, key) == 0) return &answer->pairs[i];
  return NULL;
}

/* --- states and time ------------------------------------------------------------------------------------ */

static void become(struct pwi_election *election, enum pwi_election_state state) {
  election->state = state;
  election->config.changed(election->config.context);
}

static bool is_over(const struct pwi_election *election) {
  return election->state == PWI_ELECTION_LOST || election->state == PWI_ELECTION_FAILED;
}

static void end(struct pwi_election *election, enum pwi_election_state state, pawl_status why) {
  struct pwi_election_config *config = &election->config;
  if (is_over(election)) return;
  config->meta->ops->cancel(config->meta, &election->call);
  pwi_net_timer_cancel(config->net, election->timer);
  election->trouble = why;
  pwi_log(config->log, PAWL_LOG_INFO, state == PWI_ELECTION_LOST ? "leadership.lost" : "election.failed",
          "term=%llu why=%s", (unsigned long long)election->term, pawl_status_name(why));
  become(election, state);
}

static void schedule(struct pwi_election *election, int64_t delay) {
  struct pwi_net *net = election->config.net;
  pwi_net_timer_cancel(net, election->timer);
  /* Without a timer the election would stop silently. It ends instead, and the owner starts a new one. */
  if (pwi_net_timer_set(net, pwi_net_now(net) + delay, election->config.cookie, &election->timer))
    end(election, PWI_ELECTION_LOST, PAWL_NO_MEMORY);
}

/* Takes note whether the store was reached, and logs changes. */
static void note(struct pwi_election *election, pawl_status status) {
  if ((election->trouble == PAWL_OK) == (status == PAWL_OK)) {
    election->trouble = status;
    return;
  }
  election->trouble = status;
  pwi_log(election->config.log, PAWL_LOG_INFO, status ? "store.unreachable" : "store.reachable", "why=%s leading=%d",
          pawl_status_name(status), election->state == PWI_ELECTION_LEADING);
}

static void ask(struct pwi_election *election,
                void (*done)(struct pwi_meta_call *, pawl_status, const struct pwi_meta_answer *)) {
  election->asked_at = pwi_net_now(election->config.net);
  election->call.done = done;
  election->call.patience_ns = CALL_NS;
}

/* A call has failed: tries again later. */
static void look_later(struct pwi_election *election, pawl_status why) {
  note(election, why);
  schedule(election, LOOK_NS);
}

static struct pwi_election *of(struct pwi_meta_call *call) {
  return (struct pwi_election *)(void *)((char *)call - offsetof(struct pwi_election, call));
}

/* --- leading -------------------------------------------------------------------------------------------- */

static void lead(struct pwi_election *election, uint64_t created) {
  election->created = created;
  election->confirmed_at = election->asked_at < election->confirmed_at ? election->asked_at : election->confirmed_at;
  pwi_log(election->config.log, PAWL_LOG_INFO, "leadership.won", "term=%llu", (unsigned long long)election->term);
  schedule(election, election->ttl_ns / RENEWALS);
  if (!is_over(election)) become(election, PWI_ELECTION_LEADING);
}

static void renewed(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct pwi_election *election = of(call);
  if (status == PAWL_NOT_FOUND) {
    end(election, PWI_ELECTION_LOST, PAWL_NODE_DEPOSED);
    return;
  }
  note(election, status);
  if (!status) {
    election->confirmed_at = election->asked_at;
    election->ttl_ns = answer->ttl_ns;
  }
  int64_t now = pwi_net_now(election->config.net);
  int64_t left = election->confirmed_at + election->config.doubt_ns - now;
  int64_t next = status ? LOOK_NS : election->ttl_ns / RENEWALS;
  if (left <= 0)
    end(election, PWI_ELECTION_LOST, status ? status : PAWL_TIMED_OUT);
  else
    schedule(election, next < left ? next : left);
}

static void renew(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  ask(election, renewed);
  int64_t left = election->confirmed_at + election->config.doubt_ns - election->asked_at;
  if (left < CALL_NS) election->call.patience_ns = left > 0 ? left : 1;
  pawl_status status = meta->ops->renew(meta, &election->call, election->lease);
  if (status) renewed(&election->call, status, NULL);
}

/* --- campaigning ---------------------------------------------------------------------------------------- */

/* Learns from the two keys which manager leads. Returns false if this manager leads, or the election has
 * failed. */
static bool learn(struct pwi_election *election, const struct pwi_meta_answer *answer, bool *vacant_out) {
  const struct pwi_meta_pair *leader = find(answer, election->leader_key), *term = find(answer, election->term_key);
  uint64_t seen = 0, theirs;
  char address[PWI_NET_ADDRESS_MAX];
  if ((term && term_decode(term, &seen)) ||
      (leader && (pwi_leader_decode(leader->value, leader->size, &theirs, address) || !term || theirs > seen))) {
    end(election, PWI_ELECTION_FAILED, PAWL_CORRUPT);
    return false;
  }
  election->term = seen;
  *vacant_out = !leader;
  if (leader && leader->lease == election->lease &&
      election->lease != 0) { /* the campaign succeeded, but its answer was lost */
    lead(election, leader->created);
    return false;
  }
  bool is_news = (leader != NULL) != (election->state == PWI_ELECTION_BEHIND) ||
                 (leader && strcmp(address, election->leader) != 0);
  election->leader[0] = '\0';
  if (leader) memcpy(election->leader, address, sizeof address);
  election->leader_lease = leader ? leader->lease : 0;
  if (is_news) become(election, leader ? PWI_ELECTION_BEHIND : PWI_ELECTION_SEEKING);
  return !is_over(election);
}

static void stand_by(struct pwi_election *election) { schedule(election, LOOK_NS); }

static void campaigned(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct pwi_election *election = of(call);
  bool vacant;
  if (status) { /* if the campaign succeeded nevertheless, the next look finds a leader with this lease */
    look_later(election, status);
    return;
  }
  note(election, PAWL_OK);
  if (answer->held) {
    election->term++;
    lead(election, answer->revision);
  } else if (learn(election, answer, &vacant)) {
    stand_by(election);
  }
}

static void campaign(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  char before[24], after[24];
  snprintf(before, sizeof before, "%llu", (unsigned long long)election->term);
  snprintf(after, sizeof after, "%llu", (unsigned long long)election->term + 1);
  snprintf(election->value, sizeof election->value, "%s %s", after, election->address);
  struct pwi_meta_test unraised = {PWI_META_VALUE, election->term_key, 0, before, strlen(before)};
  if (election->term == 0) unraised = (struct pwi_meta_test){PWI_META_CREATED, election->term_key, 0, NULL, 0};
  struct pwi_meta_transaction transaction = {
      .tests = {{PWI_META_CREATED, election->leader_key, 0, NULL, 0}, unraised},
      .test_count = 2,
      .steps = {{.act = PWI_META_PUT,
                 .key = election->leader_key,
                 .value = election->value,
                 .size = strlen(election->value),
                 .lease = election->lease},
                {.act = PWI_META_PUT, .key = election->term_key, .value = after, .size = strlen(after)}},
      .step_count = 2,
      .others = {{.act = PWI_META_GET, .key = election->leader_key}, {.act = PWI_META_GET, .key = election->term_key}},
      .other_count = 2,
  };
  ask(election, campaigned);
  pawl_status status = meta->ops->transact(meta, &election->call, &transaction);
  if (status) look_later(election, status);
}

static void granted(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct pwi_election *election = of(call);
  if (status) {
    look_later(election, status);
    return;
  }
  election->lease = answer->lease;
  election->ttl_ns = answer->ttl_ns;
  election->confirmed_at = election->asked_at;
  campaign(election);
}

/* If the campaign fails, the lease expires by itself. */
static void grant(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  ask(election, granted);
  pawl_status status = meta->ops->grant(meta, &election->call, election->config.ttl_ns);
  if (status) look_later(election, status);
}

static void looked(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct pwi_election *election = of(call);
  bool vacant;
  if (status) {
    look_later(election, status);
    return;
  }
  note(election, PAWL_OK);
  if (!learn(election, answer, &vacant)) return;
  if (vacant)
    grant(election);
  else
    stand_by(election);
}

static void look(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  struct pwi_meta_transaction transaction = {
      .steps = {{.act = PWI_META_GET, .key = election->leader_key}, {.act = PWI_META_GET, .key = election->term_key}},
      .step_count = 2,
  };
  ask(election, looked);
  pawl_status status = meta->ops->transact(meta, &election->call, &transaction);
  if (status) look_later(election, status);
}

void pwi_election_timer(struct pwi_election *election) {
  election->timer.id = 0;
  if (is_over(election)) return;
  if (election->state == PWI_ELECTION_LEADING)
    renew(election);
  else
    look(election);
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_election_init(struct pwi_election *election, const struct pwi_election_config *config) {
  if (strlen(config->prefix) > PWI_PREFIX_MAX || strlen(config->address) >= PWI_NET_ADDRESS_MAX) return PAWL_INVALID;
  *election = (struct pwi_election){.config = *config};
  if (election->config.ttl_ns == 0) election->config.ttl_ns = TTL_NS;
  if (election->config.doubt_ns == 0) election->config.doubt_ns = DOUBT_NS;
  snprintf(election->address, sizeof election->address, "%s", config->address);
  snprintf(election->leader_key, sizeof election->leader_key, "%s/leader", config->prefix);
  snprintf(election->term_key, sizeof election->term_key, "%s/term", config->prefix);
  election->config.prefix = election->config.address = NULL;
  schedule(election, 0);
  return PAWL_OK;
}

void pwi_election_fini(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  if (meta) meta->ops->cancel(meta, &election->call);
}

void pwi_election_fence(const struct pwi_election *election, struct pwi_meta_test tests_out[PWI_ELECTION_TESTS]) {
  tests_out[0] = (struct pwi_meta_test){PWI_META_CREATED, election->leader_key, election->created, NULL, 0};
  tests_out[1] =
      (struct pwi_meta_test){PWI_META_VALUE, election->leader_key, 0, election->value, strlen(election->value)};
}

/* If the store was not reached, or another manager was faster, the next look tells. */
static void deposed(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  struct pwi_election *election = of(call);
  (void)answer;
  if (status && status != PAWL_NOT_FOUND)
    look_later(election, status);
  else
    schedule(election, 0);
}

void pwi_election_depose(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  if (election->state != PWI_ELECTION_BEHIND || election->leader_lease == 0) return;
  pwi_log(election->config.log, PAWL_LOG_INFO, "leader.gone", "term=%llu address=%s",
          (unsigned long long)election->term, election->leader);
  meta->ops->cancel(meta, &election->call);
  pwi_net_timer_cancel(election->config.net, election->timer);
  ask(election, deposed);
  pawl_status status = meta->ops->revoke(meta, &election->call, election->leader_lease);
  if (status) look_later(election, status);
}

static void resigned(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  (void)status, (void)answer; /* if the store was not reached, the lease expires by itself */
  end(of(call), PWI_ELECTION_LOST, PAWL_OK);
}

void pwi_election_resign(struct pwi_election *election) {
  struct pwi_meta *meta = election->config.meta;
  if (is_over(election)) return;
  meta->ops->cancel(meta, &election->call);
  pwi_net_timer_cancel(election->config.net, election->timer);
  ask(election, resigned);
  election->call.patience_ns = RESIGN_NS;
  if (election->state != PWI_ELECTION_LEADING || meta->ops->revoke(meta, &election->call, election->lease))
    end(election, PWI_ELECTION_LOST, PAWL_OK);
}
