/* A sketch: counts words, and finds the most frequent ones and the number of distinct ones, in 2 MB
 * however many there are.
 *
 *   build/examples/sketch
 *
 * The words are generated: word number i occurs about 100000 / i times. A real program would read them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

enum { WORDS = 20000, MOST = 100000 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "sketch: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

int main(void) {
  struct pawl_session *session;
  struct pawl_sketch *sketch;
  struct pawl_sketch_writer *writer;
  must(pawl_session_open(NULL, &session));
  must(pawl_sketch_ensure(session, "example/words", NULL, 10 * PAWL_SECOND, &sketch));

  /* A writer hashes, packs and pushes in the background. Any number of writers may add to one sketch, in
   * any number of processes; each belongs to one thread. */
  must(pawl_sketch_writer_open(sketch, NULL, &writer));
  for (int round = 0; round < MOST; round++)
    for (int i = 1; i <= WORDS && i <= MOST / (round + 1); i++) {
      char word[32];
      int length = snprintf(word, sizeof word, "word%d", i);
      must(pawl_sketch_add(writer, word, (size_t)length, 1));
    }

  /* After a flush everything is applied, on every replica, and visible to all readers. */
  must(pawl_sketch_flush(writer, 60 * PAWL_SECOND));
  must(pawl_sketch_writer_close(writer));

  struct pawl_sketch_key keys[] = {{.bytes = "word10", .size = 6}, {.bytes = "never", .size = 5}};
  struct pawl_sketch_count counts[2];
  must(pawl_sketch_query(sketch, keys, 2, NULL, 10 * PAWL_SECOND, counts));
  for (int i = 0; i < 2; i++)
    printf("%s: %lld, at most %.0f too many\n", (const char *)keys[i].bytes, (long long)counts[i].count,
           counts[i].error);

  struct pawl_sketch_entry top[3];
  size_t found;
  must(pawl_sketch_top(sketch, 3, NULL, 10 * PAWL_SECOND, top, &found));
  for (size_t i = 0; i < found; i++) printf("%zu. %s: %lld\n", i + 1, top[i].name, (long long)top[i].is.count);

  double different, error;
  must(pawl_sketch_distinct(sketch, NULL, 10 * PAWL_SECOND, &different, &error));
  printf("about %.0f different words, give or take %.0f\n", different, error);

  pawl_sketch_close(sketch);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
