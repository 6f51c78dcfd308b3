"""The commands behind the command line. Progress goes to standard error, results to standard output."""

from __future__ import annotations

import argparse
import sys
import time

from dev.cluster import archive, health, images, kubectl, registry, requirements, toolchain
from dev.cluster import build as building
from dev.cluster import down as taking_down
from dev.cluster import gpus as fake_gpus
from dev.cluster import up as bringing_up
from dev.cluster.errors import ClusterError
from dev.cluster.plan import Cluster


def build(options: argparse.Namespace) -> None:
    building.build_all(options.cache_dir, toolchain.find_go(options.cache_dir, say), say)


def up(options: argparse.Namespace) -> None:
    requirements.check_root()
    requirements.check(requirements.missing_packages(), install=options.install, say=say)
    with registry.lock(options.state_dir, options.name):
        cluster = registry.find(options.name, options.state_dir)
        ailment = health.ailment(cluster) if cluster else None
        if ailment:
            say(f"Cluster {options.name!r} is started anew: {ailment}.")
        if cluster is None or ailment:
            cluster = _start(options)
        elif cluster.node_count != options.nodes:
            raise ClusterError(
                f"cluster {options.name!r} is up with {cluster.node_count} nodes, {options.nodes} were asked for: "
                "take it down first"
            )
        else:
            say(f"Cluster {options.name!r} is up.")
        if options.gpus is not None:
            fake_gpus.set_gpus(cluster, options.gpus)
    _print_environment(cluster)


def down(options: argparse.Namespace) -> None:
    requirements.check_root()
    with registry.lock(options.state_dir, options.name):
        # What is left of a cluster is found by its name; addresses play no part, so that any slot will do.
        cluster = registry.find(options.name, options.state_dir) or Cluster(
            options.name, 0, 1, options.state_dir, options.cache_dir
        )
        taking_down.down(cluster)
        if options.purge:
            taking_down.forget_images(cluster)
    say(f"Cluster {options.name!r} is gone.")


def status(options: argparse.Namespace) -> None:
    cluster = _existing(options)
    print(f"state       {cluster.state}")
    print(f"logs        {cluster.logs}")
    print(f"audit log   {cluster.audit_log}")
    print(f"images      {cluster.nodes[0].image_store.parent}")
    print(f"kubectl     {kubectl.path(cluster)}")
    print(f"KUBECONFIG  {cluster.kubeconfig}")
    print(f"healthy     {'yes' if health.healthy(cluster) else 'no'}")
    print(kubectl.kubectl(cluster, "get", "nodes", "--output=wide"), end="")


def load(options: argparse.Namespace) -> None:
    cluster = _existing(options)
    for path in options.archives:
        reference, image_id = archive.inspect(path)
        imported = images.load(path.resolve(), reference, image_id, cluster)
        say(f"{reference}: {'imported' if imported else 'already there'} ({image_id})")


def gpus(options: argparse.Namespace) -> None:
    cluster = _existing(options)
    fake_gpus.set_gpus(cluster, options.count, tuple(options.nodes))


def env(options: argparse.Namespace) -> None:
    _print_environment(_existing(options))


def say(line: str) -> None:
    """Tell progress."""
    print(line, file=sys.stderr, flush=True)


def _start(options: argparse.Namespace) -> Cluster:
    began = time.monotonic()
    cluster = registry.plan(options.name, options.nodes, options.state_dir, options.cache_dir)
    say(f"Starting cluster {cluster.name!r} with {cluster.node_count} nodes; its logs are in {cluster.logs}")
    bringing_up.start(cluster, say)
    say(f"Cluster {cluster.name!r} is up after {time.monotonic() - began:.1f} s.")
    return cluster


def _existing(options: argparse.Namespace) -> Cluster:
    cluster = registry.find(options.name, options.state_dir)
    if cluster is None:
        raise ClusterError(f"there is no cluster {options.name!r}: bring it up with `python -m dev.cluster up`")
    return cluster


def _print_environment(cluster: Cluster) -> None:
    print(f"export KUBECONFIG={cluster.kubeconfig}")
    print(f'export PATH="{kubectl.path(cluster).parent}:$PATH"')
