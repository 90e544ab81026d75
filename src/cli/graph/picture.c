#include "cli/graph/picture.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define WIDTH 760
#define HEIGHT 850
#define MIDDLE_X 380.0
#define MIDDLE_Y 440.0
#define RADIUS 340.0      /* of the circle of all nodes */
#define RACK_RADIUS 245.0 /* of the circle on which the middles of the racks are */
#define TURN 0.4          /* angle from the middle of the picture to the first node of a rack */
#define BEND 0.13         /* height of the arc of a link between racks, as a part of its length */
#define HEAD 8.0          /* length of an arrow's head */

struct spot {
  double x, y;
};

struct picture {
  const struct pwi_graph_report *report;
  FILE *file;
  double node_radius;
  struct spot spots[PWI_GRAPH_PICTURE_NODES];
};

/* Edges are drawn in three layers. */
enum layer { TO_NEXT, TO_OTHERS, BETWEEN_RACKS, LAYERS };

static const char *const colours[LAYERS] = {"#8c929c", "#2f6db5", "#c4551a"};

/* --- places ------------------------------------------------------------------------------------------------------------- */

/* The direction from the middle of a circle to place `number` of `count`, from the top and to the right. */
static double direction(uint32_t number, uint32_t count) { return 2 * M_PI * number / count - M_PI / 2; }

static struct spot on_circle(struct spot middle, double radius, double angle) {
  return (struct spot){middle.x + radius * cos(angle), middle.y + radius * sin(angle)};
}

static void place_all(struct picture *picture) {
  uint32_t nodes = picture->report->graph->nodes;
  for (uint32_t i = 0; i < nodes; i++)
    picture->spots[i] = on_circle((struct spot){MIDDLE_X, MIDDLE_Y}, RADIUS, direction(i, nodes));
}

/* A rack's circle leaves a gap to the circles of its neighbours. Each is turned by another angle, so that few nodes
 * stand in line. */
static void place_racks(struct picture *picture) {
  const struct pwi_graph_report *report = picture->report;
  uint32_t nodes = report->graph->nodes, sizes[PWI_GRAPH_PICTURE_NODES] = {0}, seen[PWI_GRAPH_PICTURE_NODES] = {0};
  uint32_t order[PWI_GRAPH_PICTURE_NODES], racks = 0;
  for (uint32_t i = 0; i < nodes; i++) sizes[report->racks[i]]++;
  for (uint32_t a = 0; a < nodes; a++)
    if (sizes[a]) order[a] = racks++;
  double radius = RACK_RADIUS * sin(M_PI / report->rack_count) * 0.72;
  if (radius > 95) radius = 95;
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t rack = report->racks[i];
    double angle = direction(order[rack], racks), turn = angle + TURN + 2 * M_PI * seen[rack]++ / sizes[rack];
    struct spot middle = on_circle((struct spot){MIDDLE_X, MIDDLE_Y}, RACK_RADIUS, angle);
    picture->spots[i] = on_circle(middle, sizes[rack] > 1 ? radius : 0, turn);
  }
}

/* At most a third of the distance between two neighbours, so that arrows fit between them. */
static double choose_radius(const struct picture *picture) {
  double least = 1e9;
  for (uint32_t i = 0; i < picture->report->graph->nodes; i++)
    for (uint32_t k = 0; k < i; k++)
      least = fmin(least, hypot(picture->spots[i].x - picture->spots[k].x, picture->spots[i].y - picture->spots[k].y));
  return fmin(16, least / 3);
}

/* --- edges -------------------------------------------------------------------------------------------------------------- */

static enum layer layer_of(const struct pwi_graph_report *report, uint32_t from, uint32_t to) {
  if (report->racks) return report->racks[from] == report->racks[to] ? TO_NEXT : BETWEEN_RACKS;
  return to == (from + 1) % report->graph->nodes ? TO_NEXT : TO_OTHERS;
}

static void draw_head(const struct picture *picture, struct spot tip, struct spot back) {
  double x = 0.4 * (tip.x - back.x), y = 0.4 * (tip.y - back.y);
  fprintf(picture->file, "<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n", tip.x, tip.y, back.x - y, back.y + x,
          back.x + y, back.y - x);
}

/* A point at `distance` from `from`, on the way to `to`. */
static struct spot towards(struct spot from, struct spot to, double distance) {
  double length = hypot(to.x - from.x, to.y - from.y);
  return (struct spot){from.x + (to.x - from.x) / length * distance, from.y + (to.y - from.y) / length * distance};
}

/* A line, or an arc for a link between racks: `knee` is its control point. A line ends where the head begins, so
 * that the tip stays sharp. */
