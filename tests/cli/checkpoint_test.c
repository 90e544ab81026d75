/* `pawl checkpoint list`, `verify` and `export` on checkpoints that were made by hand. Takes the command from PAWL_COMMAND;
 * what was exported is read back by Python too, where it is here. */
#include "checkpoint/testing.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#define OUTPUT_MAX 65536

static char folder[] = "/tmp/pawl-checkpoint-XXXXXX";
static char output[OUTPUT_MAX];
static struct pwi_files *files;

/* Runs a line of shell in the folder and keeps what it printed, both kinds; its exit code. */
static int run(const char *command, const char *arguments) {
  char whole[4096];
  snprintf(whole, sizeof whole, "cd %s && { %s %s ; } 2>&1", folder, command, arguments);
  FILE *pipe = popen(whole, "r");
  assert_non_null(pipe);
  size_t size = fread(output, 1, sizeof output - 1, pipe);
  output[size] = '\0';
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int pawl(const char *arguments) { return run("\"$PAWL_COMMAND\"", arguments); }

static void said(const char *words) {
  if (!strstr(output, words)) fail_msg("'%s' is not in: %s", words, output);
}

static int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder) || pwi_files_posix_open(folder, &files) != PAWL_OK) return -1;
  example_full(files);
  example_more(files);
  char attempt[PWI_SAVE_FOLDER_SIZE];
  if (pwi_saved_begin(files, "attempt", SAVING_CLUSTER, 3, attempt)) return -1;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  pwi_files_posix_close(files);
  return run("rm -rf", folder);
}

static void test_checkpoints_are_listed(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint list ."), 0);
  said("full                           1  2023-11-14T22:13:21Z        4      2");
  said("more                           2  2023-11-14T22:13:22Z        4      2");
  said("ignored 1 unfinished checkpoint (in progress or abandoned)");
  assert_int_equal(pawl("checkpoint list . --json 2>/dev/null | tail -1"), 0);
  json_t *object = json_loads(output, JSON_REJECT_DUPLICATES, NULL);
  assert_string_equal(json_string_value(json_object_get(object, "base")), "full");
  assert_int_equal(json_integer_value(json_object_get(object, "vectors")), 4);
  json_decref(object);
  assert_int_equal(pawl("checkpoint list nowhere"), 1);
  said("not found");
}

static void test_vectors_of_a_checkpoint_are_listed(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint list more/"), 0);
  said("test/dense                       f32        2                   10 add      ordered   dense");
  said("test/mixed                       u64        1              64 bits assign   mixed     sparse");
  assert_int_equal(pawl("checkpoint list more --json | head -1"), 0);
  said("\"vector\":\"test/dense\"");
}

static void test_a_whole_checkpoint_is_said_to_be_whole(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint verify more"), 0);
  said("more is intact: 4 files");
  said("39 rows, including the 1 checkpoint it is based on");
  assert_int_equal(pawl("checkpoint verify \"$PWD/full\" --json"), 0);
  said("\"rows\":36");
  assert_int_equal(pawl("checkpoint verify attempt"), 1);
  said("checkpoint attempt does not exist");
  assert_int_equal(pawl("checkpoint verify nowhere/x"), 1);
}

static void test_a_damaged_checkpoint_is_not_used(void **state) {
  (void)state;
  assert_int_equal(run("cp -r full broken && truncate -s -1", "broken/node-2.pawl"), 0);
  assert_int_equal(pawl("checkpoint verify broken"), 1);
  said("the manifest in broken belongs to checkpoint full");
  assert_int_equal(run("mkdir copy && cp -r full more copy && truncate -s -1", "copy/full/node-2.pawl"), 0);
  assert_int_equal(pawl("checkpoint verify copy/more"), 1);
  said("full/node-2.pawl: ends too early");
  assert_int_equal(pawl("checkpoint export copy/more test/mixed copy/out.npy"), 1);
  said("full/node-2.pawl: ends too early");
  assert_int_equal(run("ls", "copy"), 0);
  assert_string_equal(output, "full\nmore\n");
}

