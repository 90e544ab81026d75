/* Threads that work through numbered pieces of work together. */
#ifndef BPMF_CREW_H
#define BPMF_CREW_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

struct bpmf_crew;

/* Starts threads - 1 threads; the caller is one as well. If a thread cannot be started, the others do its work.
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status bpmf_crew_create(uint32_t threads, struct bpmf_crew **crew_out);
void bpmf_crew_destroy(struct bpmf_crew *crew); /* NULL is fine */

/* Calls `work` for each piece from 0 to pieces - 1, in any order and by any thread, and waits. `hand` is the number of
 * the thread, below `threads`. */
void bpmf_crew_run(struct bpmf_crew *crew, size_t pieces, void (*work)(void *context, uint32_t hand, size_t piece),
                   void *context);

/* The number of processors that this process may use. */
uint32_t bpmf_crew_processors(void);

#endif
