/* An honest node: a net in its own thread, with an actor that answers messages and counts them.
 *
 * A listening node returns every message. A connecting node sends messages to and fro without pause: while
 * its count rises and none of its links goes down, it is not disturbed.
 */
#ifndef PWI_TESTS_FAULTS_NODE_H
#define PWI_TESTS_FAULTS_NODE_H

#include "kit.h"

struct node;

struct node_plan {
  struct pwi_tcp_config config; /* pwi_tcp_config_init first */
  const char *listen;           /* or NULL */
  const char *connect;          /* or NULL */
  bool insists;                 /* connects again until a link is up */
  size_t share;                 /* bytes of a region that each link is given; its token is the first
                                   message. 0: none */
  size_t gather;                /* messages of up to this size are received whole, and those larger than a
                                   ball are answered with their last byte. 0: messages larger than a ball
                                   are dropped */
};

void node_plan_init(struct node_plan *plan, const char *name);

/* Begins; ends the program if the node cannot listen. */
struct node *node_open(const struct node_plan *plan);
void node_close(struct node *node); /* NULL is fine */

const char *node_address(const struct node *node);

/* These may be called at any time. */
unsigned node_ups(const struct node *node);
unsigned node_downs(const struct node *node);
pawl_status node_last_why(const struct node *node); /* of the last link_down */
unsigned node_last_can(const struct node *node);    /* of the last link_up: enum pwi_link_can */
uint64_t node_pongs(const struct node *node);
uint64_t node_refused(const struct node *node); /* refused connections, as counted by the net */
struct pwi_net_counts node_counts(struct node *node);

/* Waits, with a limit, until the node has seen this many. */
bool node_wait_ups(struct node *node, unsigned count);
bool node_wait_downs(struct node *node, unsigned count);
bool node_wait_pongs(struct node *node, uint64_t more); /* this many more than now */
bool node_wait_refused(struct node *node, uint64_t count);

#endif
