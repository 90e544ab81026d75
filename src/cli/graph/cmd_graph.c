/* `pawl graph`: its subcommands, and the list of topologies. */
#include "cli/graph/cmd_graph.h"

#include <stdio.h>

#include "graph/topology.h"

static int print_info(const struct pwi_command *command, const struct pwi_topology_info *info, bool json) {
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:s, s:s, s:s, s:s}", "graph", info->name, "nodes", info->nodes,
                                                 "degree", info->degree, "summary", info->summary));
  printf("%-10s %-8s %-15s %s\n", info->name, info->nodes, info->degree, info->summary);
  return PWI_EXIT_OK;
}

static int run_list(const struct pwi_command *command, int argc, char **argv) {
  static const struct pwi_topology_info chosen = {"default", "any", "2",
                                                  "root up to 400 nodes, then the best of many random"};
  bool json;
  int exit_code;
  if (!pwi_cli_only_json(command, argc, argv, &json, &exit_code)) return exit_code;
  if (!json) printf("%-10s %-8s %-15s %s\n", "graph", "nodes", "degree", "edges");
  exit_code = print_info(command, &chosen, json);
  for (int i = 0; i < PWI_TOPOLOGIES && exit_code == PWI_EXIT_OK; i++)
    exit_code = print_info(command, pwi_topology_info((enum pwi_topology)i), json);
  return exit_code;
}

static const struct pwi_cli_option list_options[] = {PWI_CLI_JSON, {0}};

static const struct pwi_command command_list = {
    .name = "graph list",
    .summary = "list the graphs that pawl can make",
    .text = "Lists the topologies: the numbers of nodes N that each can have, how many\n"
            "nodes a node sends to, and which. Numbers of nodes are modulo N.\n",
    .options = list_options,
    .run = run_list,
};

static const struct pwi_command *const children[] = {&command_list, &pwi_command_graph_show, &pwi_command_graph_check,
                                                     &pwi_command_graph_optimise, NULL};

const struct pwi_command pwi_command_graph = {
    .name = "graph",
    .summary = "compare graphs over which peers share values",
    .text = "Peers without servers send their values along the edges of a graph. A graph\n"
            "with few edges sends few bytes; one with a large spectral gap needs few\n"
            "rounds until all peers agree. docs/graphs.md explains both.\n",
    .children = children,
};
