/* The ledger: the state of a manager that must survive a restart, as a plain value.
 *
 * The ledger changes only by records. One of the pwi_record_… functions makes a record, the journal of the
 * manager makes it durable, and then it is applied. The same records in the same order always make the same
 * ledger, so a manager that restarts has the state that it had before.
 *
 * ANSWERS. The ledger keeps the answer to each ask until the client has confirmed that it received it. A
 * client whose reply was lost asks again, and the ask must not be carried out twice. The answers of a sender
 * are forgotten with the sender.
 *
 * A record that breaks a rule (a name that exists already, a view that may not follow the present one)
 * changes nothing, and is refused each time it is applied. So a manager that did not detect this before can
 * refuse the ask, and the journal stays readable. Bytes that are no record at all give PAWL_CORRUPT.
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

/* The data of a node that are not in the view. */
struct pwi_ledger_node {
  uint64_t id;
  uint64_t secret;
  uint64_t nonce; /* random number of its process; all shards of one process have the same */
  uint32_t shard_count;
  uint64_t memory_max; /* UINT64_MAX: no limit */
};

#define PWI_ANSWERS_MAX 1024 /* maximum answers of one sender, and so of its asks under way */

/* The answer to an ask of a sender. */
struct pwi_ledger_answer {
  uint64_t number; /* of the ask */
  pawl_status status;
  uint64_t id; /* id in the reply, or 0 */
};

struct pwi_ledger_sender {
  uint64_t id;
  uint64_t secret;
  char space[PWI_SPACE_MAX + 1];     /* the space that its key is limited to; "": none */
  uint64_t heard;                    /* the client has the replies to all asks up to this number */
  struct pwi_ledger_answer *answers; /* to later asks, in ascending order of numbers */
  size_t answer_count, answer_room;
};

/* The quota of a space: how much memory its vectors may use on all servers. */
struct pwi_ledger_space {
  char space[PWI_SPACE_MAX + 1];
  uint64_t memory; /* bytes; not 0 */
};

/* Callers only read it. A struct of zeros is a ledger without records. */
struct pwi_ledger {
  uint64_t cluster; /* 0: no record was applied yet, and `view` is NULL */
  uint64_t last_node, last_process, last_sender, last_vector, last_move; /* the highest ids ever given out */
  struct pwi_catalogue catalogue;
  struct pwi_membership membership;
  struct pwi_view *view;
  struct pwi_ledger_node *nodes; /* exactly the nodes of the view, in ascending order of ids */
  size_t node_count, node_room;
  struct pwi_ledger_sender *senders; /* exactly the senders of the membership, in ascending order of ids */
  size_t sender_count, sender_room;
  uint64_t senders_gone; /* how many records have removed senders since this ledger was created; not
                            recorded */

  /* Ids of forgotten senders without unsettled tasks: their unanswered pushes took no effect. */
  struct pwi_rangeset settled;
  struct pwi_ledger_space *spaces; /* spaces with a quota, in order of names */
  size_t space_count, space_room;
};

#define PWI_LEDGER_SPACES_MAX 256

#define PWI_LEDGER_SETTLED_MAX 4096 /* maximum ranges in `settled`; the lowest (oldest) are dropped */
#define PWI_RECORD_SETTLED_MAX 1024 /* maximum senders in one record */

void pwi_ledger_fini(struct pwi_ledger *ledger);

const struct pwi_ledger_node *pwi_ledger_node(const struct pwi_ledger *ledger, uint64_t id);
const struct pwi_ledger_sender *pwi_ledger_sender(const struct pwi_ledger *ledger, uint64_t id);

/* The quota of a space; NULL: it has none. */
const struct pwi_ledger_space *pwi_ledger_space(const struct pwi_ledger *ledger, const char *space);

/* True if the sender was forgotten and had no unsettled tasks. */
bool pwi_ledger_is_settled(const struct pwi_ledger *ledger, uint64_t sender);

/* The answer to the ask `number` of a sender; NULL if it was not carried out, or if the client has confirmed
 * the reply. */
const struct pwi_ledger_answer *pwi_ledger_answer(const struct pwi_ledger_sender *sender, uint64_t number);

