/* One membership and one view in memory for all nodes of a thread that know the same ones.
 *
 * Every node of a cluster has a membership, and most have the same. In a simulation of ten thousand nodes
 * these would be ten thousand copies of ten thousand senders. While sharing is on, nodes with equal
 * memberships hold references to one of them. A delta that one node has applied is not applied again for the
 * next one. What a node sees is the same with and without sharing.
 *
 * Sharing is off unless it is turned on, which only simulations do. Threads: everything here belongs to one
 * thread, also what is shared.
 */
#ifndef PWI_PROTOCOL_MEMBERSHIP_SHARE_H
#define PWI_PROTOCOL_MEMBERSHIP_SHARE_H

#include "protocol/membership.h"

struct pwi_view;

/* Turn sharing on and off in this thread. Calls may be nested. Memberships that are shared stay so. */
void pwi_membership_share_begin(void);
void pwi_membership_share_end(void);

/* For a membership from pwi_membership_receive: returns an equal one that is shared, or itself. Takes it
 * over. */
struct pwi_membership *pwi_membership_unify(struct pwi_membership *membership);

/* As pwi_membership_apply_delta, for a membership that may be shared. If `*now_out` is another one, it has
 * taken the place of `membership`, which the caller destroys. */
PAWL_MUST_USE pawl_status pwi_membership_follow(struct pwi_membership *membership, const void *bytes, size_t size,
                                                void (*forgot)(void *context, struct pwi_sender sender), void *context,
                                                struct pwi_membership **now_out);

/* For pwi_membership_destroy: gives up a reference. False if the membership is not shared. */
bool pwi_membership_let_go(struct pwi_membership *membership);

/* As pwi_view_decode. Views are never changed, so equal bytes need be decoded once. */
PAWL_MUST_USE pawl_status pwi_view_decode_shared(const void *bytes, size_t size, struct pwi_view **view_out);

/* The number of different memberships that are shared in this thread. */
size_t pwi_membership_shared_count(void);

#endif
