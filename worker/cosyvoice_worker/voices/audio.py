"""Reading a prompt recording: any file that libsndfile knows (wav, flac, ogg, mp3 …), as mono float samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from cosyvoice_worker.outcome import Reason
from cosyvoice_worker.regular_files import open_regular
from cosyvoice_worker.voices.errors import refuse
from cosyvoice_worker.voices.files import unusable

MIN_SECONDS = 0.5
MAX_SECONDS = 30.0
MAX_CHANNELS = 8
# Multiples of the rates that recorders use: they share large divisors with 16 and 24 kHz, which resampling relies on.
SAMPLE_RATES = (16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000)
SILENCE = 1e-3  # peak, -60 dB of full scale
MAX_PEAK = 2.0  # beyond it the samples are not scaled to [-1, 1]

_unfit = partial(refuse, reason=Reason.INVALID_CONFIG)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A checked recording: `samples` float32 (n), mono, in [-1, 1] but for a few overs."""

    samples: NDArray[np.float32]
    sample_rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.sample_rate


def read_recording(path: Path) -> Recording:
    """The recording in `path`, its channels averaged. Raises VoiceError when it cannot be a prompt, with the reason."""
    try:
        with open_regular(path) as stream, soundfile.SoundFile(stream) as sound:
            _check_format(sound.samplerate, sound.channels, path)
            limit = int(MAX_SECONDS * sound.samplerate)
            frames = sound.read(limit + 1, dtype="float32", always_2d=True)  # (n, channels)
            rate = sound.samplerate
    except OSError as error:
        raise unusable(path, "cannot be read", error) from error
    except soundfile.SoundFileError as error:
        raise refuse(f"not a recording that can be read ({_reason(error)})", file=str(path)) from error
    if len(frames) > limit:
        raise _unfit("too long for a prompt", file=str(path), expected=f"at most {MAX_SECONDS:g} s", actual="more")
    if len(frames) < MIN_SECONDS * rate:
        expected, actual = f"at least {MIN_SECONDS:g} s", f"{len(frames) / rate:.2f} s"
        raise _unfit("too short for a prompt", file=str(path), expected=expected, actual=actual)
    samples: NDArray[np.float32] = frames.mean(axis=1, dtype=np.float32)
    _check_level(samples, path)
    return Recording(samples, rate)


def _check_format(rate: int, channels: int, path: Path) -> None:
    if rate not in SAMPLE_RATES:
        expected = " or ".join((", ".join(map(str, SAMPLE_RATES[:-1])), str(SAMPLE_RATES[-1]))) + " Hz"
        raise _unfit("sample rate", file=str(path), expected=expected, actual=f"{rate} Hz")
    if channels > MAX_CHANNELS:
        raise _unfit("channels", file=str(path), expected=f"at most {MAX_CHANNELS}", actual=channels)


def _check_level(samples: NDArray[np.float32], path: Path) -> None:
    peak = float(np.abs(samples).max())
    if not np.isfinite(peak):
        raise _unfit("samples", file=str(path), expected="finite numbers", actual=peak)
    if peak > MAX_PEAK:
        raise _unfit("samples", file=str(path), expected="numbers from -1 to 1", actual=f"a peak of {peak:g}")
    if peak < SILENCE:
        raise _unfit("silent", file=str(path), expected=f"a peak of at least {SILENCE:g}", actual=f"{peak:g}")


def _reason(error: soundfile.SoundFileError) -> str:
    """libsndfile's own words, without Python's description of the stream."""
    return str(getattr(error, "error_string", error))
