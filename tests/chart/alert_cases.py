"""What each alert makes of series, in promtool's notation: `0+2x40` is 0, 2, 4 … 80, `_` none. One every 15 s."""

from __future__ import annotations

from dataclasses import dataclass

Labels = dict[str, str]

OPERATOR = "cosyvoice_operator_"
MODEL = 'model_namespace="speech",model="narrator"'
WORKER = 'namespace="speech",model="narrator",pod="narrator-1"'
# As the alerts tell them.
THE_MODEL = {"model_namespace": "speech", "model": "narrator"}
SERVED = {"namespace": "speech", "model": "narrator"}
THE_POD = SERVED | {"pod": "narrator-1"}


@dataclass(frozen=True)
class Case:
    """After `at`, these series make `alert` fire with these labels; without labels they do not."""

    alert: str
    name: str
    at: str
    series: Labels
    fires: Labels | None = None


CASES = [
    Case("CosyVoiceOperatorDown", "nothing is scraped", "6m", {}, {}),
    Case("CosyVoiceOperatorDown", "it is there", "6m", {f"{OPERATOR}reconcile_seconds_count": "1x40"}),
    Case(
        "CosyVoiceOperatorNotReconciling",
        "no pass, though there is a model",
        "36m",
        {f"{OPERATOR}reconcile_seconds_count": "5x160", f'{OPERATOR}models{{reason="Ready"}}': "1x160"},
        {},
    ),
    Case(
        "CosyVoiceOperatorNotReconciling",
        "a pass now and then",
        "36m",
        {f"{OPERATOR}reconcile_seconds_count": "5x60 6x100", f'{OPERATOR}models{{reason="Ready"}}': "1x160"},
    ),
    Case(
        "CosyVoiceOperatorNotReconciling",
        "no model",
        "36m",
        {f"{OPERATOR}reconcile_seconds_count": "5x160", f'{OPERATOR}models{{reason="Ready"}}': "0x160"},
    ),
    Case(
        "CosyVoiceReconcileErrors",
        "every second pass fails",
        "25m",
        {
            f'{OPERATOR}reconcile_errors_total{{error="ClusterError"}}': "0+1x120",
            f"{OPERATOR}reconcile_seconds_count": "0+2x120",
        },
        {},
    ),
    Case(
        "CosyVoiceReconcileErrors",
        "one of ten fails",
        "25m",
        {
            f'{OPERATOR}reconcile_errors_total{{error="ConflictError"}}': "0+1x120",
            f"{OPERATOR}reconcile_seconds_count": "0+10x120",
        },
    ),
    Case(
        "CosyVoiceOperatorForbidden",
        "it may not patch",
        "10m",
        {f'{OPERATOR}api_requests_total{{verb="patch",kind="Deployment",code="403"}}': "0+1x60"},
        {"verb": "patch", "kind": "Deployment"},
    ),
    Case(
        "CosyVoiceOperatorForbidden",
        "it may",
        "10m",
        {f'{OPERATOR}api_requests_total{{verb="patch",kind="Deployment",code="200"}}': "0+1x60"},
    ),
    Case(
        "CosyVoiceApiServerUnreachable",
        "no answers and server errors",
        "12m",
        {
            f'{OPERATOR}api_requests_total{{code="0"}}': "0+1x60",
            f'{OPERATOR}api_requests_total{{code="503"}}': "0+1x60",
            f'{OPERATOR}api_requests_total{{code="200"}}': "0+1x60",
        },
        {},
    ),
    Case(
        "CosyVoiceApiServerUnreachable",
        "most come through",
        "12m",
        {
            f'{OPERATOR}api_requests_total{{code="0"}}': "0+1x60",
            f'{OPERATOR}api_requests_total{{code="409"}}': "0+2x60",
        },
    ),
    Case(
        "CosyVoiceModelInTrouble",
        "degraded",
        "6m",
        {f'{OPERATOR}model_reason{{{MODEL},reason="Degraded"}}': "1x40"},
        THE_MODEL | {"reason": "Degraded"},
    ),
    Case("CosyVoiceModelInTrouble", "ready", "6m", {f'{OPERATOR}model_reason{{{MODEL},reason="Ready"}}': "1x40"}),
    Case(
        "CosyVoiceModelInTrouble",
        "it went by",
        "6m",
        {
            f'{OPERATOR}model_reason{{{MODEL},reason="RollingBack"}}': "1x8 stale",
            f'{OPERATOR}model_reason{{{MODEL},reason="Ready"}}': "_x8 1x40",
        },
    ),
    Case(
        "CosyVoiceRolledBack",
        "for the first time",
        "10m",
        {f'{OPERATOR}rollbacks_total{{{MODEL},reason="ShapeMismatch"}}': "_x20 1x40"},
        THE_MODEL | {"reason": "ShapeMismatch"},
    ),
    Case(
        "CosyVoiceRolledBack",
        "once more",
        "90m",
        {f'{OPERATOR}rollbacks_total{{{MODEL},reason="ShapeMismatch"}}': "1x300 2x100"},
        THE_MODEL | {"reason": "ShapeMismatch"},
    ),
    Case(
        "CosyVoiceRolledBack",
        "long ago",
        "120m",
        {f'{OPERATOR}rollbacks_total{{{MODEL},reason="ShapeMismatch"}}': "1x500"},
    ),
    Case(
        "CosyVoiceRolloutSlow",
        "half an hour, in two phases",
        "36m",
        {
            f'{OPERATOR}model_reason{{{MODEL},reason="Staging"}}': "1x80 stale",
            f'{OPERATOR}model_reason{{{MODEL},reason="Loading"}}': "_x80 1x90",
        },
        THE_MODEL,
    ),
    Case(
        "CosyVoiceRolloutSlow",
        "it arrived",
        "36m",
        {
            f'{OPERATOR}model_reason{{{MODEL},reason="Staging"}}': "1x80 stale",
            f'{OPERATOR}model_reason{{{MODEL},reason="Ready"}}': "_x80 1x90",
        },
    ),
    Case(
        "CosyVoiceLoadSlow",
        "over a minute",
        "5m",
        {
            f'cosyvoice_load_duration_seconds_count{{{WORKER},phase="total"}}': "0x6 1x20",
            f'cosyvoice_load_duration_seconds_bucket{{{WORKER},phase="total",le="60.0"}}': "0x30",
        },
        SERVED,
    ),
    Case(
        "CosyVoiceLoadSlow",
        "within a minute",
        "5m",
        {
            f'cosyvoice_load_duration_seconds_count{{{WORKER},phase="total"}}': "0x2 1x20",
            f'cosyvoice_load_duration_seconds_bucket{{{WORKER},phase="total",le="60.0"}}': "0x2 1x20",
        },
    ),
    Case(
        "CosyVoiceErrorRatio",
        "one of ten",
        "9m",
        {
            f'cosyvoice_requests_total{{{WORKER},outcome="ok"}}': "0+9x60",
            f'cosyvoice_requests_total{{{WORKER},outcome="engine-died"}}': "0+1x60",
        },
        SERVED,
    ),
    Case(
        "CosyVoiceErrorRatio",
        "one of a hundred",
        "9m",
        {
            f'cosyvoice_requests_total{{{WORKER},outcome="ok"}}': "0+99x60",
            f'cosyvoice_requests_total{{{WORKER},outcome="engine-died"}}': "0+1x60",
        },
    ),
    Case(
        "CosyVoiceErrorRatio",
        "clients that ask for nonsense and leave",
        "9m",
        {
            f'cosyvoice_requests_total{{{WORKER},outcome="ok"}}': "0+1x60",
            f'cosyvoice_requests_total{{{WORKER},outcome="text-empty"}}': "0+5x60",
            f'cosyvoice_requests_total{{{WORKER},outcome="client-gone"}}': "0+5x60",
        },
    ),
    Case(
        "CosyVoiceErrorRatio",
        "nobody asks",
        "9m",
        {
            f'cosyvoice_requests_total{{{WORKER},outcome="ok"}}': "7x60",
            f'cosyvoice_requests_total{{{WORKER},outcome="engine-died"}}': "0x60",
        },
    ),
    Case(
        "CosyVoiceQueueSaturated",
        "nearly full for minutes",
        "3m",
        {f"cosyvoice_queue_depth{{{WORKER}}}": "15x20", f"cosyvoice_queue_limit{{{WORKER}}}": "16x20"},
        THE_POD,
    ),
    Case(
        "CosyVoiceQueueSaturated",
        "a burst",
        "3m",
        {f"cosyvoice_queue_depth{{{WORKER}}}": "16x4 3x20", f"cosyvoice_queue_limit{{{WORKER}}}": "16x24"},
    ),
    Case(
        "CosyVoiceMemoryNearLimit",
        "hardly any left",
        "6m",
        {
            f"cosyvoice_memory_working_set_bytes{{{WORKER}}}": "95x40",
            f"cosyvoice_memory_max_bytes{{{WORKER}}}": "100x40",
        },
        THE_POD,
    ),
    Case(
        "CosyVoiceMemoryNearLimit",
        "page cache up to the limit",
        "6m",
        {
            f"cosyvoice_memory_current_bytes{{{WORKER}}}": "100x40",
            f"cosyvoice_memory_working_set_bytes{{{WORKER}}}": "60x40",
            f"cosyvoice_memory_max_bytes{{{WORKER}}}": "100x40",
        },
    ),
    Case("CosyVoiceMemoryNearLimit", "no limit", "6m", {f"cosyvoice_memory_working_set_bytes{{{WORKER}}}": "95x40"}),
    Case(
        "CosyVoiceNodeDiskBusy",
        "90 % for three minutes",
        "3m",
        {'node_disk_io_time_seconds_total{instance="node1",device="sda"}': "0+13.5x20"},
        {"instance": "node1", "device": "sda"},
    ),
    Case(
        "CosyVoiceNodeDiskBusy",
        "half of the time",
        "3m",
        {'node_disk_io_time_seconds_total{instance="node1",device="sda"}': "0+7.5x20"},
    ),
    Case(
        "CosyVoiceNodeDiskBusy",
        "for half a minute",
        "3m",
        {'node_disk_io_time_seconds_total{instance="node1",device="sda"}': "0x6 0+15x2 30x20"},
    ),
]
