/* `pawl status`: the cluster as its manager sees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/session_options.h"

#define HOSTS_SHOWN 40 /* lines of the table of clients */
#define LETTER_WATCH 300
#define RING 18446744073709551616.0 /* 2^64 positions */

struct status {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json;
  int64_t watch_ns; /* 0: once */
};

/* --- what is in the JSON ---------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static double number_of(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

static long long whole_of(const json_t *object, const char *name) {
  return (long long)json_integer_value(json_object_get(object, name));
}

/* The part of the ring that a node is the head of. Positions are strings: they pass 2^53. */
static double share_of(const json_t *root, long long node) {
  double share = 0;
  size_t i;
  json_t *arc;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) {
    const json_t *head = json_array_get(json_object_get(arc, "chain"), 0);
    uint64_t begin = strtoull(text_of(arc, "begin"), NULL, 10), end = strtoull(text_of(arc, "end"), NULL, 10);
    if (whole_of(head, "node") == node) share += (double)(end - begin) / RING;
  }
  return share;
}

/* --- numbers for people ----------------------------------------------------------------------------------------------- */

#define CELL 24

static const char *count_text(double value, char text[CELL]) {
  static const char *const units[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1000;
  snprintf(text, CELL, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
  return text;
}

static const char *bytes_text(double value, char text[CELL]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; value >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++) value /= 1024;
  snprintf(text, CELL, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

/* --- tables ----------------------------------------------------------------------------------------------------------- */

static size_t count_of(const json_t *root, const char *name) { return json_array_size(json_object_get(root, name)); }

static json_t *find_node(const json_t *root, long long id) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) if (whole_of(node, "node") == id) return node;
  return NULL;
}

/* A server that is silent while most of them are is not marked down for a while. */
static bool is_away(const json_t *node) {
  return strcmp(text_of(node, "state"), "down") == 0 || !json_is_true(json_object_get(node, "linked"));
}

/* Marks the full members of the arc if all of them are away. */
static void mark_awaited(const json_t *root, const json_t *arc) {
  const json_t *chain = json_object_get(arc, "chain");
  for (int pass = 0; pass < 2; pass++) {
    size_t i;
    json_t *member;
    json_array_foreach(chain, i, member) {
      json_t *node = find_node(root, whole_of(member, "node"));
      if (json_is_true(json_object_get(member, "filling"))) continue;
      if (pass == 0 && !is_away(node)) return;
      if (pass == 1) json_object_set_new(node, "awaited", json_true());
    }
  }
}

/* Prints the nodes that have the only full copies of some arc, as "4, 7". */
static void print_awaited(const json_t *root) {
  const char *separator = "";
  size_t i;
  json_t *node, *arc;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) mark_awaited(root, arc);
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (!json_is_true(json_object_get(node, "awaited"))) continue;
    printf("%s%lld", separator, whole_of(node, "node"));
    separator = ", ";
  }
}

/* Prints arcs with too few members, and the reason. */
static void print_chains(const struct pwi_paint *paint, const json_t *root) {
  long long wanted = whole_of(root, "replicas") + 1, up = whole_of(root, "processes_up");
  long long lacking = whole_of(root, "under_replicated"), filling = whole_of(root, "filling");
  if (whole_of(root, "waiting") > 0) {
    printf("  %s%lld arcs wait%s for a server that is down and has the only copy (give it up with 'pawl server "
           "forget', all of them with 'pawl server forget --all-lost'): node ",
           pwi_paint_ink(paint, PWI_INK_RED), whole_of(root, "waiting"), pwi_paint_ink(paint, PWI_INK_PLAIN));
    print_awaited(root);
    printf("\n");
  }
  if (lacking == 0) return;
  printf("  %s%lld of %zu arcs are under-replicated%s: %lld copies wanted; ", pwi_paint_ink(paint, PWI_INK_YELLOW),
         lacking, count_of(root, "arcs"), pwi_paint_ink(paint, PWI_INK_PLAIN), wanted);
  if (up < wanted) printf("only %lld server processes are up%s", up, filling > 0 ? "; " : "");
  if (filling > 0)
    printf("%lld being copied, %lld to be copied", filling, lacking > filling ? lacking - filling : 0);
  else if (up >= wanted)
    printf("they will be copied");
  printf("\n");
}

