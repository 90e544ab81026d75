/* Shared memory between two processes: a child that is forked here makes or maps, and is told by a pipe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/ucx/shared.h"

#define SIZE 10000
#define HUGE ((size_t)8 << 20)

/* A process that holds a shared memory until it is ended. */
struct owner {
  pid_t process;
  struct pwi_shared_name name;
};

static void own(int to_parent, size_t size) {
  struct pwi_shared shared;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the test fails on the way */
  if (pwi_shared_open(size, &shared) != PAWL_OK) _exit(1);
  memset(shared.memory, 'o', size);
  if (write(to_parent, &shared.name, sizeof shared.name) != sizeof shared.name) _exit(1);
  for (;;) pause();
}

static struct owner start_owner(size_t size) {
  struct owner owner;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  owner.process = fork();
  assert_true(owner.process >= 0);
  if (owner.process == 0) own(ends[1], size);
  close(ends[1]);
  assert_int_equal(read(ends[0], &owner.name, sizeof owner.name), sizeof owner.name);
  close(ends[0]);
  assert_int_equal(owner.name.process, owner.process);
  return owner;
}

static void end_owner(const struct owner *owner) {
  int ignored;
  kill(owner->process, SIGKILL);
  assert_int_equal(waitpid(owner->process, &ignored, 0), owner->process);
}

static bool is_all(const void *memory, size_t size, char byte) {
  const char *bytes = memory;
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != byte) return false;
  return true;
}

/* Marks every wrong attempt: nothing may be written on failure. */
static void assert_refused(const struct pwi_shared_name *name) {
  void *memory = &memory;
  assert_int_equal(pwi_shared_map(name, false, &memory), PAWL_NOT_FOUND);
  assert_int_equal(pwi_shared_map(name, true, &memory), PAWL_NOT_FOUND);
  assert_ptr_equal(memory, &memory);
}

static void test_new_memory_is_zero_and_of_its_size(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 4096, SIZE, HUGE};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct pwi_shared shared;
    assert_int_equal(pwi_shared_open(sizes[i], &shared), PAWL_OK);
    assert_int_equal(shared.name.size, sizes[i]);
    assert_int_equal(shared.name.process, getpid());
    assert_true(is_all(shared.memory, sizes[i], 0));
    memset(shared.memory, 1, sizes[i]);
    pwi_shared_close(&shared);
  }
}

