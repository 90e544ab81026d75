/* Max-min fair rates.
 *
 * FILLING. All flows grow together until a link is full. Its flows keep the rate that they have then, and the others
 * grow on. Each step freezes the flows of the link with the smallest share: what is open on it, divided by the weights
 * of the flows that still grow. Freezing flows never makes the share of another link smaller, so a heap of shares may be
 * out of date: a share that is taken from it is computed again, and goes back if it has grown. Classes are filled one
 * after the other, the highest first.
 *
 * WHICH FLOWS. Rates are fair if every link is, in the sense of pwi_flows_link_is_fair. A change touches a few links.
 * First the flows that have no rate yet get what is open. Then the flows of links that are not fair are chosen, and
 * filled again while all others keep their rates. That may make other links of the chosen flows unfair, whose flows are
 * then chosen as well. It ends when all touched links are fair: no flow that was not chosen would get another rate. Most
 * changes stay local, as a host's link is most flows' bottleneck. As soon as a large part of all flows is chosen, all
 * are.
 */
#include <math.h>

#include "sim/fabric/inside.h"

#define EPSILON 1e-9 /* rates and capacities that differ by such a part are the same */
#define ALL_FROM 4   /* all flows are chosen once one in so many is */

static double capacity_of(const struct pwi_flows *flows, const struct link *link) {
  uint32_t most = flows->config.incast_flows;
  if (!link->has_incast || !most || link->count <= most) return link->capacity;
  return link->capacity * (1 - flows->config.incast_loss * (1 - (double)most / (double)link->count));
}

/* --- fairness of a link --------------------------------------------------------------------------------- */

struct usage {
  double used;
  int class; /* the highest class with a flow that has its bottleneck here; -1: none */
};

static struct usage measure(const struct pwi_flows *flows, uint32_t index) {
  const struct link *link = &flows->links[index];
  struct usage usage = {.class = -1};
  for (size_t i = 0; i < link->count; i++) {
    struct flow *flow = &flows->flows[link->members[i].flow];
    usage.used += flow->rate * hops_of(flow)[link->members[i].hop].weight;
    if (flow->bottleneck == index && flow->class > usage.class) usage.class = flow->class;
  }
  return usage;
}

bool pwi_flows_link_is_fair(const struct pwi_flows *flows, uint32_t index) {
  const struct link *link = &flows->links[index];
  struct usage usage = measure(flows, index);
  double capacity = capacity_of(flows, link), most = 0, least = INFINITY;
  if (usage.used > capacity * (1 + EPSILON)) return false;
  if (usage.class < 0) return true;
  if (usage.used < capacity * (1 - EPSILON)) return false;
  for (size_t i = 0; i < link->count; i++) {
    const struct flow *flow = &flows->flows[link->members[i].flow];
    if (flow->class < usage.class && flow->rate > capacity * EPSILON) return false;
    if (flow->class != usage.class) continue;
    if (flow->rate > most) most = flow->rate;
    if (flow->bottleneck == index && flow->rate < least) least = flow->rate;
  }
  return least >= most * (1 - EPSILON);
}

/* --- choosing ------------------------------------------------------------------------------------------- */

void pwi_flows_touch(struct pwi_flows *flows, uint32_t index) {
  struct link *link = &flows->links[index];
  if (link->is_touched) return;
  link->is_touched = true;
  flows->touched[flows->touched_count++] = index;
}

static void choose(struct pwi_flows *flows, uint32_t index) {
  struct flow *flow = &flows->flows[index];
  if (flow->is_chosen) return;
  flow->is_chosen = true;
  flow->before = flow->rate;
  flows->chosen[flows->chosen_count++] = index;
  for (uint32_t i = 0; i < flow->hop_count; i++) pwi_flows_touch(flows, hops_of(flow)[i].link);
}

static void choose_link(struct pwi_flows *flows, uint32_t index) {
  struct link *link = &flows->links[index];
  link->is_absorbed = true;
  for (size_t i = 0; i < link->count; i++) choose(flows, link->members[i].flow);
}

static void choose_all(struct pwi_flows *flows) {
  for (uint32_t i = 0; i < flows->link_count; i++)
    if (flows->links[i].count) {
      pwi_flows_touch(flows, i);
      choose_link(flows, i);
    }
}

/* Chooses the flows that have no rate yet. */
static bool choose_new(struct pwi_flows *flows) {
  size_t touched = flows->touched_count;
  for (size_t i = 0; i < touched; i++) {
    const struct link *link = &flows->links[flows->touched[i]];
    for (size_t k = 0; k < link->count; k++)
      if (flows->flows[link->members[k].flow].bottleneck == NO_LINK) choose(flows, link->members[k].flow);
  }
  return flows->chosen_count > 0;
}

/* Chooses the flows of touched links that are not fair. Links that this touches come later in the list, so they are
 * looked at as well, with rates that are to change; that chooses more than it must only where they are unfair already. */
static bool choose_more(struct pwi_flows *flows) {
  size_t before = flows->chosen_count, touched = flows->touched_count;
  for (size_t i = 0; i < touched; i++) {
    uint32_t link = flows->touched[i];
    if (flows->links[link].is_absorbed || pwi_flows_link_is_fair(flows, link)) continue;
    choose_link(flows, link);
  }
  if (flows->chosen_count * ALL_FROM > flows->figures.present) choose_all(flows);
  return flows->chosen_count > before;
}

