/* Handles programs that leave main, or call exit, with open sessions.
 *
 * Exit handlers free the state of libraries, OpenSSL and UCX among them, while threads of sessions still
 * use it. So all sessions are *parked* before: their own threads end, and no other thread can enter them
 * any more. A thread that stays in a callback of the program is waited for only briefly.
 *
 * Threads: any.
 */
#ifndef PWI_API_PARKING_H
#define PWI_API_PARKING_H

#include "api/driver.h"

/* Registers a driver while its own thread runs. */
void pwi_parking_add(struct pwi_driver *driver);
void pwi_parking_remove(struct pwi_driver *driver);

#endif
