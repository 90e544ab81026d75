/* Shared memory between two processes: a forked child owns it and gives it away over a unix socket. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/testing.h"
#include "net/ucx/shared.h"

#define SIZE 10000
#define HUGE ((size_t)8 << 20)
#define NUMBER 77

/* A process that has given us its memory and holds it until it is ended. */
struct owner {
  pid_t process;
  int channel;
};

static void own(int channel, size_t size) {
  struct pwi_shared shared;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails on the way */
  if (pwi_shared_open(size, &shared) != PAWL_OK) _exit(1);
  memset(shared.memory, 'o', size);
  if (pwi_shared_give(channel, NUMBER, &shared) != PAWL_OK) _exit(1);
  if (send(channel, "", 1, 0) != 1) _exit(1);
  for (;;) pause();
}

static void make_channel(int ends[2]) {
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static struct owner start_owner(size_t size) {
  struct owner owner;
  int ends[2];
  make_channel(ends);
  owner.process = fork();
  assert_true(owner.process >= 0);
  if (owner.process == 0) own(ends[1], size);
  close(ends[1]);
  owner.channel = ends[0];
  char byte;
  assert_true(recv(owner.channel, &byte, 1, MSG_PEEK) == 1); /* it has given */
  return owner;
}

static void end_owner(const struct owner *owner) {
  int ignored;
  kill(owner->process, SIGKILL);
  assert_int_equal(waitpid(owner->process, &ignored, 0), owner->process);
  close(owner->channel);
}

static bool is_all(const void *memory, size_t size, char byte) {
  const char *bytes = memory;
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != byte) return false;
  return true;
}

static void test_new_memory_is_zero_and_of_its_size(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 4096, SIZE, HUGE};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct pwi_shared shared;
    assert_int_equal(pwi_shared_open(sizes[i], &shared), PAWL_OK);
    assert_int_equal(shared.size, sizes[i]);
    assert_true(is_all(shared.memory, sizes[i], 0));
    memset(shared.memory, 1, sizes[i]);
    pwi_shared_close(&shared);
  }
}