/* Prints vectors that some servers cannot create for lack of memory. */
static void print_not_made(const struct pwi_paint *paint, const json_t *root) {
  size_t i, k;
  json_t *vector, *node;
  json_array_foreach(json_object_get(root, "vectors"), i, vector) {
    const json_t *nodes = json_object_get(vector, "not_made_by");
    if (json_array_size(nodes) == 0) continue;
    printf("  %s%s cannot be created%s for lack of memory on node", pwi_paint_ink(paint, PWI_INK_RED),
           text_of(vector, "name"), pwi_paint_ink(paint, PWI_INK_PLAIN));
    json_array_foreach(nodes, k, node) printf("%s %lld", k > 0 ? "," : "", (long long)json_integer_value(node));
    printf(": pushes and pulls are refused there; remove it with 'pawl vector delete %s'\n", text_of(vector, "name"));
  }
}

static void print_head(const struct status *status, const struct pwi_paint *paint, const json_t *root) {
  bool ready = json_is_true(json_object_get(root, "ready")), is_served = whole_of(root, "processes") > 0;
  size_t relays = count_of(root, "relays");
  printf("cluster %s at %s: %s%s%s\n", text_of(root, "cluster"), pwi_role_short(status->choice.options.address),
         pwi_paint_ink(paint, ready       ? PWI_INK_GREEN
                              : is_served ? PWI_INK_RED
                                          : PWI_INK_YELLOW),
         ready       ? "ready"
         : is_served ? "not ready"
                     : "no servers",
         pwi_paint_ink(paint, PWI_INK_PLAIN));
  if (*text_of(root, "stopped"))
    printf("  %sthe manager has stopped making decisions: %s%s\n", pwi_paint_ink(paint, PWI_INK_RED),
           text_of(root, "stopped"), pwi_paint_ink(paint, PWI_INK_PLAIN));
  printf("  epoch %lld, %lld server processes with %zu shards, %zu arcs, %zu vectors, %lld clients\n",
         whole_of(root, "epoch"), whole_of(root, "processes"), count_of(root, "nodes"), count_of(root, "arcs"),
         count_of(root, "vectors"), whole_of(root, "clients"));
  if (strcmp(text_of(root, "meta"), "memory") != 0)
    printf("  leader %s in term %lld, log in %s\n", pwi_role_short(text_of(root, "leader")), whole_of(root, "term"),
           text_of(root, "meta"));
  if (whole_of(root, "moves_done") > 0 || count_of(root, "moves") > 0)
    printf("  %zu arcs being moved, %lld moved so far\n", count_of(root, "moves"), whole_of(root, "moves_done"));
  if (relays > 0) printf("  %zu %s, tree %s\n", relays, relays == 1 ? "relay" : "relays", text_of(root, "relay_tree"));
  print_chains(paint, root);
  print_not_made(paint, root);
}

static void print_node(const struct pwi_paint *paint, const json_t *root, const json_t *node) {
  char rows[CELL], bytes[CELL], cap[CELL] = "", pushes[CELL], pulls[CELL], keys[CELL];
  const char *state = text_of(node, "state");
  bool is_up = strcmp(state, "up") == 0, is_down = strcmp(state, "down") == 0;
  const json_t *most = json_object_get(node, "memory_max");
  if (json_is_integer(most)) bytes_text(json_number_value(most), cap);
  printf("%5lld %s%-8s%s %-21s %5lld %6.1f%% %7s %10s%s%-9s %8s %8s %8s  %s\n", whole_of(node, "node"),
         pwi_paint_ink(paint, is_up     ? PWI_INK_GREEN
                              : is_down ? PWI_INK_RED
                                        : PWI_INK_YELLOW),
         state, pwi_paint_ink(paint, PWI_INK_PLAIN), pwi_role_short(text_of(node, "address")), whole_of(node, "arcs"),
         100 * share_of(root, whole_of(node, "node")), count_text(number_of(node, "rows"), rows),
         bytes_text(number_of(node, "bytes"), bytes), *cap ? "/" : " ", cap,
         count_text(number_of(node, "pushes_per_s"), pushes), count_text(number_of(node, "pulls_per_s"), pulls),
         count_text(number_of(node, "keys_per_s"), keys), text_of(node, "host"));
}

static void print_nodes(const struct pwi_paint *paint, const json_t *root) {
  size_t i;
  json_t *node;
  if (count_of(root, "nodes") == 0) return;
  printf("\n%s%5s %-8s %-21s %5s %7s %7s %10s %-9s %8s %8s %8s  %s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "node",
         "state", "address", "arcs", "ring", "rows", "memory", "cap", "pushes/s", "pulls/s", "keys/s", "host",
         pwi_paint_ink(paint, PWI_INK_PLAIN));
  json_array_foreach(json_object_get(root, "nodes"), i, node) print_node(paint, root, node);
}

static const char *or_dash(const char *label) { return *label ? label : "-"; }

