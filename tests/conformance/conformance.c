/* Checks every promise of net/net.h in one world:
 *
 *   conformance tcp|tls|unix|ucx|sim|sim-plain [pattern]
 *
 * With a pattern (as `*close*`) only the tests whose names match it are run. Exits with 77 if that world is not built
 * here.
 */
#include <stdio.h>
#include <string.h>

#include <pawl/log.h>

#include "scene.h"
#include "suite.h"

static void print_line(void *context, const struct pawl_log_line *line) {
  (void)context;
  fprintf(stderr, "%s %s: %s\n", pawl_log_level_name(line->level), line->node ? line->node : "-", line->text);
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: conformance tcp|tls|unix|ucx|sim|sim-plain [pattern]\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  bool known;
  scene_kind = world_find(argv[1], &known);
  if (!known) {
    fprintf(stderr, "conformance: there is no world \"%s\"\n", argv[1]);
    return 2;
  }
  if (!scene_kind) {
    printf("skipped: the world \"%s\" is not built here\n", argv[1]);
    return 77;
  }
  if (argc == 3) {
    cmocka_set_test_filter(argv[2]);
    pawl_log_set(print_line, NULL, PAWL_LOG_DEBUG);
  }
  int failed = 0;
  failed += suite_links();
  failed += suite_messages();
  failed += suite_receiving();
  failed += suite_one_sided();
  failed += suite_puts();
  failed += suite_regions();
  failed += suite_windows();
  failed += suite_broken();
  failed += suite_timers();
  failed += suite_limits();
  failed += suite_closing();
  failed += suite_holds();
  failed += suite_memory();
  return failed ? 1 : 0;
}
