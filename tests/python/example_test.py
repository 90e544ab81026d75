#!/usr/bin/python3
"""The example of docs/python.md finds what a solver in plain NumPy finds, and stands there word for word."""
# labels: nosan
import contextlib
import io
import os
import re
import runpy

import scene

import numpy as np

PATH = os.path.join(scene.PACKAGE, "examples", "algorithm1.py")


def solve(x, y, l1, rate):
    """The optimum by accelerated proximal gradient descent, in one process: its objective and its weights."""

    def objective(w):
        return np.logaddexp(0, -y * (x @ w)).sum() + l1 * np.abs(w).sum()

    w = ahead = np.zeros(x.shape[1])
    for t in range(1, 3001):
        step = ahead + rate * (x.T @ (y / (1 + np.exp(y * (x @ ahead)))))
        new = np.sign(step) * np.maximum(np.abs(step) - rate * l1, 0)
        ahead, w = new + (t - 1) / (t + 2) * (new - w), new
    return objective(w), w


class ExampleTest(scene.Test):
    def test_the_objective_falls_to_the_optimum(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            ran = runpy.run_path(PATH)
        best, weights = solve(ran["X"], ran["y"], ran["L1"], ran["RATE"])
        curve = ran["curve"]
        self.assertAlmostEqual(curve[0], ran["EXAMPLES"] * np.log(2), 3)
        self.assertTrue((np.diff(curve) < 1e-9 * curve[0]).all(), curve)
        self.assertGreaterEqual(curve[-1], best * (1 - 1e-9))
        self.assertLess(curve[-1], best * 1.001, "not within 0.1 %% of %.3f" % best)
        self.assertLess(np.abs(ran["w"] - weights).max(), 0.05)
        self.assertEqual(set(np.flatnonzero(weights)) - set(np.flatnonzero(ran["w"])), set())
        self.assertIn("iteration %d: objective %.3f" % (len(curve) - 1, curve[-1]), printed.getvalue())

    def test_the_page_shows_the_example_as_it_is(self):
        with open(PATH) as file, open(os.path.join(scene.SOURCE, "docs", "python.md")) as page:
            code = file.read().partition('"""')[2].partition('"""\n')[2]
            self.assertIn(code.strip(), page.read())

    def test_workers_that_average_find_the_optimum(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            ran = runpy.run_path(os.path.join(scene.PACKAGE, "examples", "reduce.py"))
        best, _ = solve(ran["X"], ran["y"], 0, 4 / np.linalg.norm(ran["X"], 2) ** 2)
        loss = np.logaddexp(0, -ran["y"] * (ran["X"] @ ran["w"])).sum()
        self.assertLess(loss, best * 1.01)
        self.assertEqual([report.iteration for _, report in ran["results"]], [ran["ITERATIONS"]] * ran["WORKERS"])
        self.assertIn("200 iterations of 4 workers, each with 2 neighbours", printed.getvalue())

    def test_it_is_about_thirty_lines_long(self):
        with open(PATH) as file:
            code = file.read().partition('"""')[2].partition('"""\n')[2]
        lines = [line for line in code.splitlines() if line.strip() and not re.match(r"\s*#", line)]
        self.assertLessEqual(len(lines), 35)


if __name__ == "__main__":
    scene.main()