static void print_relays(const struct pwi_paint *paint, const json_t *root) {
  size_t i;
  json_t *relay;
  if (count_of(root, "relays") == 0) return;
  printf("\n%s%5s %-16s %-21s %-24s %s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "relay", "tree", "address", "host",
         "rack", pwi_paint_ink(paint, PWI_INK_PLAIN));
  json_array_foreach(json_object_get(root, "relays"), i, relay) printf(
      "%5lld %-16s %-21s %-24s %s\n", whole_of(relay, "id"), text_of(relay, "tree"),
      pwi_role_short(text_of(relay, "address")), or_dash(text_of(relay, "host")), or_dash(text_of(relay, "rack")));
}

/* Prints servers that have let clients wait for more urgent ones. */
static void print_holds(const struct pwi_paint *paint, const json_t *root) {
  size_t i, shown = 0;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (whole_of(node, "holds") == 0) continue;
    if (shown++ == 0)
      printf("\n%s%5s %10s %10s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "node", "lanes held", "holds",
             pwi_paint_ink(paint, PWI_INK_PLAIN));
    printf("%5lld %10lld %10lld\n", whole_of(node, "node"), whole_of(node, "lanes_held"), whole_of(node, "holds"));
  }
}

static const char *span_text(const json_t *vector) {
  const char *size = text_of(vector, "size");
  return strcmp(size, "18446744073709551615") == 0 ? "64 bits" : size;
}

static void print_vectors(const struct pwi_paint *paint, const json_t *root) {
  size_t i;
  json_t *vector;
  if (count_of(root, "vectors") == 0) return;
  printf("\n%s%-32s %-4s %7s %20s %-8s %-9s %-7s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "vector", "type", "width",
         "keys", "function", "placement", "layout", pwi_paint_ink(paint, PWI_INK_PLAIN));
  json_array_foreach(json_object_get(root, "vectors"), i, vector)
      printf("%-32s %-4s %7lld %20s %-8s %-9s %-7s\n", text_of(vector, "name"), text_of(vector, "type"),
             whole_of(vector, "width"), span_text(vector), text_of(vector, "function"), text_of(vector, "placement"),
             text_of(vector, "layout"));
}

/* Prints the counters of filters that have run. */
static void print_filters(const struct pwi_paint *paint, const json_t *root) {
  size_t i, k, shown = 0;
  json_t *vector, *filter;
  json_array_foreach(json_object_get(root, "vectors"), i, vector) {
    json_array_foreach(json_object_get(vector, "filter_counts"), k, filter) {
      char rows[2][CELL], bytes[2][CELL];
      if (shown++ == 0)
        printf("\n%s%-32s %-12s %-5s %9s %9s %10s %10s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "filters of", "filter",
               "on", "rows", "passed", "bytes", "left", pwi_paint_ink(paint, PWI_INK_PLAIN));
      printf("%-32s %-12s %-5s %9s %9s %10s %10s\n", text_of(vector, "name"), text_of(filter, "name"),
             text_of(filter, "on"), count_text(number_of(filter, "rows_before"), rows[0]),
             count_text(number_of(filter, "rows_after"), rows[1]),
             bytes_text(number_of(filter, "bytes_before"), bytes[0]),
             bytes_text(number_of(filter, "bytes_after"), bytes[1]));
    }
  }
}

static void print_jobs(const struct pwi_paint *paint, const json_t *root) {
  size_t i;
  json_t *item;
  if (count_of(root, "jobs") > 0) {
    printf("\n%s%-32s %7s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "job", "clients",
           pwi_paint_ink(paint, PWI_INK_PLAIN));
    json_array_foreach(json_object_get(root, "jobs"), i, item)
        printf("%-32s %7lld\n", text_of(item, "name"), whole_of(item, "clients"));
  }
  if (count_of(root, "groups") > 0) {
    printf("\n%s%-32s %7s %7s  %s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "group", "members", "size", "kind",
           pwi_paint_ink(paint, PWI_INK_PLAIN));
    json_array_foreach(json_object_get(root, "groups"), i, item)
        printf("%-32s %7lld %7lld  %s\n", text_of(item, "name"), whole_of(item, "members"), whole_of(item, "size"),
               text_of(item, "kind"));
  }
}

/* Prints where clients are; at most HOSTS_SHOWN lines. */
static void print_hosts(const struct pwi_paint *paint, const json_t *root) {
  size_t i, count = count_of(root, "client_hosts");
  json_t *item;
  if (count == 0) return;
  printf("\n%s%-32s %7s %-24s %s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "clients of", "number", "host", "rack",
         pwi_paint_ink(paint, PWI_INK_PLAIN));
  json_array_foreach(json_object_get(root, "client_hosts"), i, item) {
    if (i == HOSTS_SHOWN) break;
    printf("%-32s %7lld %-24s %s\n", text_of(item, "job"), whole_of(item, "clients"), or_dash(text_of(item, "host")),
           or_dash(text_of(item, "rack")));
  }
  if (count > HOSTS_SHOWN) printf("and %zu more lines; --json shows all of them\n", count - HOSTS_SHOWN);
}

