/* The simulated machines of `pawl-bench lapser --sim`: how long workers compute, and when packets arrive. */
#ifndef BENCH_COMMAND_LAPSER_NETWORK_H
#define BENCH_COMMAND_LAPSER_NETWORK_H

#include "lapser.h"
#include "sim/sim.h"

#define PWI_LAPSER_NODES_MAX (PWI_LAPSER_WORKERS_MAX + 1) /* and the manager */

/* Cards of one rate, which send one packet at a time and receive one at a time, and a switch that delays none. */
struct pwi_lapser_cards {
  double bytes_per_ns;
  int64_t sends_until[PWI_LAPSER_NODES_MAX], receives_until[PWI_LAPSER_NODES_MAX];
};

void pwi_lapser_cards_init(struct pwi_lapser_cards *cards, const struct pwi_lapser_task *task);
int64_t pwi_lapser_cards_arrival(struct pwi_lapser_cards *cards, uint32_t from, uint32_t to, size_t size, int64_t now);

/* As the simulator asks. */
int64_t pwi_lapser_delivery_time(void *cards, const struct pwi_sim_packet *packet, int64_t now,
                                 struct pwi_random *random);

/* Of drawing a block. */
int64_t pwi_lapser_block_ns(const struct pwi_lapser_task *task, const struct bpmf_sampler *sampler, int side,
                            size_t block);

/* The exchange by hand, as it would be without any cost but that of the network: see hand_sim.c. */
PAWL_MUST_USE pawl_status pwi_lapser_simulate_hand(const struct pwi_lapser_task *task,
                                                   struct pwi_lapser_figures *figures_out);

#endif
