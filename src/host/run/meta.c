#include "host/run/meta.h"

#include <string.h>

#include "base/memory.h"
#include "host/clock.h"
#include "host/etcd/curl.h"
#include "host/etcd/etcd.h"
#include "net/net_ops.h"

#define RESIGN_NS (5 * PWI_HOST_SECOND / 4)
#define TROUBLE_SIZE 400

struct pwi_run_meta {
  const char *place;
  struct pwi_net *net;
  const struct pwi_log *log;
  struct pwi_meta *etcd;
  struct pwi_standby *standby;

  /* The state that was logged last. */
  enum pwi_standby_phase phase;
  char leader[PWI_NET_ADDRESS_MAX];
  bool is_away;
};

static void wake(void *context) { pwi_net_wake(context); }

static pawl_status open_etcd(struct pwi_run_meta *meta, const struct pwi_run_store *store,
                             struct pwi_etcd_config *config, struct pwi_run_problem *problem) {
  pawl_status status = pwi_etcd_place_parse(store->place, &config->place);
  if (status) {
    pwi_run_problem_set(problem, "'%s' is not the address of a store; expected etcd://host:port,host:port/prefix",
                        store->place);
    return status;
  }
  config->authority = store->authority;
  config->certificate = store->certificate;
  config->private_key = store->private_key;
  config->wake = wake;
  config->context = meta->net;
  status = pwi_etcd_open(config, &meta->etcd);
  if (status)
    pwi_run_problem_set(problem, "cannot start the etcd client: %s",
                        status == PAWL_UNSUPPORTED ? pwi_curl_problem() : pawl_status_text(status));
  return status;
}

pawl_status pwi_run_meta_open(const struct pwi_run_store *store, const struct pwi_manager_config *role,
                              struct pwi_run_meta **meta_out, struct pwi_run_problem *problem) {
  struct pwi_etcd_config config = {0};
  struct pwi_run_meta *meta = pwi_alloc_zero(1, sizeof *meta);
  if (!meta) {
    pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
    return PAWL_NO_MEMORY;
  }
  meta->place = store->place;
  meta->net = role->net;
  meta->log = role->log;
  pawl_status status = open_etcd(meta, store, &config, problem);
  if (!status) {
    struct pwi_standby_config standby = {.manager = *role, .meta = meta->etcd, .prefix = config.place.prefix};
    standby.manager.meta = meta->place;
    status = pwi_standby_create(&standby, &meta->standby);
    if (status) pwi_run_problem_set(problem, "cannot start the manager: %s", pawl_status_text(status));
  }
  if (status) {
    pwi_run_meta_close(meta);
    return status;
  }
  meta->net->self = meta->standby;
  *meta_out = meta;
  return PAWL_OK;
}

/* --- observing ------------------------------------------------------------------------------------------ */

static void tell_store(struct pwi_run_meta *meta, pawl_status trouble) {
  char text[TROUBLE_SIZE];
  bool is_away = trouble != PAWL_OK;
  if (is_away == meta->is_away) return;
  meta->is_away = is_away;
  pwi_etcd_trouble(meta->etcd, text, sizeof text);
  if (is_away)
    pwi_log(meta->log, PAWL_LOG_WARN, "meta.away",
            "place=%s why=%s text=\"%s\" doing=\"waiting for the store; nothing is decided until then\"", meta->place,
            pawl_status_name(trouble), text);
  else
    pwi_log(meta->log, PAWL_LOG_WARN, "meta.back", "place=%s", meta->place);
}

static void tell_phase(struct pwi_run_meta *meta, const struct pwi_standby_state *state) {
  unsigned long long term = (unsigned long long)state->term;
  if (state->phase == PWI_STANDBY_LEADING)
    pwi_log(meta->log, PAWL_LOG_INFO, "manager.leads", "term=%llu records=%llu", term,
            (unsigned long long)state->records);
  else if (state->phase == PWI_STANDBY_WAITING && state->leader[0])
    pwi_log(meta->log, PAWL_LOG_INFO, "manager.stands_by", "term=%llu leader=%s", term, state->leader);
  else if (state->phase == PWI_STANDBY_OVER)
    pwi_log(meta->log, PAWL_LOG_WARN, "manager.steps_down", "term=%llu why=%s", term, pawl_status_name(state->why));
}

enum pwi_standby_phase pwi_run_meta_look(struct pwi_run_meta *meta) {
  struct pwi_standby_state state;
  pwi_standby_state(meta->standby, &state);
  if (state.phase < PWI_STANDBY_OVER) tell_store(meta, state.why);
  if (state.phase == meta->phase && strcmp(state.leader, meta->leader) == 0) return state.phase;
  tell_phase(meta, &state);
  meta->phase = state.phase;
  memcpy(meta->leader, state.leader, strlen(state.leader) + 1);
  return state.phase;
}

void pwi_run_meta_state(const struct pwi_run_meta *meta, struct pwi_standby_state *state_out) {
  pwi_standby_state(meta->standby, state_out);
}

void pwi_run_meta_explain(const struct pwi_run_meta *meta, struct pwi_run_problem *problem) {
  struct pwi_standby_state state;
  pwi_standby_state(meta->standby, &state);
  if (state.why == PAWL_CLUSTER_OTHER)
    pwi_run_problem_set(
        problem,
        "the data at %s is empty or belongs to another cluster than the one that this manager led; nothing "
        "was changed there. Check whether etcd was set up anew, or another cluster uses the prefix",
        meta->place);
  else if (state.why == PAWL_CORRUPT)
    pwi_run_problem_set(
        problem,
        "the data at %s cannot be read: it is damaged, or not pawl's (the log names the key); nothing was "
        "changed there. Restore it, or give another prefix with --meta etcd://…/PREFIX",
        meta->place);
  else
    pwi_run_problem_set(problem, "cannot use %s: %s", meta->place, pawl_status_text(state.why));
}

/* --- the end -------------------------------------------------------------------------------------------- */

void pwi_run_meta_resign(struct pwi_run_meta *meta) {
  int64_t deadline = pwi_net_now(meta->net) + RESIGN_NS;
  struct pwi_standby_state state;
  pwi_standby_resign(meta->standby);
  for (;;) {
    pwi_standby_state(meta->standby, &state);
    if (!state.holds_lease || pwi_net_now(meta->net) >= deadline) return;
    (void)pwi_net_poll(meta->net, deadline);
  }
}

void pwi_run_meta_stop(struct pwi_run_meta *meta) {
  if (meta && meta->etcd) pwi_etcd_stop(meta->etcd);
}

void pwi_run_meta_close(struct pwi_run_meta *meta) {
  if (!meta) return;
  pwi_standby_destroy(meta->standby);
  if (meta->etcd) meta->etcd->ops->destroy(meta->etcd);
  pwi_free(meta);
}
