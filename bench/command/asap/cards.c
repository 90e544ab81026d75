/* The network of the simulated figures. A small message takes 20 to 60 us. A model also waits for the card of
 * its sender and for the one of its receiver, each of which moves one model at a time. The paper, too, has
 * separate queues for short messages and for models (section 5). */
#include "asap.h"
#include "sim/sim.h"

#define LATENCY_MIN (20 * PWI_SIM_MICROSECOND)
#define LATENCY_MORE (40 * PWI_SIM_MICROSECOND)

static int64_t later(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t pwi_asap_delivery_time(void *context, const struct pwi_sim_packet *packet, int64_t now,
                               struct pwi_random *random) {
  struct pwi_asap_cards *cards = context;
  int64_t latency = LATENCY_MIN + (int64_t)pwi_random_below(random, LATENCY_MORE);
  if (packet->size < cards->bytes || packet->from.index >= cards->nodes || packet->to.index >= cards->nodes)
    return now + latency;
  int64_t takes = (int64_t)((double)cards->put_ns * (double)packet->size / (double)cards->bytes);
  int64_t *sends = &cards->sends_until[packet->from.index], *receives = &cards->receives_until[packet->to.index];
  *sends = later(now, *sends) + takes;
  *receives = later(*sends + latency, *receives + takes);
  return *receives;
}
