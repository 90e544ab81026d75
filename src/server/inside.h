/* The server's state, shared by the files of this module. README.md lists the files in reading order. */
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
#include "server/turns.h"

enum server_peer_kind {
  PEER_MANAGER,
  PEER_CLIENT,   /* sends requests */
  PEER_PREVIOUS, /* a server that precedes this one in chains; it made the link */
  PEER_NEXT,     /* a server that follows this one in chains; this server made the link */
};

struct server_peer {
  struct server_peer *next, *before;
  enum server_peer_kind kind;
  struct pwi_link link;
  bool is_up;

  /* PEER_PREVIOUS: a message about a chain was received. A server that only probes this one
   * (protocol/prober.h) never sends any. */
  bool has_spoken;

  struct pwi_peering peering;
  char *identity, *address;          /* of a link that is up, for a later check of its rights */
  struct pwi_quota_account *account; /* PEER_CLIENT: its quotas; NULL: none */
  int64_t began_at;                  /* PEER_NEXT: when the connection was begun */
  uint64_t node;                     /* PEER_PREVIOUS, PEER_NEXT */
  struct pwi_handler_link *handler;  /* PEER_CLIENT */
  struct pwi_control control;        /* PEER_MANAGER; PEER_CLIENT: of a message that is no request */
  struct pwi_inbox inbox;            /* PEER_PREVIOUS, PEER_NEXT */

  uint8_t priority;  /* PEER_CLIENT: of its work; 0: not yet up, or going down */
  bool is_receiving; /* a message of it is arriving */
  bool is_held;      /* its data lane */
};

/* A chain, and how its neighbours are reached (server/chain_traffic.c). */
struct chain_contact {
  struct pwi_chain chain;

  struct server_peer *following; /* link to the following member that is up; NULL: none */
  int64_t cut_off_since;         /* since when the chain is not open; 0: it is, or nothing follows */
  bool has_warned;               /* the manager was told that a complaint may follow */
  int64_t manager_heard_at;      /* when the manager answered that warning; 0: it has not */
  uint64_t heard_then;           /* `chain.heard` at the last check for silence */
  unsigned silences;             /* consecutive checks without an expected confirmation */
  bool owes_open;                /* OPEN had no room on that link, and is sent when it is writable */

  struct server_peer *previous; /* link from the previous member that is up; NULL: none */
  bool is_greeted;              /* READY was sent over that link, or is owed */
  /* These messages had no room on that link, and are sent when it is writable. */
  bool owes_ready, owes_full, owes_confirm, owes_taken;
  struct pwi_chain_message taken; /* the TAKEN that is owed */
  /* An update could not be applied for lack of a vector or of memory; READY asks for it again. */
  bool is_stuck;
  int64_t starved_at; /* when this head last told the manager that it has no memory; 0: never */
};

static inline struct chain_contact *contact_of(struct pwi_chain *chain) { return (struct chain_contact *)chain; }

/* An order of the manager to fill a member, or to hand an arc over. */
struct moving {
  struct moving *next;
  struct pwi_move order;
  struct pwi_copying copying;
  uint64_t given, taken;   /* chunks sent, and chunks confirmed by the target */
  uint64_t burst_end;      /* number of chunks after which the fill pauses */
  int64_t burst_at;        /* when this burst began */
  uint64_t traffic_before; /* bytes of requests when this burst began */
  int64_t pauses_until;    /* end of the pause; 0: no pause */
  uint64_t taken_then;     /* `taken` at the last check for silence */
  unsigned silences;       /* consecutive checks without an expected confirmation */
  uint64_t synced_at;      /* FILL: the version that the target must confirm before it counts as complete */
  bool has_begun, has_copied;
  bool is_over; /* `order.status` is the result, which is repeated to a manager that asks again */
};

/* An arc with which this server is being filled. */
struct filling {
  struct filling *next;
  uint64_t move;
  uint64_t since;
  struct pawl_range positions;
  uint64_t chunk; /* number of the last chunk that was stored */
  bool is_complete;
};