/* Applies a record. Safe on any bytes. Errors: PAWL_CORRUPT, PAWL_NO_MEMORY, or a refusal; in each case
 * nothing has changed. */
PAWL_MUST_USE pawl_status pwi_ledger_apply(struct pwi_ledger *ledger, const void *record, size_t size);

/* True if a status of pwi_ledger_apply is a refusal: the record is well-formed, but breaks a rule. The result
 * is the same each time the record is applied. */
bool pwi_ledger_refused(pawl_status status);

/* --- records -------------------------------------------------------------------------------------------- */

/* A record is written with base/cursor.h: u8 version (1), u8 kind, then the fields of the kind. */

#define PWI_RECORD_VERSION 1

/* X(name, number, fields) */
#define PWI_RECORD_MAP(X)                                                                                              \
  X(BORN, 1, "u64 cluster; the view has epoch 1 and is empty")                                                         \
  X(NODE, 2, "u64 id, u64 secret, u64 nonce, u32 shard count, u64 memory max; the view that adds it")                  \
  X(VIEW, 3, "u64 last move id given out; the view")                                                                   \
  X(PLAIN_SENDER, 4, "as SENDER, without host and rack; still read, never written")                                    \
  X(RETIRE, 5, "u64 sender")                                                                                           \
  X(FORGET, 6, "u32 count and u64 senders in ascending order; all are retired")                                        \
  X(PLAIN_ENTRY, 7, "u64 id, u8 kind, text name, options of an earlier version; still read, never written")            \
  X(REMOVE, 8, "u64 id of a vector")                                                                                   \
  X(MEMBER, 9, "u64 group, u32 size, u64 sender")                                                                      \
  X(UNMEMBER, 10, "u64 group, u64 sender")                                                                             \
  X(ADDRESS, 11, "u64 sender, text address")                                                                           \
  X(SNAPSHOT, 12, "a whole ledger, see below; always the first record")                                                \
  X(RESTORE, 16, "u64 id of a vector, u32 its new incarnation")                                                        \
  X(ENTRY, 17, "u64 id, u8 kind, text name, options as in protocol/catalogue.h")                                       \
  X(ANSWER, 18,                                                                                                        \
    "u64 sender, u64 ask, u64 heard, u32 status, u64 id; u32 size and a record that is applied with it, or 0")         \
  X(SETTLED, 19, "as FORGET, for senders without unsettled tasks")                                                     \
  X(QUOTA, 20, "text space, u64 bytes of memory that its vectors may use; 0: no limit")                                \
  X(SENDER, 21, "u64 id, u64 secret, text job, text address, 32 bytes key, text space, text host, text rack")

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

/* The answer to an ask, and the change that the ask made: both are applied, or neither. If the change breaks
 * a rule, nothing is changed and the refusal is the answer. Applying it gives PAWL_EXISTS if the ask has an
 * answer already, and PAWL_NOT_FOUND if there is no such sender. */
void pwi_record_answer(struct pwi_writer *record, uint64_t sender, uint64_t heard,
                       const struct pwi_ledger_answer *answer, const struct pwi_writer *change);

/* A snapshot of a ledger that has a cluster. Applied to a ledger of zeros it gives the same ledger. Its
 * fields:
 *
 *   u64 cluster; u64 last node, process, sender, vector, move
 *   u32 count; for each node u64 id, u64 secret, u64 nonce, u32 shard count, u64 memory max
 *   u32 count; for each sender u64 id, u64 secret, text space, u64 heard,
 *     u32 count; for each answer u64 number, u32 status, u64 id
 *   u32 count; for each range of settled ids u64 begin, u64 end
 *   u32 count; for each space with a quota text space, u64 memory
 *   u64 size and the catalogue; u64 size and the membership; the view
 */
void pwi_record_snapshot(struct pwi_writer *record, const struct pwi_ledger *ledger);

/* Reads the fields of a snapshot, for pwi_ledger_apply. Safe on any bytes. Any error except PAWL_NO_MEMORY
 * means that they are no snapshot. */
PAWL_MUST_USE pawl_status pwi_snapshot_read(struct pwi_reader *reader, struct pwi_ledger *ledger_out);

#endif
