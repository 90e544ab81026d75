"""Algorithm 1 of the Parameter Server (OSDI'14): distributed subgradient descent, here for logistic regression with l1:

    minimise over w:  sum_i log(1 + exp(-y_i <x_i, w>)) + L1 |w|_1

Each worker has a part of the data. It pulls w, computes the gradient of its part and pushes it; the servers add the parts
up and take one step, with the penalty's part of it: w <- prox(w - RATE * sum of gradients)."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pawl

WORKERS, ITERATIONS, EXAMPLES, FEATURES, L1 = 2, 60, 2000, 100, 20.0
random = np.random.default_rng(1)
X = random.standard_normal((EXAMPLES, FEATURES))
w_true = random.standard_normal(FEATURES) * (random.random(FEATURES) < 0.1)
y = np.where(random.random(EXAMPLES) < 1 / (1 + np.exp(-X @ w_true)), 1.0, -1.0)
RATE = 4 / np.linalg.norm(X, 2) ** 2  # one over the highest curvature


def work(address):
    with pawl.Session(address) as session:
        w = session.ensure("demo/w", "float64", FEATURES, rule=f"prox_l1 rate={RATE} l1={L1}")
        objective = session.ensure("demo/objective", "float64", ITERATIONS)
        workers = session.group("demo/workers", WORKERS)
        workers.barrier()  # all are here, so that ranks stay
        x_part, y_part = X[workers.rank :: WORKERS], y[workers.rank :: WORKERS]
        for t in range(ITERATIONS):
            now = w.pull()
            margin = y_part * (x_part @ now)
            mine = np.logaddexp(0, -margin).sum() + L1 * np.abs(now).sum() / WORKERS
            objective.push([mine], keys=[t], wait=False)
            workers.push(w, -x_part.T @ (y_part / (1 + np.exp(margin))))  # finishes when all parts are in
            workers.clock()


with pawl.Session(servers=2) as session:  # a cluster on this machine; with PAWL_ADDRESS set, that one
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, [session.address] * WORKERS))
    curve = session.open("demo/objective").pull()
    w = session.open("demo/w").pull()
for t in sorted({*range(0, ITERATIONS, 10), ITERATIONS - 1}):
    print(f"iteration {t:2}: objective {curve[t]:.3f}")
print(f"{np.count_nonzero(w)} of {FEATURES} weights are not zero; {np.count_nonzero(w_true)} were in the data")
