/* Members of a collective for tests: threads of this process, each with a session of its own. */
#ifndef PAWL_TESTS_API_COLLECTIVE_SCENE_H
#define PAWL_TESTS_API_COLLECTIVE_SCENE_H

#include "scene.h"

#include <pthread.h>

#include "net/key.h"

#define MEMBERS_MAX 4

static char key[PWI_KEY_TEXT_MAX];
static struct pawl_session *session; /* embedded, with a manager and no servers */
static int group_number;             /* every test has a group of its own */

struct member {
  pthread_t thread;
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_collective *collective;
  char group[32];
  uint32_t index, size;
  bool is_tcp;
  pawl_status status;
  char text[512];
  pawl_status (*work)(struct member *member);
};

static inline pawl_status open_member(struct member *member, const char *address) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  options.tcp_only = member->is_tcp;
  pawl_status status = pawl_session_open(&options, &member->session);
  if (!status) status = pawl_peers_join(member->session, member->group, member->size, PATIENCE, &member->peers);
  if (!status) status = pawl_collective_open(member->peers, "main", PATIENCE, &member->collective);
  return status;
}

static inline void close_member(struct member *member) {
  pawl_collective_close(member->collective);
  pawl_peers_leave(member->peers);
  must(pawl_session_close(member->session, PATIENCE));
}

static inline void *run_member(void *context) {
  struct member *member = context;
  member->status = open_member(member, pawl_session_address(session));
  if (!member->status) member->status = member->work(member);
  snprintf(member->text, sizeof member->text, "%s", pawl_error_text());
  close_member(member);
  return NULL;
}

static inline void start(struct member *members, uint32_t size, bool is_tcp,
                         pawl_status (*work)(struct member *member)) {
  memset(members, 0, size * sizeof *members);
  group_number++;
  for (uint32_t i = 0; i < size; i++) {
    members[i].index = i;
    members[i].size = size;
    members[i].is_tcp = is_tcp;
    members[i].work = work;
    snprintf(members[i].group, sizeof members[i].group, "r/group%d", group_number);
    assert_int_equal(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
  }
}

static inline void finish(struct member *members, uint32_t size) {
  for (uint32_t i = 0; i < size; i++) pthread_join(members[i].thread, NULL);
}

#define CHECK(condition)                                                                                               \
  if (!(condition)) return note(member, #condition)

static inline pawl_status note(struct member *member, const char *text) {
  print_error("member %u: %s\n", member->index, text);
  return PAWL_DIVERGED;
}

/* Every member returned PAWL_OK. */
static inline void run_all_members(uint32_t size, bool is_tcp, pawl_status (*work)(struct member *member)) {
  struct member members[MEMBERS_MAX];
  start(members, size, is_tcp, work);
  finish(members, size);
  for (uint32_t i = 0; i < size; i++)
    if (members[i].status) fail_msg("%s: %s", pawl_status_name(members[i].status), members[i].text);
}

static inline int open_cluster(void **state) {
  struct pawl_session_options options;
  (void)state;
  must(pwi_key_new(key));
  setenv("PAWL_KEY", key, 1); /* so that other processes can join */
  unsetenv("PAWL_ADDRESS");
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &session));
  return 0;
}

static inline int close_cluster(void **state) {
  (void)state;
  must(pawl_session_close(session, PATIENCE));
  return 0;
}

#endif
