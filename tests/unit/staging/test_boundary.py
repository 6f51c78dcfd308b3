"""Where a model directory may lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cosyvoice_worker.outcome import Phase, Reason, WorkerError
from cosyvoice_worker.settings import parse_settings
from cosyvoice_worker.staging.boundary import boundary_of
from cosyvoice_worker.staging.stage import stage
from cosyvoice_worker.staging.task import Task
from tests.unit.staging.conftest import model_json


def test_where_no_claim_is_mounted_a_directory_is_its_own_boundary(tmp_path: Path) -> None:
    assert boundary_of(str(tmp_path), tmp_path / "source") == tmp_path
    assert boundary_of(str(tmp_path / "source" / "model"), tmp_path / "source") == tmp_path / "source"


def test_where_one_is_mounted_no_document_leads_past_it(model: Path, root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "another").mkdir()
    raw = json.dumps(model_json(model)).encode()
    task = Task(settings=parse_settings(raw, Phase.STAGE), document=raw, boundary=boundary_of(str(model), source))

    with pytest.raises(WorkerError) as raised:
        stage(task, root)

    assert raised.value.outcome.reason is Reason.ACCESS_DENIED
    assert str(raised.value).startswith(f"{model} leads to {model}, outside of the source {source}")
