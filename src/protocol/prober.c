/* Probes of nodes. protocol/prober.h states the rules. */
#include "protocol/prober.h"

#include <string.h>

#include "base/memory.h"

#define BROKEN_NS INT64_C(1000000)  /* delay before a link that broke at once is tried again */
#define FAILED_NS INT64_C(20000000) /* delay after any other failure */
#define PATIENCE_MAX_MS UINT32_C(10000)

struct pwi_probing {
  struct pwi_probing *next;
  struct pwi_probe probe;
  struct pwi_link link; /* 0: no link at the moment */
  int64_t deadline, retry_at;
  char address[PWI_LABEL_MAX + 1];
};

void pwi_prober_init(struct pwi_prober *prober, struct pwi_net *net, uint64_t cookie,
                     void (*tell)(void *context, const struct pwi_probe *probe), void *context) {
  *prober = (struct pwi_prober){.net = net, .cookie = cookie, .tell = tell, .context = context};
}

void pwi_prober_fini(struct pwi_prober *prober) {
  while (prober->first) {
    struct pwi_probing *probing = prober->first;
    prober->first = probing->next;
    pwi_free(probing);
  }
  prober->count = 0;
}

/* --- time ----------------------------------------------------------------------------------------------- */

static int64_t due_at(const struct pwi_probing *probing) {
  bool retries = probing->link.id == 0 && probing->retry_at < probing->deadline;
  return retries ? probing->retry_at : probing->deadline;
}

/* If there is no memory for a timer, the probe ends when its link does. */
static void set_timer(struct pwi_prober *prober) {
  int64_t at = PWI_NET_NEVER;
  for (const struct pwi_probing *probing = prober->first; probing; probing = probing->next)
    if (due_at(probing) < at) at = due_at(probing);
  if (prober->timer.id != 0) pwi_net_timer_cancel(prober->net, prober->timer);
  prober->timer.id = 0;
  if (at == PWI_NET_NEVER) return;
  if (pwi_net_timer_set(prober->net, at, prober->cookie, &prober->timer)) prober->timer.id = 0;
}

/* --- one probe ------------------------------------------------------------------------------------------ */

static struct pwi_probing *find_link(const struct pwi_prober *prober, struct pwi_link link) {
  struct pwi_probing *probing = prober->first;
  while (probing && (link.id == 0 || probing->link.id != link.id)) probing = probing->next;
  return probing;
}

static struct pwi_probing *find_node(const struct pwi_prober *prober, uint64_t node) {
  struct pwi_probing *probing = prober->first;
  while (probing && probing->probe.node != node) probing = probing->next;
  return probing;
}

static void finish(struct pwi_prober *prober, struct pwi_probing *probing, enum pwi_verdict verdict) {
  struct pwi_probing **at = &prober->first;
  struct pwi_probe probe = probing->probe;
  probe.verdict = verdict;
  while (*at != probing) at = &(*at)->next;
  *at = probing->next;
  prober->count--;
  if (probing->link.id != 0) pwi_net_close(prober->net, probing->link, PAWL_OK);
  pwi_free(probing);
  prober->tell(prober->context, &probe);
}

static void try_again(struct pwi_prober *prober, struct pwi_probing *probing, int64_t delay) {
  probing->link.id = 0;
  probing->retry_at = pwi_net_now(prober->net) + delay;
}

static void connect_to(struct pwi_prober *prober, struct pwi_probing *probing) {
  if (pwi_net_connect(prober->net, probing->address, &probing->link)) try_again(prober, probing, FAILED_NS);
}

void pwi_prober_begin(struct pwi_prober *prober, const struct pwi_probe *probe, const char *address) {
  struct pwi_probing *probing = find_node(prober, probe->node);
  bool is_new = !probing;
  if (strlen(address) > PWI_LABEL_MAX || (is_new && prober->count == PWI_PROBES_MAX)) return;
  if (is_new && !(probing = pwi_alloc_zero(1, sizeof *probing))) return;
  uint32_t patience = probe->patience_ms < PATIENCE_MAX_MS ? probe->patience_ms : PATIENCE_MAX_MS;
  probing->probe = *probe;
  probing->deadline = pwi_net_now(prober->net) + (int64_t)patience * 1000000 + pwi_net_allowance(prober->net);
  if (is_new) {
    memcpy(probing->address, address, strlen(address) + 1);
    probing->next = prober->first;
    prober->first = probing;
    prober->count++;
    connect_to(prober, probing);
  }
  set_timer(prober);
}

/* --- events --------------------------------------------------------------------------------------------- */

/* A process without a node id does not prove that the node is gone: it may be the successor at this address,
 * or the node itself, which lacks memory to introduce itself. */
bool pwi_prober_link_up(struct pwi_prober *prober, struct pwi_link link, const struct pwi_peering *peering) {
  struct pwi_probing *probing = find_link(prober, link);
  if (!probing) return false;
  uint64_t found = peering->hello.node;
  if (found == 0) {
    pwi_net_close(prober->net, link, PAWL_OK);
    try_again(prober, probing, FAILED_NS);
  } else {
    finish(prober, probing, found == probing->probe.node ? PWI_VERDICT_ALIVE : PWI_VERDICT_GONE);
  }
  set_timer(prober);
  return true;
}

/* A peer that rejects the link is alive, unless it does so because it is another node. */
bool pwi_prober_link_down(struct pwi_prober *prober, struct pwi_link link, pawl_status why) {
  struct pwi_probing *probing = find_link(prober, link);
  if (!probing) return false;
  switch (why) {
  case PAWL_LINK_REFUSED:
  case PAWL_CLUSTER_OTHER:
    probing->link.id = 0;
    finish(prober, probing, PWI_VERDICT_GONE);
    break;
  case PAWL_LINK_BUSY:
  case PAWL_LINK_KEY:
  case PAWL_LINK_VERSION:
  case PAWL_LINK_PLANE:
  case PAWL_FORBIDDEN:
    probing->link.id = 0;
    finish(prober, probing, PWI_VERDICT_ALIVE);
    break;
  case PAWL_LINK_RESET:
  case PAWL_LINK_CLOSED:
    try_again(prober, probing, BROKEN_NS);
    break;
  default:
    try_again(prober, probing, FAILED_NS);
  }
  set_timer(prober);
  return true;
}

void pwi_prober_timer(struct pwi_prober *prober) {
  int64_t now = pwi_net_now(prober->net);
  struct pwi_probing *next;
  prober->timer.id = 0;
  for (struct pwi_probing *probing = prober->first; probing; probing = next) {
    next = probing->next;
    if (now >= probing->deadline) {
      finish(prober, probing, PWI_VERDICT_SILENT);
      next = prober->first; /* the callback may have begun or ended other probes */
    } else if (probing->link.id == 0 && now >= probing->retry_at) {
      connect_to(prober, probing);
    }
  }
  set_timer(prober);
}
