"""The set of `bench sim` in SimSo, as a rival: prints its processor time per job, in nanoseconds.

One sample stands on each line.

Arguments: tasks, period, wcet and phase step (microseconds), jobs per sample, samples.
"""

import contextlib
import io
import sys
import time

from simso.configuration import Configuration
from simso.core import Model

PER_MS = 1_000_000


def model(tasks, period, wcet, step, jobs):
    """The set as SimSo knows it, for as long as it has so many jobs."""
    configuration = Configuration()
    configuration.cycles_per_ms = PER_MS
    configuration.duration = jobs // tasks * period * PER_MS // 1000
    for index in range(tasks):
        configuration.add_task(
            name=f"task{index}",
            identifier=index,
            period=period / 1000,
            activation_date=index * step / 1000,
            wcet=wcet / 1000,
            deadline=period / 1000,
        )
    configuration.add_processor(name="CPU", identifier=1)
    configuration.scheduler_info.clas = "simso.schedulers.RM"
    configuration.check_all()
    return Model(configuration)


def main():
    """Runs the samples; SimSo's own output goes nowhere."""
    tasks, period, wcet, step, jobs, samples = map(int, sys.argv[1:])
    for _ in range(samples):
        simulation = model(tasks, period, wcet, step, jobs)
        start = time.process_time_ns()
        with contextlib.redirect_stdout(io.StringIO()):
            simulation.run_model()
        took = time.process_time_ns() - start
        done = sum(len(task.jobs) for task in simulation.results.tasks.values())
        print(took / done)


main()
