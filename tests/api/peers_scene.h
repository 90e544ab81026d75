/* What the tests of peers share: an embedded cluster with a manager and no servers, sessions for peers only, and
 * processes that run this program once more. */
#ifndef PAWL_TESTS_API_PEERS_SCENE_H
#define PAWL_TESTS_API_PEERS_SCENE_H

#include "scene.h"

#include "host/children.h"
#include "host/clock.h"
#include "net/key.h"

static char key_text[PWI_KEY_TEXT_MAX];
static struct pawl_session *cluster;

static inline struct pawl_session_options peer_options(const char *address) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  return options;
}

/* With a rack, or NULL. */
static inline void open_peer_cluster(const char *rack) {
  struct pawl_session_options options = peer_options(NULL);
  must(pwi_key_new(key_text));
  setenv("PAWL_KEY", key_text, 1); /* so that other processes can join */
  unsetenv("PAWL_ADDRESS");
  options.rack = rack;
  must(pawl_session_open(&options, &cluster));
}

static inline int open_cluster(void **state) {
  (void)state;
  open_peer_cluster(NULL);
  return 0;
}

static inline int close_cluster(void **state) {
  (void)state;
  must(pawl_session_close(cluster, PATIENCE));
  return 0;
}

/* words[0] is the name of the program; the words after it are its arguments. */
static inline struct pwi_child *start_self(const char *const *words) {
  struct pwi_child_config config = {.path = "/proc/self/exe",
                                    .argv = (char *const *)(uintptr_t)words,
                                    .output_fd = PWI_CHILD_OUTPUT_INHERIT,
                                    .own_group = true};
  struct pwi_child *child;
  must(pwi_child_start(&config, &child));
  return child;
}

#endif
