/* `pawl train`: trains a model on this machine or on a cluster. cli/train/run.h describes a run. */
#include "cli/cli.h"
#include "cli/train/bpmf/options.h"
#include "cli/train/bpmf/run.h"
#include "cli/train/cnn_options.h"
#include "cli/train/lda_options.h"
#include "cli/train/methods.h"
#include "cli/train/metric/options.h"
#include "cli/train/metric/run.h"
#include "cli/train/multiclass/options.h"
#include "cli/train/multiclass/run.h"
#include "cli/train/sparse_coding/options.h"
#include "cli/train/sparse_coding/run.h"

static int run_logistic(const struct pwi_command *command, int argc, char **argv) {
  return pwi_train_linear_run(command, PWI_TRAIN_LOGISTIC, argc, argv);
}

static int run_svm(const struct pwi_command *command, int argc, char **argv) {
  return pwi_train_linear_run(command, PWI_TRAIN_SVM, argc, argv);
}

static int run_linear(const struct pwi_command *command, int argc, char **argv) {
  return pwi_train_linear_run(command, PWI_TRAIN_LINEAR, argc, argv);
}

static const struct pwi_command command_logistic = {
    .name = "train logistic",
    .arguments = "DATA...",
    .summary = "train a logistic regression (two classes)",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of log(1 + exp(-y (x.w + b)))  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "DATA are files or patterns, or - for standard input. Without --cluster and\n"
            "PAWL_ADDRESS, starts servers and workers on this machine. Ctrl-C stops\n"
            "training and saves the model (exit code 130); a second Ctrl-C ends at once.\n\n"
            "  pawl train logistic a9a.svm\n"
            "  pawl train logistic ads-*.svm.gz --l1 1 --valid test.svm -o ads.model\n"
            "  pawl train logistic a9a.svm --l1 10,1,0.1 -o path.model\n"
            "  pawl train logistic /shared/ads.cache --cluster node1:7295 --workers 0\n",
    .options = pwi_train_logistic_options,
    .run = run_logistic,
};

static const struct pwi_command command_svm = {
    .name = "train svm",
    .arguments = "DATA...",
    .summary = "train a support vector machine (two classes)",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of max(0, 1 - y (x.w + b))  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "or, with --loss squared-hinge, the square of each max. See 'pawl train\n"
            "logistic' for DATA, --cluster and Ctrl-C.\n\n"
            "  pawl train svm imdb.svm --binary --unit-rows\n"
            "  pawl train svm imdb.svm --loss squared-hinge --l1 1 --class-weight balanced\n",
    .options = pwi_train_svm_options,
    .run = run_svm,
};

static const struct pwi_command command_linear = {
    .name = "train linear",
    .arguments = "DATA...",
    .summary = "train a least squares regression",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of (y - x.w - b)^2 / 2  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "See 'pawl train logistic' for DATA, --cluster and Ctrl-C.\n\n"
            "  pawl train linear prices.csv --label price --l2 1\n",
    .options = pwi_train_linear_options,
    .run = run_linear,
};

static const struct pwi_command command_lda = {
    .name = "train lda",
    .arguments = "DATA...",
    .summary = "train a topic model (latent Dirichlet allocation)",
    .text = "Finds K topics, which are distributions over words, such that each document is\n"
            "a mixture of few topics. The model is the count of each word in each topic.\n"
            "Documents are in LDA-C's format, UCI's bag of words, or lines of words: files\n"
            "named .txt, or any with --format text. Ctrl-C stops training and saves the\n"
            "model (exit code 130). --resume continues a run that was interrupted or\n"
            "killed.\n\n"
            "  pawl train lda ap.dat --vocab vocab.txt --topics 50 -o ap.model\n"
            "  pawl train lda reviews.txt --topics 100 -o reviews.model\n"
            "  pawl train lda docword.nytimes.txt.gz --vocab vocab.nytimes.txt \\\n"
            "    --topics 1000 --held-out test.ldac --optimise -o nytimes.model\n"
            "  pawl lda topics nytimes.model\n",
    .options = pwi_train_lda_list,
    .run = pwi_train_lda_run,
};

static const struct pwi_command command_cnn = {
    .name = "train cnn",
    .arguments = "FILE...",
    .summary = "train a convolutional net on images",
    .text = "Trains a small net to classify images, by stochastic gradient descent with\n"
            "momentum, in this process or by several workers. FILE are images and labels in\n"
            "the idx format of MNIST, or in the binary version of CIFAR-10; they may be\n"
            "compressed. lenet is for MNIST, vgg for CIFAR-10. Workers share the parameters\n"
            "by servers, or without servers: they average with their neighbours in a graph,\n"
            "or send one another gradients, those of full layers as pairs of vectors.\n"
            "Ctrl-C stops training and saves the model (exit code 130).\n\n"
            "  pawl train cnn --model lenet train-images-idx3-ubyte.gz \\\n"
            "    train-labels-idx1-ubyte.gz --test t10k-images-idx3-ubyte.gz \\\n"
            "    --test t10k-labels-idx1-ubyte.gz -o mnist.model\n"
            "  pawl train cnn --model vgg 'data_batch_*.bin' --test test_batch.bin\n"
            "  pawl train cnn --model vgg 'data_batch_*.bin' --workers 4 --share reduce\n"
            "  pawl train cnn --model lenet *-idx?-ubyte.gz --workers 4 --share factors\n"
            "  pawl predict mnist.model t10k-*.gz\n",
    .options = pwi_train_cnn_list,
    .run = pwi_train_cnn_run,
};

