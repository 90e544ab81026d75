/* The ledger: all that a manager must not forget, as a plain value.
 *
 * It changes in one way only: by records. A record is made by one of the pwi_record_… functions, made durable by the
 * manager's journal, and then applied; whoever applies the same records in the same order has the same ledger. So a
 * manager that is started again is what it was before.
 *
 * A record that breaks a rule (a name that is taken, a view that may not follow the present one) changes nothing, and
 * says so each time it is applied: a manager that failed to see it beforehand can refuse what it was asked for, and the
 * journal stays readable. Bytes that are no record at all are PAWL_CORRUPT.
 *
 * Threads: belongs to one thread at a time.
 */
#ifndef PWI_MANAGER_LEDGER_LEDGER_H
#define PWI_MANAGER_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/cursor.h"
#include "base/rangeset.h"
#include "ring/view.h"
#include "protocol/catalogue.h"
#include "protocol/membership.h"

/* What the view does not tell of a node. */
struct pwi_ledger_node {
  uint64_t id;
  uint64_t secret;
  uint64_t nonce; /* drawn by its process when that started: shards of one process have the same */
  uint32_t shard_count;
  uint64_t memory_max; /* UINT64_MAX: no cap */
};

#define PWI_ANSWERS_MAX 1024 /* of one sender: so many asks may be under way */

/* What an ask of a sender came to. */
struct pwi_ledger_answer {
  uint64_t number; /* of the ask */
  pawl_status status;
  uint64_t id; /* that the reply has, or 0 */
};

/* Answers are remembered until their sender has heard them: an ask whose reply was lost comes again, and must not be carried
 * out again. Those of a sender that is forgotten are forgotten with it. */
struct pwi_ledger_sender {
  uint64_t id;
  uint64_t secret;
  char space[PWI_SPACE_MAX + 1];     /* that its key is limited to; "": none */
  uint64_t heard;                    /* it has had the replies to all asks up to this number */
  struct pwi_ledger_answer *answers; /* to others, by rising number */
  size_t answer_count, answer_room;
};

/* How much memory the vectors of a space may take, on all servers together. */
struct pwi_ledger_space {
  char space[PWI_SPACE_MAX + 1];
  uint64_t memory; /* bytes; not 0 */
};

/* Read-only for callers. A struct of zeros is a ledger without records. */
struct pwi_ledger {
  uint64_t cluster; /* 0: before the first record, and then `view` is NULL */
  uint64_t last_node, last_process, last_sender, last_vector, last_move; /* the highest that were ever given out */
  struct pwi_catalogue catalogue;
  struct pwi_membership membership;
  struct pwi_view *view;
  struct pwi_ledger_node *nodes; /* exactly those of the view, by rising id */
  size_t node_count, node_room;
  struct pwi_ledger_sender *senders; /* exactly those of the membership, by rising id */
  size_t sender_count, sender_room;
  uint64_t senders_gone; /* how often some were taken out, since this ledger was made: no part of its state */

  /* Ids that are forgotten and left nothing unsettled: whatever their client has no answer to took no effect. */
  struct pwi_rangeset settled;
  struct pwi_ledger_space *spaces; /* that have a quota, by name */
  size_t space_count, space_room;
};

#define PWI_LEDGER_SPACES_MAX 256

#define PWI_LEDGER_SETTLED_MAX 4096 /* ranges of these; of more the lowest, the oldest, are dropped */
#define PWI_RECORD_SETTLED_MAX 1024 /* senders in one record */

void pwi_ledger_fini(struct pwi_ledger *ledger);

const struct pwi_ledger_node *pwi_ledger_node(const struct pwi_ledger *ledger, uint64_t id);
const struct pwi_ledger_sender *pwi_ledger_sender(const struct pwi_ledger *ledger, uint64_t id);

const struct pwi_ledger_space *pwi_ledger_space(const struct pwi_ledger *ledger,
                                                const char *space); /* NULL: no quota */

/* It was forgotten, and is known to have left nothing unsettled. */
bool pwi_ledger_is_settled(const struct pwi_ledger *ledger, uint64_t sender);

/* What ask `number` of a sender came to; NULL if it was not carried out, or the sender has heard it. */
const struct pwi_ledger_answer *pwi_ledger_answer(const struct pwi_ledger_sender *sender, uint64_t number);

/* Safe on any bytes. PAWL_CORRUPT, PAWL_NO_MEMORY, or a refusal; in each case nothing has changed. */
PAWL_MUST_USE pawl_status pwi_ledger_apply(struct pwi_ledger *ledger, const void *record, size_t size);

/* True for a status of pwi_ledger_apply that will be the same whenever the record is applied: it is sound, and breaks a
 * rule. */
bool pwi_ledger_refused(pawl_status status);

