/* A session at an embedded cluster, for all tests of a file: define SERVERS and SHARDS before. */
#ifndef PAWL_TESTS_API_SESSION_SCENE_H
#define PAWL_TESTS_API_SESSION_SCENE_H

#include "scene.h"

static struct pawl_session *session;

static int open_cluster(void **state) {
  (void)state;
  session = open_embedded(SERVERS, SHARDS);
  return 0;
}

static int close_cluster(void **state) {
  (void)state;
  must(pawl_session_close(session, PATIENCE));
  return 0;
}

#endif
