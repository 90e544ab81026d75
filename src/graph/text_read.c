/* Reads the text of a graph from a file. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "graph/text.h"

#define CHUNK ((size_t)1 << 16)

struct graph_text {
  char *bytes;
  size_t size, room;
};

static pawl_status read_all(int file, const char *path, struct graph_text *text, struct pwi_graph_why *why) {
  for (;;) {
    if (text->size > PWI_GRAPH_TEXT_MAX)
      return pwi_graph_refuse(why, PAWL_TOO_LARGE, "%s: larger than %zu bytes", path, PWI_GRAPH_TEXT_MAX);
    if (!PWI_GROW(text->bytes, text->room, text->size + CHUNK))
      return pwi_graph_refuse(why, PAWL_NO_MEMORY, "%s: out of memory", path);
    ssize_t got = read(file, text->bytes + text->size, text->room - text->size);
    if (got == 0) return PAWL_OK;
    if (got > 0)
      text->size += (size_t)got;
    else if (errno != EINTR)
      return pwi_graph_refuse(why, pwi_files_posix_status(errno), "cannot read %s: %s", path, strerror(errno));
  }
}

pawl_status pwi_graph_read(const char *path, struct pwi_graph_why *why, struct pwi_graph **graph_out) {
  struct graph_text text = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return pwi_graph_refuse(why, pwi_files_posix_status(errno), "cannot read %s: %s", path, strerror(errno));
  pawl_status status = read_all(file, path, &text, why);
  close(file);
  if (!status) status = pwi_graph_parse(path, text.bytes, text.size, why, graph_out);
  pwi_free(text.bytes);
  return status;
}