struct pwi_server {
  struct pwi_server_config config;
  char *address, *host, *rack;
  struct pwi_greeting greeting;
  struct pwi_messenger messenger;
  struct pwi_idmap links; /* struct server_peer * by link */
  struct server_peer *peers;
  struct pwi_staging staging; /* memory for messages of neighbours in chains */
  size_t client_links;
  struct pwi_quota_accounts accounts;

  /* Priorities (server/priority.c). */
  struct pwi_turns turns;
  struct pwi_timer turn_timer;
  int64_t turn_timer_at; /* when it is due */
  size_t held_links;
  uint64_t holds; /* begun since the start */

  /* Membership. */
  struct server_peer *manager; /* up or being made; NULL: none */
  struct pwi_managers managers;
  struct pwi_timer retry; /* try the next manager, or give up the present attempt */
  int64_t joined_at;      /* over the present link; 0: not yet */
  pawl_status trouble;
  bool has_complained; /* logged that the manager is of another cluster, since the last successful join */
  uint64_t node, secret;
  bool joined, is_leaving, has_left;

  /* Decisions of the manager. */
  struct pwi_view *view; /* NULL: no view yet */
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
  int64_t chain_timer_at; /* when it is due */
  struct moving *movings;
  struct filling *fillings;
  struct server_saving *saving; /* NULL: none is under way */
  struct pwi_timer save_timer, fill_timer;
  uint64_t moves_out, moves_in;
  uint64_t chain_bytes;     /* of values that were passed on or received in chains */
  uint64_t bytes_passed;    /* of values and state that were passed on */
  struct pwi_writer writer; /* for the payload that is being built */
};

/* Timers. */
enum { TIMER_RETRY = 1, TIMER_REPORT, TIMER_CHAIN, TIMER_SAVE, TIMER_FILL, TIMER_PROBE, TIMER_TURNS };

/* Sends a control message, with the numbers in force in its head. */
void pwi_server_say(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind,
                    const struct pwi_enclosure *enclosures, size_t count);
void pwi_server_say_payload(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind);

/* Begins a link to another node. NULL: the address is invalid, or there is no memory. */
struct server_peer *pwi_server_connect(struct pwi_server *server, enum server_peer_kind kind, const char *address);

/* server/access.c: checks whether a peer may connect, and its rights. */
PAWL_MUST_USE pawl_status pwi_server_admit(struct pwi_server *server, const struct pwi_link_info *info, uint8_t role,
                                           struct pwi_rights *rights_out, struct pwi_quota_account **account_out);
struct pwi_rights pwi_server_rights_of(const struct pwi_server *server, const char *identity);
PAWL_MUST_USE pawl_status pwi_server_name_peer(struct server_peer *peer, const struct pwi_link_info *info);

/* server/priority.c: which clients wait for others (docs/priorities.md). */
void pwi_server_priority_up(struct pwi_server *server, struct server_peer *peer);
/* A client states another priority. PAWL_UNSUPPORTED: there is none such. */
PAWL_MUST_USE pawl_status pwi_server_priority_state(struct pwi_server *server, struct server_peer *peer,
                                                    uint64_t stated);
void pwi_server_priority_down(struct pwi_server *server, struct server_peer *peer);
void pwi_server_priority_begin(struct pwi_server *server, struct server_peer *peer); /* a message begins */
void pwi_server_priority_end(struct pwi_server *server, struct server_peer *peer);   /* it has ended */
void pwi_server_priority_timer(struct pwi_server *server);

/* server/view.c: applies news from the manager. PAWL_CORRUPT, PAWL_NO_MEMORY: the news must be sent again. */
PAWL_MUST_USE pawl_status pwi_server_take_news(struct pwi_server *server, const struct pwi_control *control,
                                               const void *body);

/* server/chain_traffic.c */
/* The inbox of `peer` has a whole message about a chain. */
void pwi_server_chain_said(struct pwi_server *server, struct server_peer *peer);
void pwi_server_chain_up(struct pwi_server *server, struct server_peer *peer);
void pwi_server_chain_down(struct pwi_server *server, const struct server_peer *peer);
void pwi_server_chain_writable(struct pwi_server *server, const struct server_peer *peer);
void pwi_server_chains_changed(struct pwi_server *server); /* call it after a new view */
void pwi_server_chains_afresh(
    struct pwi_server
        *server); /* call it when the manager is back: gives up old attempts to connect, and measures outages anew */