/* A reader of both formats in a few lines, so that no library is needed. */
static const char reader[] = "import ast,json,struct,sys\n"
                             "def npy(name):\n"
                             "  b=open(name,'rb').read()\n"
                             "  assert b[:8]==b'\\x93NUMPY\\x01\\x00'\n"
                             "  n=struct.unpack('<H',b[8:10])[0]\n"
                             "  assert (10+n)%64==0 and b[9+n:10+n]==b'\\n'\n"
                             "  h=ast.literal_eval(b[10:10+n].decode('latin1'))\n"
                             "  assert sorted(h)==['descr','fortran_order','shape'] and h['fortran_order'] is False\n"
                             "  count=1\n"
                             "  for d in h['shape']: count*=d\n"
                             "  code={'<f4':'f','<f8':'d','<i4':'i','<i8':'q','<u8':'Q'}[h['descr']]\n"
                             "  return h['shape'],struct.unpack('<%d%s'%(count,code),b[10+n:])\n"
                             "def safetensors(name):\n"
                             "  b=open(name,'rb').read()\n"
                             "  n=struct.unpack('<Q',b[:8])[0]\n"
                             "  h=json.loads(b[8:8+n]); h.pop('__metadata__')\n"
                             "  at=0; out={}\n"
                             "  for k,t in sorted(h.items(),key=lambda e:e[1]['data_offsets']):\n"
                             "    begin,end=t['data_offsets']; assert begin==at; at=end\n"
                             "    code={'F32':'f','F64':'d','I32':'i','I64':'q','U64':'Q'}[t['dtype']]\n"
                             "    count=1\n"
                             "    for d in t['shape']: count*=d\n"
                             "    out[k]=t['shape'],struct.unpack('<%d%s'%(count,code),b[8+n+begin:8+n+end])\n"
                             "  assert at==len(b)-8-n\n"
                             "  return out\n";

/* True if Python is here; its statements must then hold. */
static void python_agrees(const char *statements) {
  if (run("command -v", "python3") != 0) {
    print_message("[  SKIPPED ] python3 is not here\n");
    return;
  }
  char path[128];
  snprintf(path, sizeof path, "%s/check.py", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s%s", reader, statements);
  fclose(file);
  if (run("python3", "check.py") != 0) fail_msg("%s", output);
}

static void test_a_dense_vector_is_exported(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint export more test/dense dense.npy"), 0);
  said("wrote test/dense to dense.npy");
  assert_int_equal(pawl("checkpoint export more test/dense dense.out --format safetensors"), 0);
  python_agrees("rows=(0,0,1,-1,2,-2,33,-33,4,-4,5,-5,6,-6,7,-7,8,-8,0,0)\n"
                "assert npy('dense.npy')==((10,2),rows)\n"
                "assert safetensors('dense.out')=={'test/dense':([10,2],rows)}\n");
}

static void test_a_sparse_vector_is_exported(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint export more test/sparse \"$PWD\"/s.npy --json"), 0);
  said("\"keys_file\":\"s.keys.npy\"");
  assert_int_equal(pawl("checkpoint export more test/mixed m.safetensors"), 0);
  python_agrees("keys=(5,6,7,2**63+12345)\n"
                "assert npy('s.keys.npy')==((4,),keys)\n"
                "assert npy('s.npy')[0]==(4,1)\n"
                "assert [v%2**64 for v in npy('s.npy')[1]]==[2*k%2**64 for k in keys]\n"
                "m=safetensors('m.safetensors'); keys=m['test/mixed.keys'][1]\n"
                "assert sorted(keys)==list(range(100,120))\n"
                "assert m['test/mixed.values']==([20,1],tuple(k*k for k in keys))\n");
}

static void test_what_cannot_be_exported_is_named(void **state) {
  (void)state;
  assert_int_equal(pawl("checkpoint export more test/none x.npy"), 1);
  said("vector test/none not found in more");
  assert_int_equal(pawl("checkpoint export more test/dense nowhere/x.npy"), 1);
  said("nowhere: not found");
}

int main(void) {
  if (!getenv("PAWL_COMMAND")) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_checkpoints_are_listed),
      cmocka_unit_test(test_vectors_of_a_checkpoint_are_listed),
      cmocka_unit_test(test_a_whole_checkpoint_is_said_to_be_whole),
      cmocka_unit_test(test_a_damaged_checkpoint_is_not_used),
      cmocka_unit_test(test_a_dense_vector_is_exported),
      cmocka_unit_test(test_a_sparse_vector_is_exported),
      cmocka_unit_test(test_what_cannot_be_exported_is_named),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