static const struct pwi_command command_bpmf = {
    .name = "train bpmf",
    .arguments = "FILE...",
    .summary = "factorise ratings of items by users",
    .text = "Finds a row of numbers for each user and each item such that their products\n"
            "predict ratings: Bayesian probabilistic matrix factorisation by Gibbs\n"
            "sampling, in this process with several threads, or by several workers. FILE\n"
            "are ratings: csv as of MovieLens (user,item,rating,...), triples separated by\n"
            "tabs, blanks or ::, or Matrix Market; they may be compressed. The same seed\n"
            "gives the same model with any number of threads. Ctrl-C stops training and\n"
            "saves the model (exit code 130).\n\n"
            "  pawl train bpmf ratings.csv --test-split 0.1 -o movies.model\n"
            "  pawl train bpmf u1.base --test u1.test --rank 32 --iterations 500\n"
            "  pawl recommend movies.model 42 --titles movies.csv\n",
    .options = pwi_train_bpmf_list,
    .run = pwi_train_bpmf_run,
};

static const struct pwi_command command_multiclass = {
    .name = "train multiclass",
    .arguments = "DATA...",
    .summary = "train a logistic regression for several classes",
    .text = "Finds the matrix W, with a row of weights for each class, that minimises\n\n"
            "  sum over rows of -log p_y  +  l2/2 |W|^2,   p = softmax(W x)\n\n"
            "where y is the class of the row x, in this process. DATA are rows with labels,\n"
            "which may be words, or images and labels in the idx format of MNIST. With sdca\n"
            "the distance to the optimum is known, and a run that does not reach its\n"
            "tolerance exits with 3. Ctrl-C stops training and saves the model (exit code\n"
            "130).\n\n"
            "  pawl train multiclass news.svm --unit-rows --test test.svm\n"
            "  pawl train multiclass train-images-idx3-ubyte.gz \\\n"
            "    train-labels-idx1-ubyte.gz --method sgd --epochs 30 -o digits.model\n"
            "  pawl predict digits.model t10k-*.gz\n",
    .options = pwi_train_multiclass_list,
    .run = pwi_train_multiclass_run,
};

static const struct pwi_command command_sparse_coding = {
    .name = "train sparse-coding",
    .arguments = "DATA...",
    .summary = "learn a dictionary for sparse coding",
    .text = "Finds a dictionary B, whose columns are atoms of length 1 at most, and a\n"
            "sparse code a for each row x, that minimise\n\n"
            "  sum over rows of 1/2 |x - B a|^2 + lambda |a|_1\n\n"
            "by online dictionary learning in this process. DATA are images in the idx\n"
            "format of MNIST or, with --format cifar, in that of CIFAR-10, of which --patch\n"
            "takes patches; or rows, whose labels are not used. A run that does not reach\n"
            "its tolerance exits with 3. Ctrl-C stops training and saves the model (exit\n"
            "code 130).\n\n"
            "  pawl train sparse-coding --format cifar data_batch_1.bin --patch 8 \\\n"
            "    --center --atoms 192 -o patches.model\n"
            "  pawl train sparse-coding train-images-idx3-ubyte.gz -o digits.model\n"
            "  pawl model export patches.model -o atoms.ppm\n"
            "  pawl predict digits.model t10k-images-idx3-ubyte.gz -o codes.svm\n",
    .options = pwi_train_sparse_list,
    .run = pwi_train_sparse_run,
};

static const struct pwi_command command_metric = {
    .name = "train metric",
    .arguments = "DATA...",
    .summary = "learn a distance for nearest neighbours",
    .text = "Finds a matrix W such that rows with small |W (x - x')| have the same class.\n"
            "Each row is paired with its nearest rows of its class (S) and of other classes\n"
            "(D), and W lowers the mean of\n\n"
            "  max(0, |W v|^2 - (1 - margin)) in S,   weight * max(0, 1 - |W v|^2) in D\n\n"
            "where v is the difference of the rows, in this process. DATA are rows with\n"
            "labels, which may be words, or images and labels in the idx format of MNIST.\n"
            "Some rows are held out, and the W that classifies them best by their nearest\n"
            "neighbours becomes the model. A run whose model is no better than Euclidean\n"
            "distance exits with 3. Ctrl-C stops training and saves the best model so far\n"
            "(exit code 130).\n\n"
            "  pawl train metric letters.csv --rank 16 --test more.csv -o letters.model\n"
            "  pawl train metric train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz \\\n"
            "    -o digits.model\n"
            "  pawl predict digits.model t10k-*.gz -o classes.txt\n",
    .options = pwi_train_metric_list,
    .run = pwi_train_metric_run,
};

static const struct pwi_command *const children[] = {
    &command_logistic, &command_svm,  &command_linear,        &command_multiclass, &command_lda,
    &command_cnn,      &command_bpmf, &command_sparse_coding, &command_metric,     NULL};

const struct pwi_command pwi_command_train = {
    .name = "train",
    .summary = "train a model on data",
    .text = "Trains a linear model on labelled rows, or a topic model on documents, with\n"
            "several processes on this machine or on a cluster, or a convolutional net on\n"
            "images, or factorises ratings, or learns a dictionary or a metric, and writes\n"
            "the model to a file for 'pawl predict', 'pawl lda' or 'pawl recommend'.\n",
    .children = children,
};
