"""Copying a model directory into tmpfs: verified, atomic, idempotent, and without torch.

`stage.stage` is the whole of it for one version; `attempt.Attempt` runs it in a process that can be given up, and
`follow.Follower` does that for each version that is ordered of a running pod. On the tmpfs, under one root:

    <64 hex digits>/            a staged version, named by its digest; complete once it holds `.manifest`
        .manifest               the text whose sha256 is the digest: `sha256sum .manifest` proves the name
        cosyvoice2.yaml, ...    the files
    incoming.partial/           a version on its way; removed by the next stager if this one dies
    revisions/<revision>.json   the pointer to the version of a revision, and
    revisions/<revision>.model.json  the configuration that it was staged with
    staged.json                 the pointer to what a container starts with whose own version is not staged
    orders/<revision>.<attempt>.json  how far the staging of an order is
    progress.json               how far a running stager is
    .lock                       held by the one stager at work

Whoever maps a version holds a shared lock on its directory (`locks.shared`).
It is removed only under the exclusive one.
"""