/* Without a check of the available memory, the kernel would kill a process for the second of these. */
static void test_sizes_beyond_the_machine_are_refused_for_lack_of_memory(void **state) {
  (void)state;
  struct pwi_shared shared = {.memory = &shared};
  assert_int_equal(pwi_shared_open(0, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open((size_t)1 << 60, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open((size_t)INT64_MAX + 1, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open(SIZE_MAX, &shared), PAWL_NO_MEMORY);
  assert_ptr_equal(shared.memory, &shared);
}

static void test_the_memory_of_another_process_can_be_taken(void **state) {
  (void)state;
  struct owner owner = start_owner(HUGE);
  struct pwi_mapping mapping;
  assert_int_equal(pwi_shared_take(owner.channel, &mapping), PAWL_OK);
  assert_int_equal(mapping.number, NUMBER);
  assert_int_equal(mapping.size, HUGE);
  assert_true(is_all(mapping.memory, HUGE, 'o'));
  assert_int_equal(pwi_mapping_open_for_writing(&mapping), PAWL_OK);
  memset(mapping.memory, 'w', HUGE);
  assert_true(is_all(mapping.memory, HUGE, 'w'));
  pwi_mapping_close(&mapping);
  end_owner(&owner);
}

static void test_bytes_that_the_peer_writes_are_seen_here(void **state) {
  (void)state;
  struct pwi_shared shared;
  struct pwi_mapping mapping;
  int ends[2];
  make_channel(ends);
  assert_int_equal(pwi_shared_open(SIZE, &shared), PAWL_OK);
  strcpy(shared.memory, "from the owner");
  assert_int_equal(pwi_shared_give(ends[0], 5, &shared), PAWL_OK);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (pwi_shared_take(ends[1], &mapping) != PAWL_OK) _exit(1);
    if (pwi_mapping_open_for_writing(&mapping) != PAWL_OK) _exit(2);
    if (strcmp(mapping.memory, "from the owner") != 0) _exit(3);
    strcpy((char *)mapping.memory + SIZE - 20, "from the peer");
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_string_equal((char *)shared.memory + SIZE - 20, "from the peer");
  pwi_shared_close(&shared);
  close(ends[0]);
  close(ends[1]);
}

static void test_a_mapping_for_reading_cannot_be_written(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  struct pwi_mapping mapping;
  assert_int_equal(pwi_shared_take(owner.channel, &mapping), PAWL_OK);
  int zeros = open("/dev/zero", O_RDONLY);
  assert_int_equal(read(zeros, mapping.memory, 1), -1);
  assert_int_equal(errno, EFAULT);
  assert_true(is_all(mapping.memory, SIZE, 'o'));
  close(zeros);
  pwi_mapping_close(&mapping);
  end_owner(&owner);
}

static void test_a_mapping_outlives_its_owner(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  struct pwi_mapping mapping;
  assert_int_equal(pwi_shared_take(owner.channel, &mapping), PAWL_OK);
  assert_int_equal(pwi_mapping_open_for_writing(&mapping), PAWL_OK);
  end_owner(&owner);
  assert_true(is_all(mapping.memory, SIZE, 'o'));
  memset(mapping.memory, 'x', SIZE);
  pwi_mapping_close(&mapping);
}

static void test_the_size_is_sealed_for_both_sides(void **state) {
  (void)state;
  struct pwi_shared shared;
  assert_int_equal(pwi_shared_open(SIZE, &shared), PAWL_OK);
  static const off_t sizes[] = {0, SIZE - 1, SIZE + 1, 1 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(ftruncate(shared.file, sizes[i]), -1);
    assert_int_equal(errno, EPERM);
  }
  pwi_shared_close(&shared);
}

static void test_a_peer_that_does_not_take_fills_its_queue(void **state) {
  (void)state;
  struct pwi_shared shared;
  struct pwi_mapping mapping;
  int ends[2];
  size_t given = 0, taken = 0;
  pawl_status status;
  make_channel(ends);
  assert_int_equal(pwi_shared_open(4096, &shared), PAWL_OK);
  while ((status = pwi_shared_give(ends[0], ++given, &shared)) == PAWL_OK) assert_true(given < 100000);
  assert_int_equal(status, PAWL_QUEUE_FULL);
  while (pwi_shared_take(ends[1], &mapping) == PAWL_OK) {
    assert_int_equal(mapping.number, ++taken);
    pwi_mapping_close(&mapping);
  }
  assert_int_equal(taken, given - 1);
  assert_int_equal(pwi_shared_give(ends[0], given, &shared), PAWL_OK);
  close(ends[1]);
  assert_int_equal(pwi_shared_give(ends[0], given, &shared), PAWL_LINK_PLANE);
  assert_int_equal(pwi_shared_take(ends[0], &mapping), PAWL_LINK_PLANE);
  close(ends[0]);
  pwi_shared_close(&shared);
}

/* Wrong gifts. */

/* A note as pwi_shared_give writes it, cut or stretched, with any descriptors. */
struct gift {
  uint64_t magic, size;
  size_t note_size;
  int files[20];
  size_t file_count;
};

static void give(int channel, const struct gift *gift) {
  uint8_t note[64] = {0};
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(20 * sizeof(int))];
  } control = {0};
  pwi_put_u64(note, gift->magic);
  pwi_put_u64(note + 8, NUMBER);
  pwi_put_u64(note + 16, gift->size);
  struct iovec body = {note, gift->note_size};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
  size_t bytes = gift->file_count * sizeof(int);
  if (bytes > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(bytes);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(rights), gift->files, bytes);
  }
  assert_int_equal(sendmsg(channel, &message, MSG_NOSIGNAL), (ssize_t)gift->note_size);
}

