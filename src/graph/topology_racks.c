/* The two-level topology: links inside of a rack are cheap and many, links between racks expensive and few.
 *
 * Every rack is a complete graph. Over the R racks, taken in the order of their numbers, lies a root graph: rack
 * a sends to rack a+1 and to rack a+r, where r is the square root of R, rounded. `degree` is the number of links
 * out of each rack. The members of a rack take turns, in the order of their numbers: member 0 of rack a sends to
 * member 0 of rack a+1, member 1 to member 1 of rack a+r, member 2 to member 2 of rack a+1, and so on. Only as
 * many members as the smallest rack has, M, carry links. In a second turn each of them has the other target.
 *
 * So every member has as many links out as in, whatever the sizes of the racks, and no link occurs twice if
 * `degree` is at most 2 * M, or M where there are two racks. The default is M, one link for each member of the
 * smallest rack, but 2 if M is 1 and there are three racks or more. If all racks have the size M, the default
 * graph is regular, of degree M.
 */
#include <inttypes.h>

#include "base/memory.h"
#include "graph/topology_inside.h"

struct rack_table {
  uint32_t racks;    /* racks with at least one member */
  uint32_t smallest; /* members of the smallest of them */
  uint64_t inside;   /* edges inside of racks */
  uint32_t *begin;   /* racks + 1 values: rack a has members[begin[a] .. begin[a + 1]) */
  uint32_t *members;
};

/* Sorts the nodes by rack, and drops the numbers of racks without a node. */
static pawl_status sort_by_rack(const struct pwi_graph_spec *spec, struct rack_table *table,
                                struct pwi_graph_why *why) {
  uint32_t nodes = spec->nodes, sum = 0;
  if (!spec->racks) return pwi_graph_refuse(why, PAWL_INVALID, "the racks of the nodes are not given");
  for (uint32_t i = 0; i < nodes; i++)
    if (spec->racks[i] >= nodes)
      return pwi_graph_refuse(why, PAWL_INVALID, "node %" PRIu32 " is in rack %" PRIu32 ", which is not below %" PRIu32,
                              i, spec->racks[i], nodes);
  table->begin = pwi_alloc_zero((size_t)nodes + 1, sizeof *table->begin);
  table->members = pwi_resize_array(NULL, nodes, sizeof *table->members);
  if (!table->begin || !table->members)
    return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %" PRIu32 " nodes", nodes);
  for (uint32_t i = 0; i < nodes; i++) table->begin[spec->racks[i] + 1]++;
  for (uint32_t a = 1; a <= nodes; a++) {
    uint32_t size = table->begin[a];
    table->begin[a] = sum;
    sum += size;
  }
  for (uint32_t i = 0; i < nodes; i++) table->members[table->begin[spec->racks[i] + 1]++] = i;
  table->smallest = nodes;
  for (uint32_t a = 1, end = 0; a <= nodes; a++) {
    uint32_t size = table->begin[a] - end;
    if (size == 0) continue;
    end += size;
    table->begin[++table->racks] = end;
    table->inside += (uint64_t)size * (size - 1);
    if (size < table->smallest) table->smallest = size;
  }
  return PAWL_OK;
}

static pawl_status count_links(const struct pwi_graph_spec *spec, const struct rack_table *table, uint32_t *links_out,
                               struct pwi_graph_why *why) {
  uint32_t most = table->racks == 1 ? 0 : table->racks == 2 ? table->smallest : 2 * table->smallest;
  uint32_t links = spec->degree;
  if (links == 0) links = table->smallest == 1 && table->racks > 2 ? 2 : table->smallest;
  if (links > most && spec->degree)
    return pwi_graph_refuse(why, PAWL_INVALID,
                            "%" PRIu32 " links out of each rack are too many: with %" PRIu32
                            " racks, the smallest of %" PRIu32 " nodes, at most %" PRIu32 " are possible",
                            links, table->racks, table->smallest, most);
  *links_out = links < most ? links : most;
  return PAWL_OK;
}

static void add_inside(const struct rack_table *table, struct pwi_edge_list *list) {
  for (uint32_t a = 0; a < table->racks; a++)
    for (uint32_t i = table->begin[a]; i < table->begin[a + 1]; i++)
      for (uint32_t k = table->begin[a]; k < table->begin[a + 1]; k++)
        if (i != k) pwi_edge_list_add(list, table->members[i], table->members[k]);
}

static void add_links(const struct rack_table *table, uint32_t links, struct pwi_edge_list *list) {
  uint32_t far = pwi_topology_root(table->racks);
  for (uint32_t a = 0; a < table->racks; a++)
    for (uint32_t link = 0; link < links; link++) {
      uint32_t member = link % table->smallest, turn = link / table->smallest;
      uint32_t to = (a + ((member + turn) % 2 ? far : 1)) % table->racks;
      pwi_edge_list_add(list, table->members[table->begin[a] + member], table->members[table->begin[to] + member]);
    }
}

pawl_status pwi_topology_racks(const struct pwi_graph_spec *spec, struct pwi_edge_list *list,
                               struct pwi_graph_why *why) {
  struct rack_table table = {0};
  uint32_t links = 0;
  pawl_status status = sort_by_rack(spec, &table, why);
  if (!status) status = count_links(spec, &table, &links, why);
  if (!status) status = pwi_edge_list_open(list, table.inside + (uint64_t)table.racks * links, why);
  if (!status) {
    add_inside(&table, list);
    add_links(&table, links, list);
  }
  pwi_free(table.begin);
  pwi_free(table.members);
  return status;
}
