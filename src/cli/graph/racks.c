#include "cli/graph/racks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "cli/cli.h"

struct rack_names {
  char **items; /* names in the order of their first nodes */
  size_t count, room;
  uint32_t *racks;
  size_t node_count, node_room;
};

static void fini_names(struct rack_names *names) {
  for (size_t i = 0; i < names->count; i++) pwi_free(names->items[i]);
  pwi_free(names->items);
  pwi_free(names->racks);
}

/* The last racks first, because the nodes of a rack usually follow one another. */
static pawl_status find_name(struct rack_names *names, const char *name, uint32_t *rack_out) {
  for (size_t i = names->count; i-- > 0;)
    if (strcmp(names->items[i], name) == 0) {
      *rack_out = (uint32_t)i;
      return PAWL_OK;
    }
  char *copy = pwi_copy_string(name);
  if (!copy || !PWI_GROW(names->items, names->room, names->count + 1)) {
    pwi_free(copy);
    return PAWL_NO_MEMORY;
  }
  *rack_out = (uint32_t)names->count;
  names->items[names->count++] = copy;
  return PAWL_OK;
}

/* The name in a line, or an empty text. */
static char *trim(char *line) {
  line[strcspn(line, "#\r\n")] = 0;
  line += strspn(line, " \t");
  size_t length = strlen(line);
  while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) line[--length] = 0;
  return line;
}

static pawl_status read_lines(FILE *file, const char *path, struct rack_names *names, struct pwi_graph_why *why) {
  char *line = NULL;
  size_t room = 0;
  pawl_status status = PAWL_OK;
  while (!status && getline(&line, &room, file) >= 0) {
    const char *name = trim(line);
    uint32_t rack = 0;
    if (names->node_count == PWI_GRAPH_NODES_MAX)
      status = pwi_graph_refuse(why, PAWL_CORRUPT, "%s: more than %" PRIu32 " lines", path, PWI_GRAPH_NODES_MAX);
    else if (!*name)
      status = pwi_graph_refuse(why, PAWL_CORRUPT, "%s:%zu: no rack; expected the name of the rack of node %zu", path,
                                names->node_count + 1, names->node_count);
    else if (find_name(names, name, &rack) || !PWI_GROW(names->racks, names->node_room, names->node_count + 1))
      status = pwi_graph_refuse(why, PAWL_NO_MEMORY, "%s: out of memory", path);
    else
      names->racks[names->node_count++] = rack;
  }
  if (!status && ferror(file))
    status = pwi_graph_refuse(why, pwi_files_posix_status(errno), "cannot read %s: %s", path, strerror(errno));
  free(line);
  return status;
}

static pawl_status read_file(const char *path, uint32_t *nodes, struct pwi_graph_why *why, uint32_t **racks_out) {
  struct rack_names names = {0};
  FILE *file = fopen(path, "re");
  if (!file) return pwi_graph_refuse(why, pwi_files_posix_status(errno), "cannot read %s: %s", path, strerror(errno));
  pawl_status status = read_lines(file, path, &names, why);
  fclose(file);
  if (!status && names.node_count == 0)
    status = pwi_graph_refuse(why, PAWL_CORRUPT, "%s: the file is empty; it should have a line for each node", path);
  if (!status && *nodes && names.node_count != *nodes)
    status = pwi_graph_refuse(why, PAWL_CORRUPT, "%s has %zu lines, but there are %" PRIu32 " nodes", path,
                              names.node_count, *nodes);
  if (!status) {
    *nodes = (uint32_t)names.node_count;
    *racks_out = names.racks;
    names.racks = NULL;
  }
  fini_names(&names);
  return status;
}

pawl_status pwi_graph_racks(const char *value, uint32_t *nodes, struct pwi_graph_why *why, uint32_t **racks_out) {
  uint64_t racks;
  if (!pwi_cli_number(value, &racks)) return read_file(value, nodes, why, racks_out);
  if (*nodes == 0) return pwi_graph_refuse(why, PAWL_INVALID, "--racks with a number needs --nodes");
  if (racks == 0 || racks > *nodes)
    return pwi_graph_refuse(why, PAWL_INVALID, "--racks is a file, or a number of racks from 1 to %" PRIu32 ", not %s",
                            *nodes, value);
  uint32_t *list = pwi_resize_array(NULL, *nodes, sizeof *list);
  if (!list) return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < *nodes; i++) list[i] = (uint32_t)((uint64_t)i * racks / *nodes);
  *racks_out = list;
  return PAWL_OK;
}
