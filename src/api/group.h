/* Groups, for other files of this module. */
#ifndef PWI_API_GROUP_H
#define PWI_API_GROUP_H

#include <pawl/group.h>

#include "client/client.h"

struct pwi_flow *pwi_group_flow(const struct pawl_group *group);
/* as the user writes it; lives as long as the pool */
const char *pwi_group_name(const struct pawl_group *group);

/* Inside the gate: leaves the group but keeps the handle, because other code may still use it.
 * pawl_group_leave frees it as usual. */
void pwi_group_step_out(struct pawl_group *group);

#endif
