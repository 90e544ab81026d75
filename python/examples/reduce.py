"""Logistic regression without servers: workers that average their weights with one another (ASAP). docs/python.md shows it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pawl

WORKERS, ITERATIONS, EXAMPLES, FEATURES, RATE = 4, 200, 2000, 20, 2.0
random = np.random.default_rng(1)
X = random.standard_normal((EXAMPLES, FEATURES))
w_true = random.standard_normal(FEATURES)
y = np.where(random.random(EXAMPLES) < 1 / (1 + np.exp(-X @ w_true)), 1.0, -1.0)


def work(address):
    with pawl.Session(address, peers_only=True) as session, session.peers("demo/workers", WORKERS) as peers:
        peers.wait()  # all are here
        part = slice(peers.rank, None, WORKERS)
        w = np.zeros(FEATURES)
        with peers.reduce("model", w, graph="root") as reduce:
            for _ in range(ITERATIONS):
                margin = y[part] * (X[part] @ w)
                w += RATE / EXAMPLES * WORKERS * (X[part].T @ (y[part] / (1 + np.exp(margin))))
                report = reduce.step()  # w is now the mean of this worker's weights and its neighbours'
        return w, report


with pawl.Session(peers_only=True) as session:  # a manager on this machine, and no servers
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(work, [session.address] * WORKERS))
w = np.mean([w for w, _ in results], axis=0)
print(f"{results[0][1].iteration} iterations of {WORKERS} workers, each with {results[0][1].expected} neighbours")
print(f"loss {np.logaddexp(0, -y * (X @ w)).mean():.4f}, {np.logaddexp(0, -y * (X @ w_true)).mean():.4f} with the true weights")
print(f"workers differ by at most {max(np.abs(w - other).max() for other, _ in results):.1e}")