/* Without a look at the machine's memory beforehand, the kernel would have killed somebody for the second of these. */
static void test_sizes_that_nobody_has_are_no_memory(void **state) {
  (void)state;
  struct pwi_shared shared = {.memory = &shared};
  assert_int_equal(pwi_shared_open(0, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open((size_t)1 << 60, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open((size_t)INT64_MAX + 1, &shared), PAWL_NO_MEMORY);
  assert_int_equal(pwi_shared_open(SIZE_MAX, &shared), PAWL_NO_MEMORY);
  assert_ptr_equal(shared.memory, &shared);
}

static void test_another_process_sees_what_is_written(void **state) {
  (void)state;
  struct pwi_shared shared;
  assert_int_equal(pwi_shared_open(SIZE, &shared), PAWL_OK);
  struct pwi_shared_name name = shared.name;
  strcpy(shared.memory, "from the owner");
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    void *memory;
    if (pwi_shared_map(&name, true, &memory) != PAWL_OK) _exit(1);
    if (strcmp(memory, "from the owner") != 0) _exit(2);
    strcpy((char *)memory + SIZE - 20, "from the peer");
    pwi_shared_unmap(memory, SIZE);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_string_equal((char *)shared.memory + SIZE - 20, "from the peer");
  pwi_shared_close(&shared);
}

static void test_the_memory_of_another_process_can_be_mapped(void **state) {
  (void)state;
  struct owner owner = start_owner(HUGE);
  void *reading, *writing;
  assert_int_equal(pwi_shared_map(&owner.name, false, &reading), PAWL_OK);
  assert_int_equal(pwi_shared_map(&owner.name, true, &writing), PAWL_OK);
  assert_true(is_all(reading, HUGE, 'o'));
  memset(writing, 'w', HUGE);
  assert_true(is_all(reading, HUGE, 'w'));
  pwi_shared_unmap(writing, HUGE);
  pwi_shared_unmap(reading, HUGE);
  end_owner(&owner);
}

/* Neither the processor nor the kernel lets anybody write through it, and it cannot be made writable later. */
static void test_a_mapping_for_reading_cannot_be_written(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  void *memory;
  assert_int_equal(pwi_shared_map(&owner.name, false, &memory), PAWL_OK);
  int zeros = open("/dev/zero", O_RDONLY);
  assert_int_equal(read(zeros, memory, 1), -1);
  assert_int_equal(errno, EFAULT);
  assert_int_equal(mprotect(memory, SIZE, PROT_READ | PROT_WRITE), -1);
  assert_int_equal(errno, EACCES);
  assert_true(is_all(memory, SIZE, 'o'));
  close(zeros);
  pwi_shared_unmap(memory, SIZE);
  end_owner(&owner);
}

static void test_a_mapping_outlives_its_owner(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  void *memory;
  assert_int_equal(pwi_shared_map(&owner.name, true, &memory), PAWL_OK);
  end_owner(&owner);
  assert_true(is_all(memory, SIZE, 'o'));
  memset(memory, 'x', SIZE);
  pwi_shared_unmap(memory, SIZE);
}

static void test_the_memory_of_a_dead_process_is_not_found(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  kill(owner.process, SIGKILL);
  siginfo_t about;
  assert_int_equal(waitid(P_PID, (id_t)owner.process, &about, WEXITED | WNOWAIT), 0);
  assert_refused(&owner.name); /* a zombie still has its number, but no files */
  end_owner(&owner);
  assert_refused(&owner.name);
}

static void test_a_name_that_is_not_quite_right_is_refused(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  struct pwi_shared_name name;
  static const uint64_t sizes[] = {0, 1, SIZE - 1, SIZE + 1, 4096, UINT64_MAX, UINT64_C(1) << 63};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    name = owner.name;
    name.size = sizes[i];
    assert_refused(&name);
  }
  for (unsigned bit = 0; bit < 64; bit++) {
    name = owner.name;
    name.nonce ^= UINT64_C(1) << bit;
    assert_refused(&name);
  }
  static const int32_t files[] = {0, 1, 2, -1, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    name = owner.name;
    name.file = files[i];
    assert_refused(&name);
  }
  static const int32_t processes[] = {0, -1, 1, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
    name = owner.name;
    name.process = processes[i];
    assert_refused(&name);
  }
  end_owner(&owner);
}

/* A peer that could shrink the file could pull the pages from under us, and we would die of it. */
static void test_a_file_that_is_not_sealed_is_refused(void **state) {
  (void)state;
  struct pwi_shared_name name = {.process = (int32_t)getpid(), .nonce = UINT64_C(0x123456789abcdef0), .size = 4096};
  char text[64];
  void *memory;
  snprintf(text, sizeof text, "pawl-%016" PRIx64, name.nonce);
  name.file = memfd_create(text, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(name.file >= 0);
  assert_int_equal(ftruncate(name.file, 4096), 0);
  assert_refused(&name);
  assert_int_equal(fcntl(name.file, F_ADD_SEALS, F_SEAL_GROW), 0);
  assert_refused(&name);
  assert_int_equal(fcntl(name.file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  assert_int_equal(pwi_shared_map(&name, false, &memory), PAWL_OK);
  pwi_shared_unmap(memory, 4096);
  close(name.file);
}

static void test_the_size_is_sealed_for_everybody(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", owner.name.process, owner.name.file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  assert_true(file >= 0);
  static const off_t sizes[] = {0, SIZE - 1, SIZE + 1, 1 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(ftruncate(file, sizes[i]), -1);
    assert_int_equal(errno, EPERM);
  }
  close(file);
  end_owner(&owner);
}

static void test_nothing_is_left_open_by_a_refusal(void **state) {
  (void)state;
  struct owner owner = start_owner(SIZE);
  struct pwi_shared_name wrong = owner.name;
  wrong.nonce++;
  int before = dup(0);
  close(before);
  for (int i = 0; i < 100; i++) assert_refused(&wrong);
  void *memory;
  assert_int_equal(pwi_shared_map(&owner.name, false, &memory), PAWL_OK);
  pwi_shared_unmap(memory, SIZE);
  int after = dup(0);
  close(after);
  assert_int_equal(after, before);
  end_owner(&owner);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_new_memory_is_zero_and_of_its_size),
      cmocka_unit_test(test_sizes_that_nobody_has_are_no_memory),
      cmocka_unit_test(test_another_process_sees_what_is_written),
      cmocka_unit_test(test_the_memory_of_another_process_can_be_mapped),
      cmocka_unit_test(test_a_mapping_for_reading_cannot_be_written),
      cmocka_unit_test(test_a_mapping_outlives_its_owner),
      cmocka_unit_test(test_the_memory_of_a_dead_process_is_not_found),
      cmocka_unit_test(test_a_name_that_is_not_quite_right_is_refused),
      cmocka_unit_test(test_a_file_that_is_not_sealed_is_refused),
      cmocka_unit_test(test_the_size_is_sealed_for_everybody),
      cmocka_unit_test(test_nothing_is_left_open_by_a_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
