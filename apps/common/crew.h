/* Threads that work through numbered pieces of work together. */
#ifndef APPS_COMMON_CREW_H
#define APPS_COMMON_CREW_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

struct apps_crew;

/* Starts threads - 1 threads; the caller is one as well. If a thread cannot be started, the others do its work.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status apps_crew_create(uint32_t threads, struct apps_crew **crew_out);
void apps_crew_destroy(struct apps_crew *crew); /* NULL is fine */

/* Calls `work` for each piece from 0 to pieces - 1, in any order and by any thread, and waits. `hand` is the number of
 * the thread, below `threads`. */
void apps_crew_run(struct apps_crew *crew, size_t pieces, void (*work)(void *context, uint32_t hand, size_t piece),
                   void *context);

/* `look` is called by the caller of apps_crew_run, several times a second while it waits for other threads. */
void apps_crew_watch(struct apps_crew *crew, void (*look)(void *context), void *context);

/* The number of processors that this process may use. */
uint32_t apps_crew_processors(void);

#endif
