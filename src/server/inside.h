/* Inside server/server.h: the shard's state, shared by its files.
 *
 *   server/server.c        membership, links, reports
 *   server/view.c   news take effect
 *   server/chain_traffic.c  what members of chains tell one another
 *   server/fill.c   filling a new member, and handing an arc over
 *   server/save.c   saving arcs for a checkpoint; with server/sheets.c, see server/saving.h
 */
#ifndef PWI_SERVER_INSIDE_H
#define PWI_SERVER_INSIDE_H

#include "base/cursor.h"
#include "base/idmap.h"
#include "ring/view.h"
#include "server/quota.h"
#include "server/chain.h"
#include "server/handler.h"
#include "server/inbox.h"
#include "protocol/messenger.h"
#include "protocol/manager_list.h"
#include "server/log_entry.h"
#include "protocol/prober.h"
#include "server/reading.h"
#include "server/server.h"

enum server_peer_kind {
  PEER_MANAGER,
  PEER_CLIENT,   /* asks */
  PEER_PREVIOUS, /* a server that stands before us in chains, and connected to us */
  PEER_NEXT,     /* a server that stands behind us in chains */
};

struct server_peer {
  struct server_peer *next, *before;
  enum server_peer_kind kind;
  struct pwi_link link;
  bool is_up;
  bool
      has_spoken; /* PEER_PREVIOUS: it has said something about a chain. One that only tries us (protocol/prober.h) never does */
  struct pwi_peering peering;
  char *identity, *address;          /* of a link that is up, for those who look at its rights again */
  struct pwi_quota_account *account; /* PEER_CLIENT: of its quotas; NULL: none */
  int64_t began_at;                  /* PEER_NEXT: when it was connected to */
  uint64_t node;                     /* PEER_PREVIOUS, PEER_NEXT */
  struct pwi_handler_link *handler;  /* PEER_CLIENT */
  struct pwi_control control;        /* PEER_MANAGER */
  struct pwi_inbox inbox;            /* PEER_PREVIOUS, PEER_NEXT */
};

/* A chain, and how its neighbours are reached (server/chain_traffic.c). */
struct chain_contact {
  struct pwi_chain chain;

  struct server_peer *following; /* link to the following member that is up; NULL: none */
  int64_t cut_off_since;         /* since when the chain has not been open; 0: it is open, or no member follows */
  uint64_t heard_then;           /* `chain.heard` at the last check for silence */
  unsigned silences;             /* consecutive checks without an expected confirmation */

  struct server_peer *previous; /* link from the previous member that is up; NULL: none */
  bool is_greeted;              /* READY was sent over that link */
  bool is_stuck;      /* an update could not be applied (a vector or memory is missing); READY will ask for it again */
  int64_t starved_at; /* when this head last told the manager that it has no memory; 0: never */
};

static inline struct chain_contact *contact_of(struct pwi_chain *chain) { return (struct chain_contact *)chain; }

/* A member that we fill, or an arc that we hand over, as the manager ordered it. */
struct moving {
  struct moving *next;
  struct pwi_move order;
  struct pwi_copying copying;
  uint64_t given, taken;   /* chunks */
  uint64_t burst_end;      /* as many may be given before the next rest */
  int64_t burst_at;        /* when that began */
  uint64_t traffic_before; /* bytes of requests by then */
  int64_t rests_until;     /* 0: it does not */
  uint64_t taken_then; /* when it was last looked at, and how often in a row nothing was taken that should have been */
  unsigned silences;
  uint64_t synced_at; /* FILL: what the target must have before we may say that it has everything */
  bool has_begun, has_copied;
  bool is_over; /* `order.status` is the result; it is told again to a manager that asks again */
};

/* An arc that we are being filled with. */
struct filling {
  struct filling *next;
  uint64_t move;
  uint64_t since;
  struct pawl_range positions;
  uint64_t chunk; /* the last taken */
  bool is_complete;
};

struct pwi_server {
  struct pwi_server_config config;
  char *address, *host, *rack;
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_idmap links; /* to peers */
  struct server_peer *peers;
  struct pwi_staging staging; /* for what neighbours in chains say */
  size_t client_links;
  struct pwi_quota_accounts accounts;

  /* Membership. */
  struct server_peer *manager; /* NULL: no link, not even one that is being made */
  struct pwi_managers managers;
  struct pwi_timer retry; /* until the next is tried, or this one is given up */
  int64_t joined_at;      /* over the present link; 0: not yet */
  pawl_status trouble;
  bool has_complained; /* of a manager of another cluster, since we were last let in */
  uint64_t node, secret;
  bool joined, is_leaving, has_left;

  /* What the manager decided. */
  struct pwi_view *view; /* NULL: none came yet */
  struct pwi_catalogue catalogue;
  struct pwi_membership *membership;
  struct pwi_handler_numbers numbers;

  struct pwi_shard *shard;
  struct pwi_handler *handler;
  struct pwi_prober prober;
  struct pwi_log_entries log_entries;
  struct pwi_chains chains;
  struct pwi_reading reading;
  struct pwi_pages stamps, state; /* of the update that is being read */
  struct pwi_timer chain_timer;
  struct moving *movings;
  struct filling *fillings;
  struct server_saving *saving; /* NULL: none is under way */
  struct pwi_timer save_timer, fill_timer;
  uint64_t moves_out, moves_in;
  uint64_t chain_bytes;     /* of values, that were passed on or followed */
  uint64_t bytes_passed;    /* of values and state, that were passed on */
  struct pwi_writer writer; /* for whatever is being sent */
};