/* --- records, as bytes with base/cursor.h: u8 version (1), u8 kind, then --------------------------------------------- */

#define PWI_RECORD_VERSION 1

/* X(name, number, fields) */
#define PWI_RECORD_MAP(X)                                                                                              \
  X(BORN, 1, "u64 cluster; the view is 1, and empty")                                                                  \
  X(NODE, 2, "u64 id, u64 secret, u64 nonce, u32 shard count, u64 memory max; the view that it is new in")             \
  X(VIEW, 3, "u64 last move given out; the view")                                                                      \
  X(SENDER, 4, "u64 id, u64 secret, text job, text address, 32 bytes key, text space")                                 \
  X(RETIRE, 5, "u64 sender")                                                                                           \
  X(FORGET, 6, "u32 count and u64 senders by rising id; all are retired")                                              \
  X(PLAIN_ENTRY, 7, "u64 id, u8 kind, text name, options as they were before there were rules; read only")             \
  X(REMOVE, 8, "u64 id of a vector")                                                                                   \
  X(MEMBER, 9, "u64 group, u32 size, u64 sender")                                                                      \
  X(UNMEMBER, 10, "u64 group, u64 sender")                                                                             \
  X(ADDRESS, 11, "u64 sender, text address")                                                                           \
  X(SNAPSHOT, 12, "all of a ledger, see below; only ever the first record")                                            \
  X(RESTORE, 16, "u64 id of a vector, u32 its incarnation from now on")                                                \
  X(ENTRY, 17, "u64 id, u8 kind, text name, options as in protocol/catalogue.h")                                       \
  X(ANSWER, 18,                                                                                                        \
    "u64 sender, u64 ask, u64 heard, u32 status, u64 id; u32 size and a record that is applied with it, or 0")         \
  X(SETTLED, 19, "as FORGET; and nothing of theirs is unsettled")                                                      \
  X(QUOTA, 20, "text space, u64 bytes of memory that its vectors may take; 0: no limit")

enum pwi_record_kind {
#define PWI_RECORD_ENUM(name, number, fields) PWI_RECORD_##name = (number),
  PWI_RECORD_MAP(PWI_RECORD_ENUM)
#undef PWI_RECORD_ENUM
};

void pwi_record_born(struct pwi_writer *record, uint64_t cluster);
void pwi_record_node(struct pwi_writer *record, const struct pwi_ledger_node *node, const struct pwi_view *view);
void pwi_record_view(struct pwi_writer *record, uint64_t last_move, const struct pwi_view *view);
void pwi_record_sender(struct pwi_writer *record, uint64_t secret, const char *space,
                       const struct pwi_membership_sender *sender);
void pwi_record_retire(struct pwi_writer *record, uint64_t sender);
void pwi_record_forget(struct pwi_writer *record, bool settled, const uint64_t *senders, size_t count);
void pwi_record_quota(struct pwi_writer *record, const char *space, uint64_t memory);
void pwi_record_entry(struct pwi_writer *record, const struct pwi_entry *entry);
void pwi_record_remove(struct pwi_writer *record, uint64_t vector);
void pwi_record_restore(struct pwi_writer *record, uint64_t vector, uint32_t incarnation);
void pwi_record_member(struct pwi_writer *record, uint64_t group, uint32_t size, uint64_t sender);
void pwi_record_unmember(struct pwi_writer *record, uint64_t group, uint64_t sender);
void pwi_record_address(struct pwi_writer *record, uint64_t sender, const char *address);

/* What an ask came to, and what it changed: both or neither are in the ledger. If that breaks a rule, nothing is changed and the
 * refusal is the answer. PAWL_EXISTS: it has been answered before. PAWL_NOT_FOUND: there is no such sender. */
void pwi_record_answer(struct pwi_writer *record, uint64_t sender, uint64_t heard,
                       const struct pwi_ledger_answer *answer, const struct pwi_writer *change);

/* Of a ledger that has a cluster. u64 cluster; u64 last node, process, sender, vector, move; u32 count and per node u64 id,
 * u64 secret, u64 nonce, u32 shard count, u64 memory max; u32 count and per sender u64 id, u64 secret, text space, u64 heard, u32 count
 * and per answer u64 number, u32 status, u64 id; u32 count and per range of settled ids u64 begin, u64 end; u32 count and per space with a quota text space, u64 memory; u64 size and the catalogue; u64 size and the membership; the view. Whoever applies it to a ledger of zeros has the same ledger. */
void pwi_record_snapshot(struct pwi_writer *record, const struct pwi_ledger *ledger);

/* What follows the kind, for pwi_ledger_apply. Safe on any bytes; any error but PAWL_NO_MEMORY means that they are no
 * snapshot. */
PAWL_MUST_USE pawl_status pwi_snapshot_read(struct pwi_reader *reader, struct pwi_ledger *ledger_out);

#endif
