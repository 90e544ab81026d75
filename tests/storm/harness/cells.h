/* Processes with a cable each, so that it can be cut: a network namespace for every server, joined by a bridge.
 *
 * The thread that opens this is in a namespace of its own from then on, called home, with whatever it starts; a cell is one
 * more, in which one process is started. Nothing of it has a name outside or outlives the process. Needs root, `ip` of
 * iproute2, and a kernel with veth and bridge devices.
 *
 *   cut    nothing passes between a cell and anybody, either way; nobody is told
 *   lose   nothing passes from one cell to another, the other way it does: packets go to an address that nobody has
 *
 * Threads: all calls come from the thread that opened it. Every function says false if it cannot be done.
 */
#ifndef TESTS_STORM_HARNESS_CELLS_H
#define TESTS_STORM_HARNESS_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_STORM_CELLS_MAX 250
#define PWI_STORM_CELL_ADDRESS 16 /* bytes of an address as text */

struct pwi_storm_cells;

/* False where there is no permission or no such device; `*why_out` says which, for people. */
bool pwi_storm_cells_open(struct pwi_storm_cells **cells_out, const char **why_out);
void pwi_storm_cells_close(struct pwi_storm_cells *cells); /* the thread stays at home; NULL is fine */

/* Cell 0 is home. */
bool pwi_storm_cell_add(struct pwi_storm_cells *cells, uint32_t *cell_out);
void pwi_storm_cell_address(uint32_t cell, char text[PWI_STORM_CELL_ADDRESS]);

/* What is started from now on is in that cell; go home soon. */
bool pwi_storm_cell_enter(struct pwi_storm_cells *cells, uint32_t cell);

bool pwi_storm_cell_cut(struct pwi_storm_cells *cells, uint32_t cell, bool is_cut);
bool pwi_storm_cell_lose(struct pwi_storm_cells *cells, uint32_t from, uint32_t to, bool is_lost);

#endif