/* Timers. */
enum { TIMER_RETRY = 1, TIMER_REPORT = 2, TIMER_CHAIN = 3, TIMER_SAVE = 4, TIMER_FILL = 5, TIMER_PROBE = 6 };

/* A message on a link's own lane, with the numbers in force in its head. */
void pwi_server_say(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind,
                    const struct pwi_enclosure *enclosures, size_t count);
void pwi_server_say_payload(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind);

/* A link to another node; NULL if there is no memory for it. */
struct server_peer *pwi_server_connect(struct pwi_server *server, enum server_peer_kind kind, const char *address);

/* server/access.c: whether who connected to us may, and what it may do. */
PAWL_MUST_USE pawl_status pwi_server_admit(struct pwi_server *server, const struct pwi_link_info *info, bool is_server,
                                           struct pwi_rights *rights_out, struct pwi_quota_account **account_out);
PAWL_MUST_USE pawl_status pwi_server_name_peer(struct server_peer *peer, const struct pwi_link_info *info);

/* server/view.c: news from the manager. PAWL_CORRUPT and PAWL_NO_MEMORY: ask for it again. */
PAWL_MUST_USE pawl_status pwi_server_take_news(struct pwi_server *server, const struct pwi_control *control,
                                               const void *body);

/* server/chain_traffic.c */
void pwi_server_chain_said(struct pwi_server *server, struct server_peer *peer); /* its inbox has a whole message */
void pwi_server_chain_up(struct pwi_server *server, struct server_peer *peer);
void pwi_server_chain_down(struct pwi_server *server, const struct server_peer *peer);
void pwi_server_chain_writable(struct pwi_server *server, const struct server_peer *peer);
void pwi_server_chains_changed(struct pwi_server *server); /* a view has come */
void pwi_server_chains_afresh(struct pwi_server *server);  /* the manager is back: so may be others */
void pwi_server_chains_unstick(struct pwi_server *server); /* a catalogue has come */
void pwi_server_chain_pump(void *server, struct pwi_chain *chain);
void pwi_server_chains_pump(struct pwi_server *server); /* what one of them put off can go now */
void pwi_server_chain_starve(void *server, struct pwi_chain *chain);
void pwi_server_starve(struct pwi_server *server); /* in all chains: there is no memory to talk to a client */
void pwi_server_chain_timer(struct pwi_server *server);
void pwi_server_chains_watch(struct pwi_server *server);                           /* every second */
void pwi_server_chain_confirm(struct pwi_server *server, struct pwi_chain *chain); /* tells the one before us */

/* The link to a node that stands behind us; NULL if it is not up. One is made if there is none. */
struct server_peer *pwi_server_reach(struct pwi_server *server, uint64_t node);

/* Such a link is up, or being made: we hear when it is up, or down. */
bool pwi_server_seeks(const struct pwi_server *server, uint64_t node);

void pwi_server_note(struct pwi_server *server, struct server_peer *peer, const struct pwi_note *note);
struct pwi_log_entry_address pwi_server_address_of(const struct pwi_server *server, const struct server_peer *peer);

/* server/fill.c */
void pwi_server_move_ordered(struct pwi_server *server, const struct pwi_move *order);
void pwi_server_moves_seen(struct pwi_server *server);                          /* a view has come */
void pwi_server_moves_report(struct pwi_server *server);                        /* the manager is back */
void pwi_server_moves_without_manager(struct pwi_server *server);               /* it is gone */
void pwi_server_moves_look(struct pwi_server *server, struct pwi_chain *chain); /* something was confirmed */
void pwi_server_fill_go(struct pwi_server *server, uint64_t node);              /* there is a way to it, or room */
void pwi_server_fill_timer(struct pwi_server *server);
void pwi_server_fills_watch(struct pwi_server *server); /* every second */
void pwi_server_fill_down(struct pwi_server *server, uint64_t node, pawl_status why);
void pwi_server_fill_taken(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_note *note);
void pwi_server_fill_chunk(struct pwi_server *server, struct server_peer *peer, struct pwi_chain *chain,
                           const struct pwi_note *note, const void *chunk, size_t size);
void pwi_server_fills_cancel(struct pwi_server *server); /* all that we have under way; the manager orders them anew */
struct filling *pwi_server_filling(struct pwi_server *server, const struct pwi_chain *chain);
bool pwi_server_is_filled(const struct pwi_server *server, struct pawl_range positions);
/* What the target was sent cannot be taken: the source is told, and it all begins anew. */
void pwi_server_fill_stuck(struct pwi_server *server, struct pwi_chain *chain);

/* Vectors were opened: where all chunks have come, their times begin. */
PAWL_MUST_USE pawl_status pwi_server_fillings_open(struct pwi_server *server);

void pwi_server_fillings_forget(struct pwi_server *server, struct pawl_range positions);
void pwi_server_moves_fini(struct pwi_server *server);

/* server/save.c */
PAWL_MUST_USE pawl_status pwi_server_save_ordered(struct pwi_server *server, const void *payload, size_t size);
void pwi_server_save_timer(struct pwi_server *server);
void pwi_server_save_without_manager(struct pwi_server *server); /* nobody waits for it any more */
void pwi_server_save_fini(struct pwi_server *server);

#endif