/* --- filling -------------------------------------------------------------------------------------------- */

/* What the flows that are not chosen leave open. */
static void open_link(struct pwi_flows *flows, struct link *link) {
  link->open = capacity_of(flows, link);
  link->load = 0;
  if (link->is_absorbed) return;
  for (size_t i = 0; i < link->count; i++) {
    struct flow *flow = &flows->flows[link->members[i].flow];
    if (!flow->is_chosen) link->open -= flow->rate * hops_of(flow)[link->members[i].hop].weight;
  }
}

/* Sorts the chosen flows by class, highest first. Writes where each class ends. */
static void sort_classes(struct pwi_flows *flows, size_t ends[PWI_FLOW_CLASSES]) {
  size_t counts[PWI_FLOW_CLASSES] = {0}, sum = 0;
  for (size_t i = 0; i < flows->chosen_count; i++) counts[flows->flows[flows->chosen[i]].class]++;
  for (int class = PWI_FLOW_CLASSES - 1; class >= 0; class --) {
    ends[class] = sum;
    sum += counts[class];
  }
  for (size_t i = 0; i < flows->chosen_count; i++)
    flows->sorted[ends[flows->flows[flows->chosen[i]].class]++] = flows->chosen[i];
}

static double share_of(const struct link *link) { return link->open > 0 ? link->open / (double)link->load : 0; }

static bool is_before(struct link_share a, struct link_share b) {
  return a.rate < b.rate || (a.rate == b.rate && a.link < b.link);
}

static void share_down(struct pwi_flows *flows, size_t at) {
  struct link_share *heap = flows->shares, moved = heap[at];
  for (size_t child; (child = 2 * at + 1) < flows->share_count; at = child) {
    if (child + 1 < flows->share_count && is_before(heap[child + 1], heap[child])) child++;
    if (!is_before(heap[child], moved)) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

static void share_add(struct pwi_flows *flows, uint32_t link) {
  flows->shares[flows->share_count++] = (struct link_share){share_of(&flows->links[link]), link};
}

static void begin_class(struct pwi_flows *flows, size_t begin, size_t end) {
  flows->share_count = 0;
  for (size_t i = begin; i < end; i++) {
    struct flow *flow = &flows->flows[flows->sorted[i]];
    flow->is_rated = false;
    for (uint32_t k = 0; k < flow->hop_count; k++) flows->links[hops_of(flow)[k].link].load += hops_of(flow)[k].weight;
  }
  for (size_t i = 0; i < flows->touched_count; i++)
    if (flows->links[flows->touched[i]].load) share_add(flows, flows->touched[i]);
  for (size_t i = flows->share_count / 2; i-- > 0;) share_down(flows, i);
}

static void freeze(struct pwi_flows *flows, struct flow *flow, uint32_t bottleneck, double rate) {
  const struct flow_hop *hops = hops_of(flow);
  flow->rate = rate;
  flow->bottleneck = bottleneck;
  flow->is_rated = true;
  for (uint32_t i = 0; i < flow->hop_count; i++) {
    struct link *link = &flows->links[hops[i].link];
    link->open -= rate * hops[i].weight;
    link->load -= hops[i].weight;
  }
}

static void fill_class(struct pwi_flows *flows, uint8_t class) {
  while (flows->share_count > 0) {
    struct link_share *first = &flows->shares[0];
    struct link *link = &flows->links[first->link];
    uint32_t index = first->link;
    double rate = link->load ? share_of(link) : INFINITY;
    if (link->load && rate > first->rate) {
      first->rate = rate;
      share_down(flows, 0);
      continue;
    }
    *first = flows->shares[--flows->share_count];
    if (flows->share_count) share_down(flows, 0);
    for (size_t i = 0; i < link->count && link->load; i++) {
      struct flow *flow = &flows->flows[link->members[i].flow];
      if (flow->is_chosen && flow->class == class && !flow->is_rated) freeze(flows, flow, index, rate);
    }
  }
}

static void fill(struct pwi_flows *flows) {
  size_t ends[PWI_FLOW_CLASSES], begin = 0;
  sort_classes(flows, ends);
  for (size_t i = 0; i < flows->touched_count; i++) open_link(flows, &flows->links[flows->touched[i]]);
  for (int class = PWI_FLOW_CLASSES - 1; class >= 0; class --) {
    if (begin < ends[class]) {
      begin_class(flows, begin, ends[class]);
      fill_class(flows, (uint8_t) class);
    }
    begin = ends[class];
  }
}

void pwi_flows_rate(struct pwi_flows *flows) {
  flows->chosen_count = 0;
  if (choose_new(flows)) fill(flows);
  while (choose_more(flows)) fill(flows);
  for (size_t i = 0; i < flows->touched_count; i++) {
    struct link *link = &flows->links[flows->touched[i]];
    link->is_touched = link->is_absorbed = false;
  }
  flows->touched_count = 0;
  flows->figures.changes++;
  flows->figures.rerated += flows->chosen_count;
}
