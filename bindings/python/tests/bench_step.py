"""bench_step.py MODEL [STEPS]: median nanoseconds of one step_row, as one JSON object. Each call is timed alone; the
clock's own cost is measured the same way and told, not taken off."""
import sys
import time

import numpy as np

import exphil


def median_ns(call, steps):
    """Median time of one call."""
    took = np.empty(steps, np.int64)
    clock = time.perf_counter_ns
    for i in range(steps):
        start = clock()
        call()
        took[i] = clock() - start
    return int(np.sort(took)[steps // 2])


def clock_ns(steps):
    """Median time between two looks at the clock."""
    took = np.empty(steps, np.int64)
    clock = time.perf_counter_ns
    for i in range(steps):
        start = clock()
        took[i] = clock() - start
    return int(np.sort(took)[steps // 2])


def main(path, steps=100000):
    """Times a deterministic session, seed 1, on rows of zeros."""
    session = exphil.Session(exphil.Model.load(path), seed=1, deterministic=True)
    own = clock_ns(steps)
    told = median_ns(session.step_row, steps)
    print(f'{{"host":"python","median_ns":{told},"clock_ns":{own},"steps":{steps}}}')


if __name__ == "__main__":
    main(sys.argv[1], *(int(word) for word in sys.argv[2:3]))
