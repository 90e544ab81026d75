/* Processes with a network link each that can be cut: a network namespace for every server, joined by a
 * bridge.
 *
 * The thread that opens this is in a namespace of its own from then on, called home, with all processes
 * that it starts. A cell is another namespace, in which one process is started. Nothing of it has a name
 * outside or outlives the process. Needs root, `ip` of iproute2, and a kernel with veth and bridge
 * devices.
 *
 *   cut    no packet passes between the cell and others, in either direction; nobody is told
 *   lose   no packet passes from one cell to another; the other direction works: packets go to an address
 *          that does not exist. A device of the cell that goes down forgets it
 *   down   the cell has no network: its own device is down, so that its processes are told; or the other
 *          end of the cable is, so that they are not
 *   group  cells of one group reach one another, and no cell of another group
 *
 * Threads: only the thread that opened it may call. Functions return false on failure.
 */
#ifndef TESTS_STORM_HARNESS_CELLS_H
#define TESTS_STORM_HARNESS_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_STORM_CELLS_MAX 250
#define PWI_STORM_CELL_ADDRESS 16 /* bytes of an address as text */

struct pwi_storm_cells;

/* False without permission or such devices; `*why_out` explains it. */
bool pwi_storm_cells_open(struct pwi_storm_cells **cells_out, const char **why_out);
void pwi_storm_cells_close(struct pwi_storm_cells *cells); /* the thread stays at home; NULL is fine */

/* Cell 0 is home. */
bool pwi_storm_cell_add(struct pwi_storm_cells *cells, uint32_t *cell_out);
void pwi_storm_cell_address(uint32_t cell, char text[PWI_STORM_CELL_ADDRESS]);

/* Processes that are started from now on are in that cell; return home soon. */
bool pwi_storm_cell_enter(struct pwi_storm_cells *cells, uint32_t cell);

bool pwi_storm_cell_cut(struct pwi_storm_cells *cells, uint32_t cell, bool is_cut);
bool pwi_storm_cell_lose(struct pwi_storm_cells *cells, uint32_t from, uint32_t to, bool is_lost);

enum pwi_storm_end { PWI_STORM_NEAR_END, PWI_STORM_FAR_END }; /* of a cable: in the cell, or at home */
bool pwi_storm_cell_down(struct pwi_storm_cells *cells, uint32_t cell, enum pwi_storm_end end, bool is_down);

/* Moves the cell to a group. Home is in group 0, and so is every cell at first. */
#define PWI_STORM_GROUPS 4
bool pwi_storm_cell_group(struct pwi_storm_cells *cells, uint32_t cell, uint32_t group);

#endif
