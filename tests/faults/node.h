/* An honest node: a net in a thread of its own, with an actor that answers what it is sent and keeps count.
 *
 * One that listens sends every message back. One that connects plays ping-pong without pause: as long as its count
 * rises and no link of its went down, whatever else is going on has not disturbed it.
 */
#ifndef PWI_TESTS_FAULTS_NODE_H
#define PWI_TESTS_FAULTS_NODE_H

#include "kit.h"

struct node;

struct node_plan {
  struct pwi_tcp_config config; /* pwi_tcp_config_init first */
  const char *listen;           /* or NULL */
  const char *connect;          /* or NULL */
  bool insists;                 /* connects again until a link has come up */
  size_t share;                 /* each link is given a region of so many bytes: its token is the first message */
  size_t gather;                /* messages of up to so many bytes are received whole; those beyond a ball are answered
                                   with their last byte. 0: what fits a ball, and the rest is dropped */
};

void node_plan_init(struct node_plan *plan, const char *name);

/* Begin; the program ends if it cannot listen. */
struct node *node_open(const struct node_plan *plan);
void node_close(struct node *node); /* NULL is fine */

const char *node_address(const struct node *node);

/* May be asked at any time. */
unsigned node_ups(const struct node *node);
unsigned node_downs(const struct node *node);
pawl_status node_last_why(const struct node *node); /* of the last link_down */
unsigned node_last_can(const struct node *node);    /* of the last link_up: enum pwi_link_can */
uint64_t node_pongs(const struct node *node);
uint64_t node_refused(const struct node *node); /* connections, as the net counts them */
struct pwi_net_counts node_counts(struct node *node);

/* Wait, with a bound: true once the node has seen so many. */
bool node_wait_ups(struct node *node, unsigned count);
bool node_wait_downs(struct node *node, unsigned count);
bool node_wait_pongs(struct node *node, uint64_t more); /* than now */
bool node_wait_refused(struct node *node, uint64_t count);

#endif
