/* Triggers: a push that waits for a group.
 *
 * A trigger first waits with an AWAIT, which is sent again if the head of the group is lost. The push gets
 * its number only when the await is over, so no other push has to follow it before. From then on it is a push
 * like any other, and takes effect exactly once.
 */
#include <stddef.h>

#include "client/inside.h"

static void fire(struct pwi_task *await) {
  struct pwi_trigger *trigger = (struct pwi_trigger *)((char *)await - offsetof(struct pwi_trigger, await));
  struct pwi_task *task = trigger->task;
  struct pwi_keylist *list = trigger->where.list;
  pawl_status status = await->status;
  if (!status)
    status =
        pwi_client_start(trigger->client, task, trigger->flow, PWI_REQUEST_PUSH, &trigger->where, trigger->in, NULL);
  if (status) {
    task->status = status;
    task->failure_count = 0;
    task->finished(task);
  }
  pwi_keylist_release(list); /* its parts have their own reference; the trigger may be gone */
}

pawl_status pwi_client_trigger(struct pwi_client *client, struct pwi_trigger *trigger, struct pwi_task *task,
                               struct pwi_flow *group, uint64_t tick, struct pwi_flow *flow,
                               const struct pwi_where *where, const void *in) {
  *trigger = (struct pwi_trigger){.await.finished = fire,
                                  .client = client,
                                  .task = task,
                                  .flow = flow,
                                  .where = *where,
                                  .in = in,
                                  .group = group,
                                  .tick = tick};
  pawl_status status = pwi_client_check(client, flow, PWI_REQUEST_PUSH, where);
  if (status) return status;
  if (where->list) pwi_keylist_retain(where->list);
  status = pwi_client_await(client, &trigger->await, group, tick);
  if (status) pwi_keylist_release(where->list);
  return status;
}
