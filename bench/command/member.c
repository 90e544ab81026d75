#include "bench/command/member.h"

#include <stddef.h>

#include "base/bytes.h"

static void broken(const struct pwi_bench_member *member, const char *what, pawl_status status) {
  pwi_sim_fail(member->cluster->sim, status ? status : PAWL_CORRUPT, "worker %s %s: %s", member->client->name, what,
               pawl_status_text(status));
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct pwi_bench_member *member =
      (struct pwi_bench_member *)(void *)((char *)asking - offsetof(struct pwi_bench_member, asking));
  if (status || size != 8)
    broken(member, "could not join the group", status);
  else
    member->group.id = pwi_get_u64(payload);
}

void pwi_bench_member_join(struct pwi_bench_member *member, struct pwi_cluster *cluster,
                           struct pwi_cluster_client *client, const char *group, uint32_t founders) {
  struct pwi_writer writer = {0};
  member->cluster = cluster;
  member->client = client;
  member->asking = (struct pwi_asking){.replied = joined};
  pwi_write_text(&writer, group);
  pwi_write_u32(&writer, founders);
  pawl_status status = writer.status;
  if (!status) status = pwi_client_peers(client->client, &member->peers);
  if (!status) status = pwi_client_ask(client->client, &member->asking, PWI_ASK_PEERS, writer.data, writer.size);
  if (status) broken(member, "could not start", status);
  pwi_writer_fini(&writer);
}

bool pwi_bench_member_is_complete(struct pwi_bench_member *member) {
  const struct pwi_membership *membership = pwi_client_membership(member->client->client);
  const struct pwi_membership_group *group = member->group.id ? pwi_membership_group(membership, member->group) : NULL;
  struct pwi_client_state state;
  size_t count = 0;
  if (!group || !group->complete) return false;
  const struct pwi_membership_member *members = pwi_membership_members(membership, member->group, &count);
  pwi_client_state(member->client->client, &state);
  for (member->rank = 0; member->rank < count; member->rank++)
    if (members[member->rank].sender.id == state.sender) return true;
  return false;
}
