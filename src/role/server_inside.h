/* Inside role/server.h: the shard's state, shared by membership (server.c), views (server_view.c) and moves
 * (server_move.c). */
#ifndef PWI_ROLE_SERVER_INSIDE_H
#define PWI_ROLE_SERVER_INSIDE_H

#include "base/cursor.h"
#include "base/idmap.h"
#include "ring/view.h"
#include "role/holder.h"
#include "role/mail.h"
#include "role/managers.h"
#include "role/server.h"

enum server_peer_kind {
  PEER_MANAGER,
  PEER_CLIENT, /* asks */
  PEER_SOURCE, /* another server, which fills us */
  PEER_TARGET, /* another server, which we fill */
};

struct server_peer {
  struct server_peer *next, *before;
  enum server_peer_kind kind;
  struct pwi_link link;
  bool is_up;
  struct pwi_peering peering;
  struct pwi_holder_link *holder; /* PEER_CLIENT */
  struct moving *moving;          /* PEER_TARGET; NULL once the move is over */
  struct pwi_letter letter;
};

/* An arc, or a part of one, on its way out. */
struct moving {
  struct moving *next;
  struct pwi_move order;    /* as the manager gave it */
  struct server_peer *peer; /* NULL: no link to the target */
  struct pwi_copying copying;
  uint64_t given, confirmed; /* the last sequence sent, and answered */
  bool has_begun;            /* we had the view that it needs, and froze the positions */
  bool has_copied;           /* the last chunk is sent, and END */
  bool is_over;              /* `order.status` is the result; what is left to do is a view's */
};

/* An arc, or a part of one, on its way in. */
struct filling {
  struct filling *next;
  uint64_t move;
  struct pawl_range positions;
  uint64_t sequence;
  bool is_complete;
};

struct pwi_server {
  struct pwi_server_config config;
  char *address, *host, *rack;
  struct pwi_greeting greeting;
  struct pwi_mailer mailer;
  struct pwi_idmap links; /* to peers */
  struct server_peer *peers;
  size_t client_links;

  /* Membership. */
  struct server_peer *manager; /* NULL: no link, not even one that is being made */
  struct pwi_managers managers;
  struct pwi_timer retry; /* until the next is tried, or this one is given up */
  pawl_status trouble;
  bool has_complained; /* of a manager of another cluster, since we were last let in */
  uint64_t node, secret;
  bool joined, is_leaving, has_left;

  /* What the manager decided. */
  struct pwi_view *view; /* NULL: none came yet */
  struct pwi_catalogue catalogue;
  struct pwi_roster *roster;
  struct pwi_holder_numbers numbers;

  struct pwi_holding *holding;
  struct pwi_holder *holder;
  struct pwi_rangeset held; /* positions */
  struct moving *movings;
  struct filling *fillings;
  uint64_t moves_out, moves_in;
  struct pwi_writer writer; /* for whatever is being sent */
};

/* Timers. */
enum { TIMER_RETRY = 1, TIMER_REPORT = 2 };

/* A message on a link's own lane, with the numbers in force in its head. */
void pwi_server_say(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind,
                    const struct pwi_enclosure *enclosures, size_t count);
void pwi_server_say_payload(struct pwi_server *server, struct server_peer *peer, enum pwi_say kind);

/* A link to another node; NULL if there is no memory for it. */
struct server_peer *pwi_server_connect(struct pwi_server *server, enum server_peer_kind kind, const char *address);

/* server_view.c: news from the manager. PAWL_CORRUPT and PAWL_NO_MEMORY: ask for it again. */
PAWL_MUST_USE pawl_status pwi_server_take_news(struct pwi_server *server, const struct pwi_letter *letter,
                                               const void *body);

/* server_move.c */
void pwi_server_move_ordered(struct pwi_server *server, const struct pwi_move *order);
void pwi_server_move_target_up(struct pwi_server *server, struct server_peer *peer);
void pwi_server_move_target_down(struct pwi_server *server, struct server_peer *peer, pawl_status why);
void pwi_server_move_confirmed(struct pwi_server *server, struct server_peer *peer, const struct pwi_move *reply);
void pwi_server_moves_seen(struct pwi_server *server);   /* a view has come */
void pwi_server_moves_report(struct pwi_server *server); /* the manager is back: tell it what it may have missed */
void pwi_server_fill(struct pwi_server *server, struct server_peer *peer, const struct pwi_move *fill,
                     const void *chunk, size_t size);
bool pwi_server_is_filled(const struct pwi_server *server, struct pawl_range positions);
void pwi_server_fillings_forget(struct pwi_server *server, struct pawl_range positions);
void pwi_server_fillings_settle(struct pwi_server *server); /* forget those that we hold by now */
void pwi_server_moves_fini(struct pwi_server *server);

#endif
