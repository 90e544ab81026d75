#include "network.h"

#define LATENCY (2 * PWI_SIM_MICROSECOND) /* of InfiniBand */
#define HEAD 64                           /* bytes of a packet besides its body */

void pwi_lapser_cards_init(struct pwi_lapser_cards *cards, const struct pwi_lapser_task *task) {
  *cards = (struct pwi_lapser_cards){.bytes_per_ns = task->gigabits / 8};
}

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t pwi_lapser_cards_arrival(struct pwi_lapser_cards *cards, uint32_t from, uint32_t to, size_t size, int64_t now) {
  int64_t takes = (int64_t)((double)(size + HEAD) / cards->bytes_per_ns);
  if (from >= PWI_LAPSER_NODES_MAX || to >= PWI_LAPSER_NODES_MAX) return now + LATENCY + takes;
  cards->sends_until[from] = later(now, cards->sends_until[from]) + takes;
  cards->receives_until[to] = later(cards->sends_until[from] + LATENCY, cards->receives_until[to] + takes);
  return cards->receives_until[to];
}

int64_t pwi_lapser_delivery_time(void *cards, const struct pwi_sim_packet *packet, int64_t now,
                                 struct pwi_random *random) {
  (void)random;
  return pwi_lapser_cards_arrival(cards, packet->from.index, packet->to.index, packet->size, now);
}

/* A rating adds an outer product to half of a matrix; a row needs a Cholesky factor, and is added to the sums. */
int64_t pwi_lapser_block_ns(const struct pwi_lapser_task *task, const struct bpmf_sampler *sampler, int number,
                            size_t block) {
  const struct bpmf_side *side = &sampler->sides[number];
  size_t first = bpmf_block_begin(side, block), end = bpmf_block_begin(side, block + 1);
  double width = (double)sampler->width, ratings = (double)(side->ratings->starts[end] - side->ratings->starts[first]),
         flops = ratings * width * width + (double)(end - first) * (width * width * width / 3 + 3 * width * width);
  return (int64_t)(flops / task->gigaflops);
}
