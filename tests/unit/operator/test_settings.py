"""The operator's configuration: flags over environment over defaults, every error at once."""

from __future__ import annotations

import argparse
import logging

import pytest

from cosyvoice_operator import settings
from cosyvoice_operator.errors import InvalidSettingsError
from cosyvoice_operator.settings import Settings


def load(*flags: str, **environment: str) -> Settings:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    return settings.load(parser.parse_args(flags), environment, process="host-1")


def test_everything_has_a_default() -> None:
    loaded = load()

    assert loaded.policy.worker_image.startswith("cosyvoice-worker:")
    assert (loaded.policy.device, loaded.policy.stage_memory) == ("cuda", "5Gi")
    assert (loaded.policy.worker_memory_request, loaded.policy.worker_memory_limit) == ("5Gi", "8Gi")
    assert (loaded.policy.worker_cpu_request, loaded.policy.allowed_host_paths) == ("500m", ())
    assert (loaded.namespaces, loaded.lease_namespace, loaded.identity) == ((), None, "host-1")
    assert (loaded.resync_seconds, loaded.health_port, loaded.metrics_port) == (300.0, 8080, 9090)
    assert loaded.log_level == logging.INFO


def test_a_flag_outranks_the_environment_and_that_the_default() -> None:
    loaded = load("--device", "cpu", COSYVOICE_DEVICE="cuda", COSYVOICE_STAGE_MEMORY="1024Mi")

    assert (loaded.policy.device, loaded.policy.stage_memory) == ("cpu", "1Gi")


def test_in_a_pod_the_lease_is_in_its_namespace_and_carries_its_name() -> None:
    loaded = load(POD_NAMESPACE="cosyvoice-system", POD_NAME="operator-0")

    assert (loaded.lease_namespace, loaded.identity) == ("cosyvoice-system", "operator-0")


def test_lists_are_separated_by_commas() -> None:
    loaded = load("--namespaces", "a, b,", "--allow-host-path", "/srv/models,/data")

    assert loaded.namespaces == ("a", "b")
    assert loaded.policy.allowed_host_paths == ("/srv/models", "/data")


def test_every_error_is_told_at_once_with_where_it_came_from() -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        load(
            "--health-port",
            "80a",
            "--resync-seconds",
            "0",
            COSYVOICE_DEVICE="tpu",
            COSYVOICE_STAGE_MEMORY="-1Gi",
            COSYVOICE_WORKER_IMAGE=" ",
            COSYVOICE_ALLOW_HOST_PATH="srv",
            COSYVOICE_WORKERS="0",
        )

    assert set(refused.value.problems) == {
        "--health-port: expected a port from 1 to 65535, not '80a'",
        "--resync-seconds: expected seconds from 1 to 86400, not '0'",
        "COSYVOICE_DEVICE: expected one of cuda, cpu, not 'tpu'",
        "COSYVOICE_STAGE_MEMORY: expected a positive quantity such as 500m or 5Gi, not '-1Gi'",
        "COSYVOICE_WORKER_IMAGE: expected a text that is not empty, not ' '",
        "COSYVOICE_ALLOW_HOST_PATH: expected absolute directories without '..', separated by commas, not 'srv'",
        "COSYVOICE_WORKERS: expected a number from 1 to 64, not '0'",
    }


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (
            ("--worker-memory-request", "9Gi"),
            "--worker-memory-request 9Gi is over --worker-memory-limit 8Gi: no pod can be made of that",
        ),
        (("--health-port", "9090"), "--health-port and --metrics-port are both 9090"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(flags: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        load(*flags)

    assert refused.value.problems == (problem,)


def test_every_setting_is_in_the_help_with_its_variable() -> None:
    parser = argparse.ArgumentParser(prog="cosyvoice-operator run")
    settings.add_arguments(parser)

    text = " ".join(parser.format_help().split())

    assert "--stage-memory VALUE" in text
    assert "[COSYVOICE_STAGE_MEMORY, default 5Gi]" in text
