/* Groups, for others in this room. */
#ifndef PWI_API_GROUP_H
#define PWI_API_GROUP_H

#include <pawl/group.h>

#include "client/client.h"

struct pwi_flow *pwi_group_flow(const struct pawl_group *group);
const char *pwi_group_name(const struct pawl_group *group); /* as the user writes it; lives as long as the pool */

/* Inside the gate: leaves it, and keeps the handle, which pawl_group_leave frees as ever: for when somebody may still be using it. */
void pwi_group_step_out(struct pawl_group *group);

#endif