static void draw_edge(const struct picture *picture, uint32_t from, uint32_t to, bool is_both, bool is_line) {
  struct spot a = picture->spots[from], b = picture->spots[to];
  double bend = layer_of(picture->report, from, to) == BETWEEN_RACKS ? 2 * BEND : 0;
  struct spot knee = {(a.x + b.x) / 2 + bend * (b.y - a.y), (a.y + b.y) / 2 - bend * (b.x - a.x)};
  double rim = picture->node_radius + 1, head = fmin(HEAD, picture->node_radius);
  if (is_line) {
    struct spot begin = towards(a, knee, is_both ? rim + head : rim), end = towards(b, knee, rim + head);
    fprintf(picture->file, "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>\n", begin.x, begin.y, knee.x, knee.y, end.x,
            end.y);
    return;
  }
  draw_head(picture, towards(b, knee, rim), towards(b, knee, rim + head));
  if (is_both) draw_head(picture, towards(a, knee, rim), towards(a, knee, rim + head));
}

/* Of two edges between the same nodes the one from the lower node is drawn, for both. */
static void draw_layer(const struct picture *picture, enum layer layer, bool is_line) {
  const struct pwi_graph *graph = picture->report->graph;
  for (uint32_t from = 0; from < graph->nodes; from++) {
    struct pwi_graph_row row = pwi_graph_out(graph, from);
    for (size_t k = 0; k < row.count; k++) {
      uint32_t to = row.nodes[k];
      bool is_both = pwi_graph_has(graph, to, from);
      if (is_both && to < from) continue;
      if (layer_of(picture->report, from, to) == layer) draw_edge(picture, from, to, is_both, is_line);
    }
  }
}

static void draw_edges(const struct picture *picture) {
  double width = picture->report->graph->edges > 600 ? 0.5 : 1.2;
  for (int i = 0; i < LAYERS; i++) {
    fprintf(picture->file, "<g stroke=\"%s\" stroke-width=\"%.1f\" fill=\"none\">\n", colours[i], width);
    draw_layer(picture, (enum layer)i, true);
    fprintf(picture->file, "</g>\n<g fill=\"%s\">\n", colours[i]);
    draw_layer(picture, (enum layer)i, false);
    fprintf(picture->file, "</g>\n");
  }
}

/* --- nodes and words ---------------------------------------------------------------------------------------------------- */

static void draw_nodes(const struct picture *picture) {
  double radius = picture->node_radius;
  fprintf(picture->file, "<g fill=\"#fdf6e3\" stroke=\"#333\">\n");
  for (uint32_t i = 0; i < picture->report->graph->nodes; i++)
    fprintf(picture->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", picture->spots[i].x, picture->spots[i].y,
            radius);
  fprintf(picture->file, "</g>\n<g text-anchor=\"middle\" font-size=\"%.1f\">\n", fmin(13, radius));
  for (uint32_t i = 0; radius >= 5 && i < picture->report->graph->nodes; i++)
    fprintf(picture->file, "<text x=\"%.1f\" y=\"%.1f\">%" PRIu32 "</text>\n", picture->spots[i].x,
            picture->spots[i].y + 0.35 * fmin(13, radius), i);
  fprintf(picture->file, "</g>\n");
}

static void write_escaped(FILE *file, const char *text) {
  for (; *text; text++) {
    if (*text == '<' || *text == '>' || *text == '&')
      fprintf(file, "&#%d;", *text);
    else
      fputc((unsigned char)*text < ' ' ? '?' : *text, file);
  }
}

static void write_words(const struct picture *picture) {
  const struct pwi_graph_report *report = picture->report;
  FILE *file = picture->file;
  char gap[48], diameter[48];
  pwi_graph_report_gap(report, gap, sizeof gap);
  pwi_graph_report_diameter(report, diameter, sizeof diameter);
  fprintf(file, "<text x=\"24\" y=\"34\" font-size=\"20\" font-weight=\"bold\">");
  write_escaped(file, report->name);
  fprintf(file, ", %" PRIu32 " node%s</text>\n", report->graph->nodes, report->graph->nodes == 1 ? "" : "s");
  fprintf(file, "<text x=\"24\" y=\"58\" font-size=\"14\">spectral gap %s, %" PRIu32 " edges, diameter %s</text>\n",
          gap, report->graph->edges, diameter);
  fprintf(
      file,
      "<text x=\"24\" y=\"%d\" font-size=\"12\"><tspan fill=\"%s\">%s</tspan>, <tspan fill=\"%s\">%s</tspan></text>\n",
      HEIGHT - 16, colours[TO_NEXT], report->racks ? "inside of a rack" : "to the next node",
      colours[report->racks ? BETWEEN_RACKS : TO_OTHERS], report->racks ? "between racks" : "to other nodes");
}

int pwi_graph_picture(const struct pwi_graph_report *report, const char *path) {
  static struct picture picture;
  picture = (struct picture){.report = report, .file = fopen(path, "we")};
  if (!picture.file) return errno;
  if (report->racks && report->rack_count > 1)
    place_racks(&picture);
  else
    place_all(&picture);
  picture.node_radius = choose_radius(&picture);
  fprintf(picture.file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
          "font-family=\"sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT);
  write_words(&picture);
  draw_edges(&picture);
  draw_nodes(&picture);
  fprintf(picture.file, "</svg>\n");
  int problem = ferror(picture.file) ? EIO : 0;
  if (fclose(picture.file) && !problem) problem = errno ? errno : EIO;
  return problem;
}
