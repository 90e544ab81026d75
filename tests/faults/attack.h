/* The scene of most tests here: a listening node, an honest peer that exchanges messages with it all the
 * time, and raw connections that misbehave. After each attack the scene can check that the node noticed it
 * and that the honest peer was not disturbed. */
#ifndef PWI_TESTS_FAULTS_ATTACK_H
#define PWI_TESTS_FAULTS_ATTACK_H

#include "node.h"
#include "raw.h"

struct scene {
  struct node *host, *honest;
  struct pwi_keyring *keys;
  char key[PWI_KEY_TEXT_MAX];
  uint64_t live;    /* live blocks of memory before the first attack */
  unsigned strange; /* links that came up at the host besides the honest one */
};

/* Begins a scene. `edit`, if not NULL, may change the plan of the listening node. With `is_secret` both use
 * TLS with one key. */
void scene_begin(struct scene *scene, bool is_secret, void (*edit)(struct node_plan *plan));

/* Checks that the honest link was never disturbed and that all memory was freed, and ends the scene. */
void scene_end(struct scene *scene);

/* Opens a connection of an attacker, with TLS and the right key if the scene is secret. */
void scene_attack(struct scene *scene, struct raw *raw);

/* Checks that the node has closed the connection, that a log line contains `detail`, and that the honest pair
 * continues. Closes this side too. */
void scene_check_refused(struct scene *scene, struct raw *raw, const char *detail);

#endif
