#include "graph/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define SHOWN 20 /* characters of a wrong word that a message repeats */

struct graph_parser {
  const char *name;
  const char *at, *end; /* the rest of the line */
  size_t line;          /* number of the line, from 1 */
  uint32_t nodes;       /* 0: the first line was not read yet */
  struct pwi_graph_edge *edges;
  size_t count, room;
  size_t *lines; /* lines[k] is the line of edges[k] */
  size_t line_room;
  struct pwi_graph_why *why;
};

/* --- words and numbers ---------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void skip_blanks(struct graph_parser *parser) {
  while (parser->at < parser->end && is_blank(*parser->at)) parser->at++;
}

/* The next word, for messages: printable, and cut if it is long. */
static const char *shown(const struct graph_parser *parser, char word[SHOWN + 4]) {
  size_t length = 0;
  for (const char *at = parser->at; at < parser->end && !is_blank(*at) && length < SHOWN; at++)
    word[length++] = *at > ' ' && *at <= '~' ? *at : '?';
  word[length] = 0;
  if (length == SHOWN) memcpy(word + length, "...", 4);
  return word;
}

/* A whole number below 2^32 that ends before a blank, a colon or the end of the line. */
static bool read_number(struct graph_parser *parser, uint32_t *number_out) {
  uint64_t number = 0;
  const char *at = parser->at;
  for (; at < parser->end && *at >= '0' && *at <= '9'; at++) {
    number = number * 10 + (uint64_t)(*at - '0');
    if (number > UINT32_MAX) return false;
  }
  if (at == parser->at || (at < parser->end && !is_blank(*at) && *at != ':')) return false;
  parser->at = at;
  *number_out = (uint32_t)number;
  return true;
}

/* --- lines ---------------------------------------------------------------------------------------------- */

#define WRONG(parser, status, format, ...)                                                                             \
  pwi_graph_refuse((parser)->why, status, "%s:%zu: " format, (parser)->name, (parser)->line, __VA_ARGS__)

static pawl_status read_nodes(struct graph_parser *parser) {
  char word[SHOWN + 4];
  uint32_t nodes;
  if (parser->end - parser->at < 6 || memcmp(parser->at, "nodes", 5) != 0 || !is_blank(parser->at[5]))
    return WRONG(parser, PAWL_CORRUPT, "expected 'nodes N' in the first line, found '%s'", shown(parser, word));
  parser->at += 5;
  skip_blanks(parser);
  if (!read_number(parser, &nodes) || nodes == 0)
    return WRONG(parser, PAWL_CORRUPT, "expected a number of nodes, 1 or more, found '%s'", shown(parser, word));
  if (nodes > PWI_GRAPH_NODES_MAX)
    return WRONG(parser, PAWL_TOO_LARGE, "%" PRIu32 " nodes are more than %" PRIu32, nodes, PWI_GRAPH_NODES_MAX);
  skip_blanks(parser);
  if (parser->at < parser->end)
    return WRONG(parser, PAWL_CORRUPT, "expected nothing after the number of nodes, found '%s'", shown(parser, word));
  parser->nodes = nodes;
  return PAWL_OK;
}

static pawl_status read_node(struct graph_parser *parser, uint32_t *node_out) {
  char word[SHOWN + 4];
  uint32_t node;
  if (!read_number(parser, &node))
    return WRONG(parser, PAWL_CORRUPT, "expected the number of a node, found '%s'", shown(parser, word));
  if (node >= parser->nodes)
    return WRONG(parser, PAWL_CORRUPT, "node %" PRIu32 " does not exist: the last node is %" PRIu32, node,
                 parser->nodes - 1);
  *node_out = node;
  return PAWL_OK;
}

static pawl_status add_edge(struct graph_parser *parser, uint32_t from, uint32_t to) {
  if (from == to)
    return WRONG(parser, PAWL_CORRUPT, "node %" PRIu32 " sends to itself; remove that: it keeps its value anyway",
                 from);
  if (parser->count == PWI_GRAPH_EDGES_MAX)
    return WRONG(parser, PAWL_TOO_LARGE, "more than %" PRIu32 " edges", PWI_GRAPH_EDGES_MAX);
  if (!PWI_GROW(parser->edges, parser->room, parser->count + 1) ||
      !PWI_GROW(parser->lines, parser->line_room, parser->count + 1))
    return WRONG(parser, PAWL_NO_MEMORY, "out of memory after %zu edges", parser->count);
  parser->lines[parser->count] = parser->line;
  parser->edges[parser->count++] = (struct pwi_graph_edge){from, to};
  return PAWL_OK;
}

