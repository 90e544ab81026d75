/* Counters of filters for the manager (protocol/filter_counts.h): sent at most once a second, and before
 * leaving. */
#include <string.h>

#include "base/bytes.h"
#include "client/inside.h"
#include "protocol/filter_counts.h"

#define TELL_NS INT64_C(1000000000)

/* The difference since the last message. */
static struct pwi_filter_count since(const struct pawl_filter_counters *now, const struct pawl_filter_counters *told) {
  struct pwi_filter_count count = {.runs = now->runs - told->runs,
                                   .rows_before = now->rows_before - told->rows_before,
                                   .rows_after = now->rows_after - told->rows_after,
                                   .bytes_before = now->bytes_before - told->bytes_before,
                                   .bytes_after = now->bytes_after - told->bytes_after,
                                   .clamped = now->clamped - told->clamped};
  strncpy(count.name, now->name, sizeof count.name - 1);
  return count;
}

static uint32_t write_chain(struct pwi_client *client, const struct pwi_flow *flow, unsigned direction) {
  struct pawl_filter_counters now, *told = flow->filters->told[direction == PAWL_ON_PULL];
  const struct pawl_filters *chain = pwi_flow_filters(flow, direction);
  uint32_t written = 0;
  for (size_t i = 0; pawl_filters_counters(chain, i, &now) == PAWL_OK; i++) {
    if (now.runs == told[i].runs) continue;
    struct pwi_filter_count count = since(&now, &told[i]);
    count.vector = flow->entry.id.id;
    count.direction = (uint8_t)direction;
    pwi_filter_count_write(&client->writer, &count);
    told[i] = now;
    written++;
  }
  return written;
}

/* Flows to other nodes do not count: they are not part of the vector on the servers. */
static uint32_t write_all(struct pwi_client *client) {
  uint32_t count = 0;
  for (const struct pwi_flow *flow = client->flows; flow; flow = flow->next)
    if (flow->filters && flow->node == 0)
      count += write_chain(client, flow, PAWL_ON_PUSH) + write_chain(client, flow, PAWL_ON_PULL);
  return count;
}

void pwi_client_count_later(struct pwi_client *client) {
  if (client->tell_at != 0) return;
  client->tell_at = pwi_net_now(client->config.net) + TELL_NS;
  pwi_client_wake_at(client, client->tell_at);
}

/* An older manager does not know this message. */
void pwi_client_tell_counts(struct pwi_client *client, bool at_once) {
  if (client->tell_at == 0) return;
  if (!at_once && pwi_net_now(client->config.net) < client->tell_at) {
    pwi_client_wake_at(client, client->tell_at);
    return;
  }
  client->tell_at = 0;
  if (!client->is_joined || !client->manager || !client->manager->is_up || client->manager->peering.codecs == 0) return;
  pwi_writer_reset(&client->writer);
  pwi_write_u32(&client->writer, 0);
  uint32_t count = write_all(client);
  if (count == 0 || client->writer.status) return;
  pwi_put_u32(client->writer.data, count);
  pwi_client_say_payload(client, PWI_SAY_COUNTS, 0, 0);
}