static void print_moves(const struct pwi_paint *paint, const json_t *root) {
  size_t i;
  json_t *move;
  if (count_of(root, "moves") == 0) return;
  printf("\n%s%7s %6s %6s %8s  %s%s\n", pwi_paint_ink(paint, PWI_INK_BOLD), "move", "from", "to", "ring", "step",
         pwi_paint_ink(paint, PWI_INK_PLAIN));
  json_array_foreach(json_object_get(root, "moves"), i, move) {
    uint64_t begin = strtoull(text_of(move, "begin"), NULL, 10), end = strtoull(text_of(move, "end"), NULL, 10);
    printf("%7lld %6lld %6lld %7.2f%%  %s\n", whole_of(move, "move"), whole_of(move, "source"),
           whole_of(move, "target"), 100 * (double)(end - begin) / RING, text_of(move, "step"));
  }
}

static int print_tables(const struct status *status, const char *text) {
  struct pwi_paint paint;
  json_error_t error;
  json_t *root = json_loads(text, 0, &error);
  if (!root) return pwi_cli_failure(status->command, "cannot parse the manager's reply: %s", error.text);
  pwi_paint_init(&paint);
  if (status->watch_ns > 0 && paint.colour) printf("\033[H\033[J"); /* moves to the top left and clears the screen */
  print_head(status, &paint, root);
  print_nodes(&paint, root);
  print_holds(&paint, root);
  print_relays(&paint, root);
  print_vectors(&paint, root);
  print_filters(&paint, root);
  print_jobs(&paint, root);
  print_hosts(&paint, root);
  print_moves(&paint, root);
  json_decref(root);
  return PWI_EXIT_OK;
}

/* --- running ---------------------------------------------------------------------------------------------------------- */

static int show(const struct status *status, struct pawl_session *session) {
  char *text;
  pawl_status failure = pawl_session_status(session, status->choice.timeout_ns, &text);
  if (failure) return pwi_session_failure(status->command, failure);
  int exit_code = PWI_EXIT_OK;
  if (status->json)
    puts(text);
  else
    exit_code = print_tables(status, text);
  pawl_text_free(text);
  return exit_code;
}

static int run_status(const struct status *status) {
  struct pawl_session *session;
  int exit_code = pwi_session_start(&status->choice, status->command, &session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = show(status, session);
  while (exit_code == PWI_EXIT_OK && status->watch_ns > 0 && fflush(stdout) == 0) {
    struct timespec pause = {.tv_sec = (time_t)(status->watch_ns / PAWL_SECOND),
                             .tv_nsec = (long)(status->watch_ns % PAWL_SECOND)};
    nanosleep(&pause, NULL);
    if (!status->json) putchar('\n');
    exit_code = show(status, session);
  }
  pawl_status ignored = pwi_session_end(&status->choice, session, exit_code);
  (void)ignored; /* the result or an error has been printed */
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct status status = {.command = command};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&status.choice, "status", true);
  status.choice.deals_with_loss = true;
  status.choice.options.peers_only = true; /* a cluster without servers has a status, too */
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) status.json = true;
    if (letter == LETTER_WATCH && (!pwi_role_seconds(args.value, &status.watch_ns) || status.watch_ns == 0))
      return pwi_cli_bad_value(command, args.value, "a number of seconds above 0");
    if (!pwi_session_option(&status.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  return run_status(&status);
}

static const struct pwi_cli_option options[] = {
    {LETTER_WATCH, "watch", "SECONDS", "print the status again every SECONDS, until interrupted"},
    PWI_SESSION_OPTIONS,
    {PWI_CLI_LETTER_JSON, "json", NULL, "print the manager's JSON, one object per line"},
    {0},
};

const struct pwi_command pwi_command_status = {
    .name = "status",
    .summary = "show a cluster: servers, ring, vectors, jobs, rates",
    .text = "Prints what the manager knows: the servers and their shards with state, share\n"
            "of the ring, memory and rates; relays; the vectors; jobs and groups; hosts and\n"
            "racks of clients; arcs being moved.\n\n"
            "  pawl status --cluster node1:7295\n"
            "  PAWL_ADDRESS=node1:7295 pawl status --watch 1\n"
            "  pawl status --json | jq '.nodes[] | {node, state, bytes}'\n",
    .options = options,
    .run = run,
};