static pawl_status read_row(struct graph_parser *parser) {
  char word[SHOWN + 4];
  uint32_t from = 0, to = 0;
  pawl_status status = read_node(parser, &from);
  if (status) return status;
  skip_blanks(parser);
  if (parser->at == parser->end || *parser->at != ':')
    return WRONG(parser, PAWL_CORRUPT, "expected a colon after node %" PRIu32 ", found '%s'", from,
                 shown(parser, word));
  parser->at++;
  for (skip_blanks(parser); !status && parser->at < parser->end; skip_blanks(parser)) {
    status = read_node(parser, &to);
    if (!status && parser->at < parser->end && *parser->at == ':')
      return WRONG(parser, PAWL_CORRUPT,
                   "expected one node before a colon, found a second, %" PRIu32 "; begin a new line", to);
    if (!status) status = add_edge(parser, from, to);
  }
  return status;
}

static pawl_status read_lines(struct graph_parser *parser, const char *text, size_t size) {
  const char *end = text + size;
  for (const char *next = text; next < end;) {
    const char *stop = memchr(next, '\n', (size_t)(end - next));
    if (!stop) stop = end;
    const char *comment = memchr(next, '#', (size_t)(stop - next));
    parser->at = next;
    parser->end = comment ? comment : stop;
    parser->line++;
    next = stop < end ? stop + 1 : end;
    skip_blanks(parser);
    if (parser->at == parser->end) continue;
    pawl_status status = parser->nodes ? read_row(parser) : read_nodes(parser);
    if (status) return status;
  }
  if (parser->nodes) return PAWL_OK;
  return pwi_graph_refuse(parser->why, PAWL_CORRUPT, "%s: the file is empty; its first line should be 'nodes N'",
                          parser->name);
}

/* --- repeated edges ------------------------------------------------------------------------------------- */

struct edge_line {
  struct pwi_graph_edge edge;
  size_t line;
};

static int by_edge(const void *a, const void *b) {
  const struct edge_line *one = a, *other = b;
  if (one->edge.from != other->edge.from) return one->edge.from < other->edge.from ? -1 : 1;
  if (one->edge.to != other->edge.to) return one->edge.to < other->edge.to ? -1 : 1;
  return one->line < other->line ? -1 : one->line > other->line;
}

/* Names the lines of an edge that occurs twice. There is one: pwi_graph_create found it. */
static pawl_status refuse_repeated(struct graph_parser *parser) {
  struct edge_line *sorted = pwi_resize_array(NULL, parser->count, sizeof *sorted);
  if (!sorted) return WRONG(parser, PAWL_NO_MEMORY, "out of memory after %zu edges", parser->count);
  for (size_t k = 0; k < parser->count; k++) sorted[k] = (struct edge_line){parser->edges[k], parser->lines[k]};
  qsort(sorted, parser->count, sizeof *sorted, by_edge);
  size_t k = 1;
  while (memcmp(&sorted[k].edge, &sorted[k - 1].edge, sizeof sorted->edge) != 0) k++;
  parser->line = sorted[k].line;
  WRONG(parser, PAWL_CORRUPT, "node %" PRIu32 " sends to node %" PRIu32 " in line %zu already; remove one of the two",
        sorted[k].edge.from, sorted[k].edge.to, sorted[k - 1].line);
  pwi_free(sorted);
  return PAWL_CORRUPT;
}

pawl_status pwi_graph_parse(const char *name, const char *text, size_t size, struct pwi_graph_why *why,
                            struct pwi_graph **graph_out) {
  struct graph_parser parser = {.name = name, .why = why};
  pawl_status status = read_lines(&parser, text, size);
  if (!status) status = pwi_graph_create(parser.nodes, parser.edges, parser.count, why, graph_out);
  if (status == PAWL_EXISTS) status = refuse_repeated(&parser);
  pwi_free(parser.edges);
  pwi_free(parser.lines);
  return status;
}

/* --- writing -------------------------------------------------------------------------------------------- */

#define NUMBER_MAX 11 /* a blank and ten digits */

char *pwi_graph_format(const struct pwi_graph *graph, size_t *size_out) {
  size_t room = 2 * NUMBER_MAX + (size_t)graph->nodes * (NUMBER_MAX + 2) + (size_t)graph->edges * NUMBER_MAX;
  char *text = pwi_alloc(room);
  if (!text) return NULL;
  size_t size = (size_t)snprintf(text, room, "nodes %" PRIu32 "\n", graph->nodes);
  for (uint32_t i = 0; i < graph->nodes; i++) {
    struct pwi_graph_row row = pwi_graph_out(graph, i);
    size += (size_t)snprintf(text + size, room - size, "%" PRIu32 ":", i);
    for (size_t k = 0; k < row.count; k++)
      size += (size_t)snprintf(text + size, room - size, " %" PRIu32, row.nodes[k]);
    text[size++] = '\n';
  }
  text[size] = 0;
  *size_out = size;
  return text;
}
