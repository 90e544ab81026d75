/* Timers ordered by time: a binary heap with an index by id, so that timers can be cancelled. */
#ifndef PWI_NET_TCP_TIMERS_H
#define PWI_NET_TCP_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

struct pwi_timers {
  struct timer_entry *heap;
  size_t count, capacity;
  uint64_t last_id; /* increasing; breaks ties in the order of setting */
  /* A hash table from ids to places in the heap, with linear probing, twice as large as the heap. */
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

/* Removes the first timer if it is due at `now`. */
bool pwi_timers_take(struct pwi_timers *timers, int64_t now, uint64_t *id_out, uint64_t *cookie_out);

#endif
