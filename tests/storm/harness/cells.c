#include "cells.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/export.h>

#include "base/memory.h"

#define NOBODY "02:00:00:00:00:99"

struct pwi_storm_cells {
  uint32_t count;
  int spaces[PWI_STORM_CELLS_MAX]; /* descriptors that keep the namespaces alive; the first is home */
  bool has_hub[PWI_STORM_GROUPS];  /* there is a bridge for this group; group 0 always has one */
};

static bool run(const char *format, ...) PAWL_PRINTF(1, 2);

/* Runs a shell command in the current namespace of this thread. */
static bool run(const char *format, ...) {
  char command[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof command) return false;
  int status = system(command);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void pwi_storm_cell_address(uint32_t cell, char text[PWI_STORM_CELL_ADDRESS]) {
  snprintf(text, PWI_STORM_CELL_ADDRESS, "10.213.77.%u", (cell + 1) % 256);
}

static bool new_space(struct pwi_storm_cells *cells) {
  if (cells->count == PWI_STORM_CELLS_MAX || unshare(CLONE_NEWNET) != 0) return false;
  int space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (space < 0) return false;
  cells->spaces[cells->count++] = space;
  return run("ip link set lo up");
}

bool pwi_storm_cell_enter(struct pwi_storm_cells *cells, uint32_t cell) {
  return cell < cells->count && setns(cells->spaces[cell], CLONE_NEWNET) == 0;
}

/* Without a delay a port of the bridge forwards as soon as it is attached. */
static bool make_home(struct pwi_storm_cells *cells, const char **why_out) {
  char address[PWI_STORM_CELL_ADDRESS];
  pwi_storm_cell_address(0, address);
  if (!run("ip -V >/dev/null 2>&1"))
    *why_out = "'ip' of iproute2 is not installed";
  else if (!new_space(cells))
    *why_out = errno == EPERM ? "root is required" : "network namespaces are not available";
  else if (!run("ip link add hub type bridge forward_delay 0 2>/dev/null && ip addr add %s/24 dev hub && "
                "ip link set hub up",
                address))
    *why_out = "bridge devices are not available";
  else
    return true;
  return false;
}

bool pwi_storm_cells_open(struct pwi_storm_cells **cells_out, const char **why_out) {
  struct pwi_storm_cells *cells = pwi_alloc_zero(1, sizeof *cells);
  *why_out = "out of memory";
  if (!cells) return false;
  if (!make_home(cells, why_out)) {
    pwi_storm_cells_close(cells);
    return false;
  }
  *cells_out = cells;
  return true;
}

void pwi_storm_cells_close(struct pwi_storm_cells *cells) {
  if (!cells) return;
  for (uint32_t i = 0; i < cells->count; i++) close(cells->spaces[i]);
  pwi_free(cells);
}

static bool plug_in(const struct pwi_storm_cells *cells, uint32_t cell) {
  char address[PWI_STORM_CELL_ADDRESS];
  pwi_storm_cell_address(cell, address);
  return run("ip link add cable type veth peer name v%u netns /proc/%ld/fd/%d && ip addr add %s/24 dev cable && "
             "ip link set cable up",
             cell, (long)getpid(), cells->spaces[0], address);
}

bool pwi_storm_cell_add(struct pwi_storm_cells *cells, uint32_t *cell_out) {
  uint32_t cell = cells->count;
  bool good = new_space(cells) && plug_in(cells, cell);
  if (!pwi_storm_cell_enter(cells, 0)) abort(); /* cannot fail: we were there before */
  if (!good || !run("ip link set v%u master hub up", cell)) return false;
  *cell_out = cell;
  return true;
}

bool pwi_storm_cell_cut(struct pwi_storm_cells *cells, uint32_t cell, bool is_cut) {
  if (cell == 0 || cell >= cells->count) return false;
  return is_cut ? run("ip link set v%u nomaster", cell) : run("ip link set v%u master hub up", cell);
}

bool pwi_storm_cell_lose(struct pwi_storm_cells *cells, uint32_t from, uint32_t to, bool is_lost) {
  char address[PWI_STORM_CELL_ADDRESS];
  const char *device = from == 0 ? "hub" : "cable";
  pwi_storm_cell_address(to, address);
  if (!pwi_storm_cell_enter(cells, from)) return false;
  bool good = is_lost ? run("ip neigh replace %s lladdr " NOBODY " dev %s nud permanent", address, device)
                      : run("ip neigh del %s dev %s", address, device);
  return pwi_storm_cell_enter(cells, 0) && good;
}

bool pwi_storm_cell_down(struct pwi_storm_cells *cells, uint32_t cell, enum pwi_storm_end end, bool is_down) {
  const char *state = is_down ? "down" : "up";
  if (cell == 0 || cell >= cells->count) return false;
  if (end == PWI_STORM_FAR_END) return run("ip link set v%u %s", cell, state);
  if (!pwi_storm_cell_enter(cells, cell)) return false;
  bool good = run("ip link set cable %s", state);
  return pwi_storm_cell_enter(cells, 0) && good;
}

bool pwi_storm_cell_group(struct pwi_storm_cells *cells, uint32_t cell, uint32_t group) {
  if (cell == 0 || cell >= cells->count || group >= PWI_STORM_GROUPS) return false;
  if (group == 0) return run("ip link set v%u master hub", cell);
  if (!cells->has_hub[group])
    cells->has_hub[group] = run("ip link add hub%u type bridge forward_delay 0 && ip link set hub%u up", group, group);
  return cells->has_hub[group] && run("ip link set v%u master hub%u", cell, group);
}