/* Nothing is written on failure, and nothing stays open. */
static void assert_refused(const struct gift *gift) {
  struct pwi_mapping mapping = {.memory = &mapping};
  int ends[2];
  make_channel(ends);
  give(ends[0], gift);
  int before = dup(0);
  close(before);
  assert_int_equal(pwi_shared_take(ends[1], &mapping), PAWL_CORRUPT);
  int after = dup(0);
  close(after);
  assert_int_equal(after, before);
  assert_ptr_equal(mapping.memory, &mapping);
  assert_int_equal(pwi_shared_take(ends[1], &mapping), PAWL_NOT_FOUND);
  close(ends[0]);
  close(ends[1]);
}

#define MAGIC UINT64_C(0x676572206c776170)

static void test_a_gift_that_is_not_quite_right_is_refused(void **state) {
  (void)state;
  struct pwi_shared shared;
  assert_int_equal(pwi_shared_open(4096, &shared), PAWL_OK);
  const struct gift right = {MAGIC, 4096, 24, {shared.file}, 1};
  struct gift gift = right;
  static const size_t cuts[] = {1, 8, 23, 25, 64};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    gift.note_size = cuts[i];
    assert_refused(&gift);
  }
  gift = right;
  gift.magic ^= 1;
  assert_refused(&gift);
  static const uint64_t sizes[] = {0, 1, 4095, 4097, 8192, UINT64_MAX, UINT64_C(1) << 63};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    gift = right;
    gift.size = sizes[i];
    assert_refused(&gift);
  }
  for (size_t count = 0; count <= 20; count += 4) { /* none, several, more than there is room for */
    gift = right;
    gift.file_count = count;
    for (size_t i = 0; i < count; i++) gift.files[i] = shared.file;
    if (count != 1) assert_refused(&gift);
  }
  pwi_shared_close(&shared);
}

/* A peer that could shrink the file could pull the pages from under us, and we would die of it. */
static void test_a_file_that_is_not_sealed_is_refused(void **state) {
  (void)state;
  struct pwi_mapping mapping;
  int ends[2], file = memfd_create("pawl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(file >= 0);
  assert_int_equal(ftruncate(file, 4096), 0);
  struct gift gift = {MAGIC, 4096, 24, {file}, 1};
  assert_refused(&gift);
  assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);
  assert_refused(&gift);
  assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  make_channel(ends);
  give(ends[0], &gift);
  assert_int_equal(pwi_shared_take(ends[1], &mapping), PAWL_OK);
  pwi_mapping_close(&mapping);
  close(ends[0]);
  close(ends[1]);
  close(file);
}

static void test_files_of_other_kinds_are_refused(void **state) {
  (void)state;
  int pipes[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), zeros = open("/dev/zero", O_RDWR | O_CLOEXEC);
  assert_int_equal(pipe(pipes), 0);
  off_t size = lseek(file, 0, SEEK_END);
  const struct gift gifts[] = {
      {MAGIC, (uint64_t)size, 24, {file}, 1}, {MAGIC, 4096, 24, {zeros}, 1}, {MAGIC, 4096, 24, {pipes[0]}, 1}};
  for (size_t i = 0; i < sizeof gifts / sizeof *gifts; i++) assert_refused(&gifts[i]);
  close(file);
  close(zeros);
  close(pipes[0]);
  close(pipes[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_new_memory_is_zero_and_of_its_size),
      cmocka_unit_test(test_sizes_beyond_the_machine_are_refused_for_lack_of_memory),
      cmocka_unit_test(test_the_memory_of_another_process_can_be_taken),
      cmocka_unit_test(test_bytes_that_the_peer_writes_are_seen_here),
      cmocka_unit_test(test_a_mapping_for_reading_cannot_be_written),
      cmocka_unit_test(test_a_mapping_outlives_its_owner),
      cmocka_unit_test(test_the_size_is_sealed_for_both_sides),
      cmocka_unit_test(test_a_peer_that_does_not_take_fills_its_queue),
      cmocka_unit_test(test_a_gift_that_is_not_quite_right_is_refused),
      cmocka_unit_test(test_a_file_that_is_not_sealed_is_refused),
      cmocka_unit_test(test_files_of_other_kinds_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
