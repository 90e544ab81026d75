/* Programs that leave main, or call exit, with sessions open.
 *
 * Handlers of an exit free what libraries hold, OpenSSL and UCX among them, while the threads of sessions go on using it. So before them
 * all sessions are *parked*: their own threads end, and nobody else gets into them any more. A thread that stays in a callback of the
 * program's is waited for only briefly.
 *
 * Threads: any may call these.
 */
#ifndef PWI_API_PARKING_H
#define PWI_API_PARKING_H

#include "api/driver.h"

/* From when the driver's thread runs until it is stopped. */
void pwi_parking_add(struct pwi_driver *driver);
void pwi_parking_remove(struct pwi_driver *driver);

#endif
