"""Making a voice: from a recording and the model's own ONNX files to a pack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.voices import fbank, mel, whisper
from cosyvoice_worker.voices.audio import Recording
from cosyvoice_worker.voices.checks import check_prompt_text
from cosyvoice_worker.voices.errors import refuse
from cosyvoice_worker.voices.limits import COSYVOICE2, MEL_FRAMES_PER_TOKEN
from cosyvoice_worker.voices.onnx import OnnxModel, speaker_embedding, speech_tokens
from cosyvoice_worker.voices.pack import Pack
from cosyvoice_worker.voices.resample import resample

MODEL_YAML = "cosyvoice2.yaml"  # its name tells the model's generation
SPEECH_TOKENIZER = "speech_tokenizer_v2.onnx"
CAMPPLUS = "campplus.onnx"


def make_pack(model: Path, recording: Recording, prompt_text: str) -> Pack:
    """The pack of the voice in `recording`, whose transcript is `prompt_text` (empty: a cross-lingual voice).

    Reads only the two ONNX files of `model`. Raises VoiceError when they, or onnxruntime, are missing or unusable.
    """
    check_prompt_text(prompt_text)
    if not (model / MODEL_YAML).is_file():
        what = f"no CosyVoice2 model: {MODEL_YAML} is not there"
        raise refuse(what, file=str(model), reason=Reason.UNKNOWN_VERSION)
    at_16k = resample(recording.samples, recording.sample_rate, whisper.SAMPLE_RATE)
    campplus = OnnxModel(model / CAMPPLUS)
    embedding = speaker_embedding(campplus, fbank.speaker_features(at_16k))
    tokenizer = OnnxModel(model / SPEECH_TOKENIZER)
    tokens = speech_tokens(tokenizer, whisper.whisper_features(at_16k))
    frames = mel.prompt_mel(resample(recording.samples, recording.sample_rate, mel.SAMPLE_RATE))
    tokens, frames = align(tokens, frames)
    return Pack(
        family=COSYVOICE2,
        prompt_text=prompt_text,
        prompt_token=tokens.astype("<i4").tobytes(),
        prompt_mel=frames.astype("<f4").tobytes(),
        embedding=embedding.astype("<f4").tobytes(),
        speech_tokenizer_sha256=tokenizer.sha256,
        campplus_sha256=campplus.sha256,
    )


def align(tokens: NDArray[np.int32], frames: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Tokens (N) and mel frames (M, 80) cut to the longest n tokens and 2n frames that both have."""
    count = min(len(tokens), len(frames) // MEL_FRAMES_PER_TOKEN)
    return tokens[:count], frames[: MEL_FRAMES_PER_TOKEN * count]
