/* Silent loss: the network between two machines is cut, and no close is received.
 *
 * There are two processes, each in its own network namespace, connected by a pair of virtual Ethernet
 * devices. Namespaces and devices have no names outside and end with the processes. Skipped without root or
 * iproute2. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node.h"

#define HERE "10.213.77.1" /* inside the namespaces only */
#define THERE "10.213.77.2"
#define PORT "7777"
#define GOAL_MS 500

/* A side is a process that executes commands of one letter each and answers with a line. */
struct side {
  pid_t process;
  int orders, answers;
};

/* Ways to cut the network. */
enum cut { CUT_DOWN, CUT_TO_HOST, CUT_TO_GUEST, CUTS };
static const char *const cut_names[] = {"device down", "lost towards the host", "lost towards the guest"};

static void say(int answers, const char *text) {
  kit_must(write(answers, text, strlen(text)) == (ssize_t)strlen(text), "answer");
}

static bool set_up_device(bool is_host) {
  return kit_run(true, "ip addr add %s/24 dev cable && ip link set cable up", is_host ? HERE : THERE);
}

static struct node *start(bool is_host, const char *key, struct pwi_keyring **keys_out) {
  struct node_plan plan;
  *keys_out = kit_keyring(key, NULL, NULL);
  node_plan_init(&plan, is_host ? "host" : "guest");
  plan.config.keys = *keys_out;
  if (is_host)
    plan.listen = "tcp://" HERE ":" PORT;
  else
    plan.connect = "tcp://" HERE ":" PORT;
  return node_open(&plan);
}

/* Packets for the peer go to an unknown hardware address: they are lost silently. */
static bool lose_what_we_send(bool is_host) {
  return kit_run(true, "ip neigh replace %s lladdr 02:00:00:00:00:99 dev cable nud permanent", is_host ? THERE : HERE);
}

static void report_down(struct node *node, int answers) {
  char line[64];
  bool is_down = node_wait_downs(node, 1);
  snprintf(line, sizeof line, "%s %lld\n", is_down ? pawl_status_name(node_last_why(node)) : "HANGS",
           (long long)kit_now());
  say(answers, line);
}

static void say_whether(int answers, bool ok) { say(answers, ok ? "ok\n" : "failed\n"); }

static void live(bool is_host, const char *key, int orders, int answers) {
  struct node *node = NULL;
  struct pwi_keyring *keys = NULL;
  char control;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  kit_log_begin();
  if (unshare(CLONE_NEWNET) != 0) _exit(77);
  say(answers, "namespace\n");
  while (read(orders, &control, 1) == 1 && control != 'q') {
    if (control == 'd') say_whether(answers, set_up_device(is_host));
    if (control == 'n') node = start(is_host, key, &keys);
    if (control == 'n') say_whether(answers, true);
    if (control == 'u') say_whether(answers, node_wait_ups(node, 1));
    if (control == 'p') say_whether(answers, node_wait_pongs(node, 5));
    if (control == 'c') say_whether(answers, kit_run(true, "ip link set cable down"));
    if (control == 'l') say_whether(answers, lose_what_we_send(is_host));
    if (control == 'w') report_down(node, answers);
  }
  node_close(node);
  pwi_keyring_destroy(keys);
  exit(0);
}

static void start_side(struct side *side, bool is_host, const char *key) {
  int orders[2], answers[2];
  kit_must(pipe2(orders, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0, "make pipes");
  side->process = fork();
  kit_must(side->process >= 0, "fork");
  if (side->process == 0) {
    close(orders[1]);
    close(answers[0]);
    live(is_host, key, orders[0], answers[1]);
  }
  close(orders[0]);
  close(answers[1]);
  side->orders = orders[1];
  side->answers = answers[0];
}

static void end_side(struct side *side) {
  if (write(side->orders, "q", 1) != 1) kill(side->process, SIGKILL);
  close(side->orders);
  close(side->answers);
  waitpid(side->process, NULL, 0);
}

static bool hear(struct side *side, char line[64]) {
  size_t size = 0;
  while (size < 63 && read(side->answers, line + size, 1) == 1)
    if (line[size++] == '\n') {
      line[size - 1] = '\0';
      return true;
    }
  return false;
}

static void order(struct side *side, const char *control) {
  kit_must(write(side->orders, control, 1) == 1, "give an order");
}

static bool ask(struct side *side, const char *control) {
  char line[64];
  order(side, control);
  return hear(side, line) && strcmp(line, "ok") == 0;
}

/* A side that still receives may be informed by the other side's close. */
static bool judge(struct side *side, const char *who, enum cut cut, bool is_deaf, long long when) {
  char line[64], status[48] = "";
  long long at = 0;
  if (!hear(side, line) || sscanf(line, "%47s %lld", status, &at) != 2) return false;
  printf("silence, %s: the %s says %s after %.0f ms (goal %d ms)\n", cut_names[cut], who, status,
         (double)(at - when) / 1e6, GOAL_MS);
  return strcmp(status, "LINK_SILENT") == 0 || (!is_deaf && strcmp(status, "LINK_RESET") == 0);
}

static bool run_cut(struct side *host, struct side *guest, enum cut cut) {
  kit_must(ask(host, "d") && ask(guest, "d"), "set up the devices");
  kit_must(ask(host, "n") && ask(guest, "n"), "start the nodes");
  kit_must(ask(host, "u") && ask(guest, "p"), "link the nodes");
  struct side *cutter = cut == CUT_TO_HOST ? guest : host;
  long long when = kit_now();
  kit_must(ask(cutter, cut == CUT_DOWN ? "c" : "l"), "cut the cable");
  order(host, "w");
  order(guest, "w");
  bool host_is_right = judge(host, "host", cut, cut != CUT_TO_GUEST, when);
  bool guest_is_right = judge(guest, "guest", cut, cut != CUT_TO_HOST, when);
  return host_is_right && guest_is_right;
}

/* Returns 0, 1, or 77 if it cannot be tried here. */
static int try_cut(enum cut cut) {
  char key[PWI_KEY_TEXT_MAX], line[64];
  struct side host, guest;
  int result = 77;
  kit_new_key(key);
  start_side(&host, true, key);
  start_side(&guest, false, key);
  if (hear(&host, line) && hear(&guest, line) &&
      kit_run(false, "ip link add cable netns %d type veth peer name cable netns %d", (int)host.process,
              (int)guest.process))
    result = run_cut(&host, &guest, cut) ? 0 : 1;
  end_side(&host);
  end_side(&guest);
  return result;
}

int main(void) {
  int result = 0;
  if (geteuid() != 0 || !kit_run(false, "ip -V")) {
    printf("skipped: needs root and iproute2\n");
    return 77;
  }
  signal(SIGPIPE, SIG_IGN);
  for (enum cut cut = CUT_DOWN; cut < CUTS; cut++) {
    fflush(stdout);
    int outcome = try_cut(cut);
    if (outcome == 77) {
      printf("skipped: no network namespaces or no veth devices here\n");
      return 77;
    }
    if (outcome != 0) result = 1;
  }
  return result;
}
