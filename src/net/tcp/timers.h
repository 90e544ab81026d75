/* Timers in order of their time: a binary heap whose entries know their place, so that one can be cancelled. */
#ifndef PWI_NET_TCP_TIMERS_H
#define PWI_NET_TCP_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_timers {
  struct timer_entry *heap;
  size_t count, capacity;
  uint64_t last_id; /* rising: breaks ties in the order of setting */
  /* place[id & mask] is where the timer of that id stands; ids of live timers may collide, so it is a hash table with
   * linear probing, twice as large as the heap. */
  struct timer_place *places;
  size_t place_mask;
};

void pwi_timers_init(struct pwi_timers *timers);
void pwi_timers_fini(struct pwi_timers *timers);

/* PAWL_NO_MEMORY. */
pawl_status pwi_timers_set(struct pwi_timers *timers, int64_t at, uint64_t cookie, uint64_t *id_out);
void pwi_timers_cancel(struct pwi_timers *timers, uint64_t id);

/* The time of the first timer; INT64_MAX if there is none. */
int64_t pwi_timers_next(const struct pwi_timers *timers);

/* Take out the first timer if its time is not after `now`. */
bool pwi_timers_take(struct pwi_timers *timers, int64_t now, uint64_t *id_out, uint64_t *cookie_out);

#endif