void pwi_server_chains_heard(struct pwi_server *server); /* call it when the manager has answered a warning */
void pwi_server_chains_unstick(
    struct pwi_server *server); /* call it after a new catalogue: asks again for updates that could not be applied */
void pwi_server_chain_pump(void *server, struct pwi_chain *chain);
void pwi_server_chains_pump(struct pwi_server *server); /* sends log entries that had to wait */
void pwi_server_chain_starve(void *server, struct pwi_chain *chain);
void pwi_server_starve(
    struct pwi_server *server); /* there is no memory to serve a client: tells the manager, for all arcs of this head */
void pwi_server_chain_timer(struct pwi_server *server);
void pwi_server_chains_watch(struct pwi_server *server); /* call it every second */
/* Sends CONFIRM to the previous member. */
void pwi_server_chain_confirm(struct pwi_server *server, struct pwi_chain *chain);

/* The link to a following node; NULL if it is not up. Begins one if there is none. */
struct server_peer *pwi_server_reach(struct pwi_server *server, uint64_t node);

/* True if the link to a following node is up or being made. */
bool pwi_server_seeks(const struct pwi_server *server, uint64_t node);

/* Reports about a chunk to the previous member. */
void pwi_server_chain_taken(struct pwi_server *server, struct pwi_chain *chain,
                            const struct pwi_chain_message *message);
struct pwi_log_entry_address pwi_server_address_of(const struct pwi_server *server, const struct server_peer *peer);

/* server/fill.c */
void pwi_server_move_ordered(struct pwi_server *server, const struct pwi_move *order);
void pwi_server_moves_seen(struct pwi_server *server);            /* call it after a new view */
void pwi_server_moves_report(struct pwi_server *server);          /* call it when the manager is back */
void pwi_server_moves_without_manager(struct pwi_server *server); /* call it when the manager is gone */
void pwi_server_moves_look(struct pwi_server *server,
                           struct pwi_chain *chain); /* call it when a version of the chain was confirmed */
/* Continues the fills of `node`: its link is up, or its queue is no longer full. */
void pwi_server_fill_go(struct pwi_server *server, uint64_t node);
void pwi_server_fill_timer(struct pwi_server *server);
void pwi_server_fills_watch(struct pwi_server *server); /* call it every second */
void pwi_server_fill_down(struct pwi_server *server, uint64_t node, pawl_status why);
void pwi_server_fill_taken(struct pwi_server *server, struct pwi_chain *chain, const struct pwi_chain_message *message);
void pwi_server_fill_chunk(struct pwi_server *server, struct server_peer *peer, struct pwi_chain *chain,
                           const struct pwi_chain_message *message, const void *chunk, size_t size);
struct filling *pwi_server_filling(struct pwi_server *server, const struct pwi_chain *chain);
bool pwi_server_is_filled(const struct pwi_server *server, struct pawl_range positions);

/* On the target: a chunk or update cannot be applied. Tells the source, and the fill begins anew. */
void pwi_server_fill_stuck(struct pwi_server *server, struct pwi_chain *chain);

/* Call it after vectors were opened: adds their clocks to complete fillings. */
PAWL_MUST_USE pawl_status pwi_server_fillings_open(struct pwi_server *server);

void pwi_server_fillings_forget(struct pwi_server *server, struct pawl_range positions);
void pwi_server_moves_fini(struct pwi_server *server);

/* server/save.c */
PAWL_MUST_USE pawl_status pwi_server_save_ordered(struct pwi_server *server, const void *payload, size_t size);
void pwi_server_save_timer(struct pwi_server *server);
void pwi_server_save_without_manager(
    struct pwi_server *server); /* call it when the manager is gone: abandons the order */
void pwi_server_save_fini(struct pwi_server *server);

#endif
