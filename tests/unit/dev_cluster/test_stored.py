"""What a node's image store holds."""

from __future__ import annotations

from dev.cluster.stored import StoredImage, outdated, parse

LISTING = """\
REF                     TYPE    DIGEST     SIZE    PLATFORMS   LABELS
localhost/worker:0.1-a1 x       sha256:00  8 MiB   amd64 cosyvoice.dev/image-id=sha256:a1,cosyvoice.dev/imported=100
localhost/tool:1        app/x   sha256:01  1.0 MiB linux/amd64 -
sha256:a1               app/x   sha256:00  8 MiB   amd64 io.cri-containerd.image=managed
"""


def test_images_are_read_with_their_labels() -> None:
    assert parse(LISTING) == [
        StoredImage("localhost/worker:0.1-a1", "sha256:a1", 100),
        StoredImage("localhost/tool:1", "", 0),
        StoredImage("sha256:a1", "", 0),
    ]


def test_an_empty_store_holds_nothing() -> None:
    assert parse("REF TYPE DIGEST SIZE PLATFORMS LABELS\n") == []


def test_the_newest_builds_of_each_repository_are_kept() -> None:
    worker = [StoredImage(f"localhost/worker:{tag}", f"sha256:{tag}", tag) for tag in (3, 1, 4, 2)]
    operator = [StoredImage("localhost/operator:1", "sha256:9", 9)]

    assert [one.name for one in outdated([*worker, *operator])] == ["localhost/worker:2", "localhost/worker:1"]


def test_images_that_came_in_by_other_ways_are_left_alone() -> None:
    pulled = [StoredImage(f"docker.io/library/x:{tag}", "", 0) for tag in range(9)]

    assert outdated(pulled) == []


def test_the_port_of_a_registry_is_no_tag() -> None:
    assert StoredImage("localhost:5000/worker:1", "", 0).repository == "localhost:5000/worker"
