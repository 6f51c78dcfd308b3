"""Copying a model directory into tmpfs: verified, atomic, idempotent, and without torch.

`stage.stage` is the whole of it. On the tmpfs, under one root:

    <64 hex digits>/            a staged version, named by its digest; complete once it holds `.manifest`
        .manifest               the text whose sha256 is the digest: `sha256sum .manifest` proves the name
        cosyvoice2.yaml, ...    the files
    incoming.partial/           a version on its way; removed by the next stager if this one dies
    staged.json                 the pointer to the version this pod runs
    progress.json               how far a running stager is
    .lock                       held by the one stager at work

Whoever maps a version holds a shared lock on its directory (`locks.shared`).
It is removed only under the exclusive one.
"""
