"""A job's steps, and what ends it early."""

from __future__ import annotations

import pytest

from cosyvoice_worker.channel import Beat, Synthesize
from cosyvoice_worker.engine.job import CancelledError, DeadlinePassedError, Job, Steps


def request(deadline: float | None = None) -> Synthesize:
    return Synthesize(id=4, text="Hello.", voice=None, stream=False, seed=1, deadline_seconds=deadline)


def test_a_job_without_a_deadline_goes_on():
    job = Job(request(), [].append)

    for _ in range(1000):
        job.step()


def test_a_cancelled_job_ends_at_its_next_step():
    job = Job(request(), [].append)
    job.step()
    job.cancel()

    with pytest.raises(CancelledError):
        job.step()


def test_a_job_whose_time_is_over_ends_at_its_next_step():
    job = Job(request(deadline=0.0), [].append)

    with pytest.raises(DeadlinePassedError, match="the request was not finished within 0 s"):
        job.step()


def test_every_step_counts_and_a_beat_is_sent_when_the_last_is_old_enough():
    times = iter([0.0, 0.125, 0.25, 0.375, 0.5, 3.5, 3.625])
    sent: list[Beat] = []
    steps = Steps(4, sent.append, lambda: next(times))

    for _ in range(6):
        steps()

    assert sent == [Beat(id=4, step=2), Beat(id=4, step=4), Beat(id=4, step=5)]
    assert (steps.count, steps.slowest) == (6, 3.0)
