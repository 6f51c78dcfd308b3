"""Command lines of the control plane."""

from __future__ import annotations

from pathlib import Path

from dev.cluster import addons, control_plane
from dev.cluster.plan import Cluster

CLUSTER = Cluster("default", 3, 2, Path("/var/lib/x"), Path("/root/.cache/x"))


def test_the_api_server_writes_every_request_to_the_audit_log() -> None:
    assert f"--audit-log-path={CLUSTER.audit_log}" in control_plane.api_server(CLUSTER)
    assert control_plane.AUDIT_POLICY["rules"] == [{"level": "Metadata"}]


def test_no_default_admission_plugin_is_switched_off() -> None:
    assert not any(word.startswith("--disable-admission-plugins") for word in control_plane.api_server(CLUSTER))


def test_services_get_addresses_of_the_clusters_slot() -> None:
    assert "--service-cluster-ip-range=10.96.3.0/24" in control_plane.api_server(CLUSTER)


def test_the_dns_service_has_the_address_that_kubelets_give_to_pods() -> None:
    services = [one for one in addons.objects(CLUSTER) if one["kind"] == "Service"]

    assert [service["spec"]["clusterIP"] for service in services] == [CLUSTER.dns_address]
