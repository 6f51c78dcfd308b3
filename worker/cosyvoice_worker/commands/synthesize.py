"""`cosyvoice-worker synthesize`: speak one text into a WAV file, without a server.

The same text, voice and seed give the same speech tokens as a server does with the same model.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosyvoice_worker.outcome import Phase, Reason, fail
from cosyvoice_worker.voices import files
from cosyvoice_worker.voices.limits import SUFFIX
from cosyvoice_worker.wav import SAMPLE_BYTES, wav_header

if TYPE_CHECKING:
    from cosyvoice_worker.commands.base import Subparsers
    from cosyvoice_worker.voices.voice import Voice


def add_parser(subparsers: Subparsers) -> None:
    """The command's options."""
    parser = subparsers.add_parser("synthesize", help="speak one text into a file", description=__doc__)
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="model directory")
    parser.add_argument("--text", required=True, help="what is to be said")
    parser.add_argument(
        "--voice",
        metavar="NAME|FILE",
        help="a voice of the model, or a pack file (*.safetensors); default: the model's first voice",
    )
    parser.add_argument("--instructions", metavar="TEXT", help="how to say it, in words")
    parser.add_argument("--seed", type=int, default=0, help="decides every random choice (default %(default)s)")
    parser.add_argument(
        "--speed", type=float, default=1.0, help="0.25 to 4; above 1 is faster; not with --stream (default 1)"
    )
    parser.add_argument("--stream", action="store_true", help="speak chunk by chunk, as a streaming request does")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default %(default)s")
    parser.add_argument(
        "--dtype", choices=("auto", "float32", "float16", "bfloat16"), default="auto", help="default %(default)s"
    )
    parser.add_argument("--out", type=Path, default=Path("out.wav"), metavar="FILE", help="default %(default)s")
    parser.add_argument("--json", action="store_true", help="report as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Load, speak, write, report. Raises WorkerError for a model, voice or text that cannot be used."""
    from cosyvoice_worker.engine.environment import prepare  # noqa: PLC0415

    _check_text(args.text)
    _check_folder(args.out)
    prepare()
    s16, report = _speak(args)
    samples = len(s16) // SAMPLE_BYTES
    try:
        args.out.write_bytes(wav_header(report["sampleRate"], samples) + s16)
    except OSError as error:
        raise files.unusable(args.out, "cannot be written", error) from error
    sys.stdout.write((json.dumps(report) if args.json else _in_words(report)) + "\n")
    return 0


def _speak(args: argparse.Namespace) -> tuple[bytes, dict[str, Any]]:
    """The samples, and what is told about them."""
    import torch  # noqa: PLC0415

    from cosyvoice_worker.engine import devices, limits, phases, synthesis, utterance  # noqa: PLC0415
    from cosyvoice_worker.engine.pcm import to_s16  # noqa: PLC0415
    from cosyvoice_worker.models.cosyvoice2.load import load, make_tokenizer  # noqa: PLC0415

    torch.set_num_threads(limits.threads())
    problem = devices.cuda_problem() if args.device == "cuda" else None
    if problem is not None:
        raise fail(Reason.INVALID_CONFIG, Phase.MAP, f"--device cuda: {problem}", expected="cuda", actual=problem)
    voice = _voice(args.voice, args.model)
    loading = phases.Phases(lambda _message: None)
    model = load(args.model, args.device, args.dtype, loading.enter)
    tokenizer = make_tokenizer(args.model)
    seconds_of_loading = loading.finish()
    request = utterance.SpeechRequest(
        text=args.text,
        voice=voice,
        stream=args.stream,
        seed=args.seed,
        speed=args.speed,
        instructions=args.instructions,
    )
    spoken = synthesis.Synthesizer(model, tokenizer).synthesize(request)
    s16 = b"".join(to_s16(chunk) for chunk in spoken)
    result = spoken.result
    length = result.samples / model.config.sample_rate
    return s16, {
        "file": str(args.out),
        "voice": voice.name or None,
        "seed": args.seed,
        "device": model.device.type,
        "dtype": str(model.dtype).removeprefix("torch."),
        "sampleRate": model.config.sample_rate,
        "samples": result.samples,
        "seconds": round(length, 3),
        "speechTokens": result.speech_tokens,
        "speechTokensSha256": result.speech_tokens_sha256,
        "load": seconds_of_loading,
        "firstChunkSeconds": round(result.first_chunk_seconds, 3),
        "synthesisSeconds": round(result.seconds, 3),
        "realTimeFactor": round(result.seconds / length, 3) if length else None,
    }


def _voice(wanted: str | None, model: Path) -> Voice:
    """A pack file, a voice of the model, or what a server without a wish would take."""
    from cosyvoice_worker.engine.choice import choose_voice  # noqa: PLC0415
    from cosyvoice_worker.voices.registry import model_voices  # noqa: PLC0415
    from cosyvoice_worker.voices.voice import from_pack  # noqa: PLC0415 - numpy

    if wanted is not None and wanted.endswith(SUFFIX):
        path = Path(wanted)
        return from_pack(path.name.removesuffix(SUFFIX), files.read(path))
    return choose_voice(wanted, model_voices(model))


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise fail(Reason.INVALID_CONFIG, Phase.SERVE, "--text is not UTF-8", expected="UTF-8") from error


def _check_folder(out: Path) -> None:
    """Before minutes of speaking, not after them."""
    if not out.parent.is_dir():
        message = f"--out {out}: there is no directory {out.parent}"
        raise fail(Reason.MISSING_FILE, Phase.SERVE, message, file=str(out), expected="a directory")


def _in_words(report: dict[str, Any]) -> str:
    voice = report["voice"] or "the built-in voice, which is nobody's: make one with `cosyvoice-worker make-voice`"
    return "\n".join(
        (
            f"{report['file']}: {report['seconds']:.2f} s at {report['sampleRate']} Hz ({report['samples']} samples)",
            f"voice: {voice}",
            f"speech tokens: {report['speechTokens']}, sha256 {report['speechTokensSha256']}",
            f"load: {report['load']['total']:.2f} s; synthesis: {report['synthesisSeconds']:.2f} s, first audio after "
            f"{report['firstChunkSeconds']:.2f} s; real-time factor {report['realTimeFactor']}",
        )
    )
