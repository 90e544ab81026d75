/* The scene of most tests here: a node that listens, an honest peer that plays ping-pong with it all the time, and raw
 * connections that do wrong. After each of them the scene can say whether the wrong was noticed and nobody else was.
 */
#ifndef PWI_TESTS_FAULTS_ATTACK_H
#define PWI_TESTS_FAULTS_ATTACK_H

#include "node.h"
#include "raw.h"

struct scene {
  struct node *host, *honest;
  struct pwi_keyring *keys;
  char key[PWI_KEY_TEXT_MAX];
  uint64_t live;    /* blocks of memory before the first attack */
  unsigned strange; /* links that came up at the host besides the honest one */
};

/* `edit`, if not NULL, may change the host's plan; with `is_secret` both use TLS with one key. */
void scene_begin(struct scene *scene, bool is_secret, void (*edit)(struct node_plan *plan));

/* Checks once more that the honest link was never disturbed and that all memory came back, then takes it all down. */
void scene_end(struct scene *scene);

/* A connection of an attacker's; with TLS and the right key if the scene is secret. */
void scene_attack(struct scene *scene, struct raw *raw);

/* The host has closed it, a log line contains `detail`, and the honest pair plays on. Closes our side too. */
void scene_check_refused(struct scene *scene, struct raw *raw, const char *detail);

#endif
