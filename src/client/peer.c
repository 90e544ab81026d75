/* Peers: the servers and senders that parts are sent to, each with its queue and its list of parts under way.
 *
 * This file keeps the lists and their sums. client/part.c decides which list a part belongs to, and
 * client/send.c sends.
 */
#include "base/memory.h"
#include "client/inside.h"

struct client_peer *pwi_client_peer(struct pwi_client *client, uint64_t node) {
  if (client->last_peer && client->last_peer->node == node) return client->last_peer;
  struct client_peer *peer = pwi_idmap_get(&client->peers_by_node, node);
  if (!peer) {
    peer = pwi_alloc_zero(1, sizeof *peer);
    if (!peer) return NULL;
    peer->node = node;
    peer->retry_ns = PWI_PEER_RETRY_MIN;
    pwi_adapt_link_init(&peer->carrying);
    peer->patience_ns = PWI_PEER_PATIENCE_MIN;
    if (pwi_idmap_put(&client->peers_by_node, node, peer)) {
      pwi_free(peer);
      return NULL;
    }
    peer->next = client->peers;
    client->peers = peer;
  }
  client->last_peer = peer;
  return peer;
}

/* --- sums ----------------------------------------------------------------------------------------------- */

size_t pwi_part_bytes_out(const struct client_part *part) {
  return part->in ? part->rows * pwi_flow_bytes_beside(part->flow, part->kind, part->operand_rows) : 0;
}

size_t pwi_part_operand_bytes(const struct client_part *part) {
  return part->in && part->rows > 0 ? part->operand_rows * part->flow->pushed_bytes : 0;
}

/* Bytes that the server passes on to its chain: the values of a push, or the rows that a LINEAR changes. */
size_t pwi_part_load(const struct client_part *part) {
  if (part->kind != PWI_REQUEST_LINEAR) return pwi_part_bytes_out(part) + pwi_part_operand_bytes(part);
  return part->rows < PWI_LINEAR_SLICE / part->flow->row_bytes ? part->rows * part->flow->row_bytes : PWI_LINEAR_SLICE;
}

size_t pwi_part_bytes_back(const struct client_part *part) {
  return part->out ? part->rows * part->flow->row_bytes : 0;
}

/* --- lists ---------------------------------------------------------------------------------------------- */

/* Puts a peer on the list of those that client/send.c looks at next. */
static void mark_due(struct pwi_client *client, struct client_peer *peer) {
  if (peer->is_due) return;
  peer->is_due = true;
  peer->due_next = client->due_peers;
  client->due_peers = peer;
}

struct client_peer *pwi_client_take_due(struct pwi_client *client) {
  struct client_peer *peer = client->due_peers;
  if (!peer) return NULL;
  client->due_peers = peer->due_next;
  peer->is_due = false;
  return peer;
}

/* A numbered part precedes queued parts with higher numbers, so that a resend precedes later pushes to the
 * same range. It does not pass a part without a number. A new part mostly goes to the end. */
void pwi_peer_enqueue(struct pwi_client *client, struct client_peer *peer, struct client_part *part) {
  struct client_part *behind = peer->queue_last;
  while (behind && part->number != 0 && behind->number > part->number) behind = behind->peer_before;
  part->peer_before = behind;
  part->peer_next = behind ? behind->peer_next : peer->queue_first;
  if (behind)
    behind->peer_next = part;
  else
    peer->queue_first = part;
  if (part->peer_next)
    part->peer_next->peer_before = part;
  else
    peer->queue_last = part;
  mark_due(client, peer);
}

void pwi_peer_remove(struct client_peer *peer, struct client_part *part) {
  bool was_sent = part->state == PART_SENT;
  struct client_part **first = was_sent ? &peer->sent_first : &peer->queue_first;
  struct client_part **last = was_sent ? &peer->sent_last : &peer->queue_last;
  if (part->peer_before)
    part->peer_before->peer_next = part->peer_next;
  else
    *first = part->peer_next;
  if (part->peer_next)
    part->peer_next->peer_before = part->peer_before;
  else
    *last = part->peer_before;
  part->peer_next = part->peer_before = NULL;
  if (!was_sent) return;
  peer->under_way--;
  peer->bytes_out -= pwi_part_load(part);
  peer->bytes_back -= pwi_part_bytes_back(part);
}

void pwi_peer_sent(struct client_peer *peer, struct client_part *part) {
  pwi_peer_remove(peer, part);
  part->state = PART_SENT;
  part->flow->held_back--;
  part->peer_before = peer->sent_last;
  if (part->peer_before)
    part->peer_before->peer_next = part;
  else
    peer->sent_first = part;
  peer->sent_last = part;
  peer->under_way++;
  peer->bytes_out += pwi_part_load(part);
  peer->bytes_back += pwi_part_bytes_back(part);
}
