/* A storm, inside: shared by tests/storm/harness/field.c and tests/storm/harness/end.c. */
#ifndef TESTS_STORM_HARNESS_INSIDE_H
#define TESTS_STORM_HARNESS_INSIDE_H

#include "cells.h"
#include "field.h"
#include "host/children.h"
#include "net/key.h"
#include "net/net.h"

#define PWI_STORM_ROLES 3

struct pwi_storm_member {
  enum pwi_storm_role role;
  uint32_t number;         /* among members of its role */
  struct pwi_child *child; /* NULL: it has ended */
  bool is_ready;
  uint32_t cell;                     /* 0: at home, or there are no cells */
  char address[PWI_NET_ADDRESS_MAX]; /* of a manager; "" before it is ready for the first time */
  char name[24];
  char journal[PATH_MAX + 32];
};

struct pwi_storm {
  struct pwi_storm_config config;
  char folder[PATH_MAX];
  bool is_folder_ours;
  char command[PATH_MAX];
  char worker_command[PATH_MAX + sizeof "-storm"]; /* pawl-storm */
  char address[4 * PWI_NET_ADDRESS_MAX];           /* of all managers, with commas; "" before one is ready */
  char key[PWI_KEY_TEXT_MAX];                      /* "": none */
  struct pwi_storm_cells *cells;
  struct pawl_session *session;
  size_t count;
  struct pwi_storm_member members[PWI_STORM_MEMBERS_MAX];
  uint32_t numbers[PWI_STORM_ROLES]; /* members of each role so far */
  char problem[640];
};

/* Sets the problem; returns false. */
bool pwi_storm_fail(struct pwi_storm *storm, const char *format, ...) PAWL_PRINTF(2, 3);

/* The same for a problem of a member, with its last output. */
bool pwi_storm_complain(struct pwi_storm *storm, struct pwi_storm_member *member, const char *what);

#endif
