"""Voice packs: the file format. No numpy, so that a list of voices is cheap.

A pack is a safetensors file `<name>.safetensors` of

    prompt_token  int32   (N)       speech tokens of the recording, N <= 750 (30 s)
    prompt_mel    float32 (2N, 80)  its log-mel spectrogram at 24 kHz, two frames a token
    embedding     float32 (192)     speaker embedding, not normalised

with the metadata `format`, `family`, `prompt_text` (the transcript; empty: a cross-lingual voice),
`speech_tokenizer_sha256` and `campplus_sha256` (which files of the model made it). N = 0 is a voice of an embedding
alone. Further metadata is ignored, further tensors are not.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosyvoice_worker.voices import checks, container, limits
from cosyvoice_worker.voices.container import Container, Tensor
from cosyvoice_worker.voices.errors import refuse

TENSORS = ("prompt_token", "prompt_mel", "embedding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A pack's content; the tensors are little-endian bytes."""

    family: str
    prompt_text: str
    prompt_token: bytes  # int32 (N)
    prompt_mel: bytes  # float32 (2N, 80)
    embedding: bytes  # float32 (192)
    speech_tokenizer_sha256: str
    campplus_sha256: str

    @property
    def tokens(self) -> int:
        """N, the number of prompt tokens."""
        return len(self.prompt_token) // limits.ITEM_BYTES

    @property
    def seconds(self) -> float:
        """Length of the prompt."""
        return self.tokens / limits.TOKENS_PER_SECOND


def decode(content: bytes, file: str) -> Pack:
    """The pack in `content`; `file` names it in errors. Raises VoiceError for the first rule that it breaks."""
    parsed = container.decode(content, file)
    if set(parsed.tensors) != set(TENSORS):
        expected, actual = ", ".join(sorted(TENSORS)), container.shown(sorted(parsed.tensors))
        raise refuse("tensors", file=file, expected=expected, actual=actual)
    token, mel, embedding = (parsed.tensors[name] for name in TENSORS)
    if len(token.shape) != 1:
        raise refuse("shape", file=file, tensor="prompt_token", expected="(N,)", actual=container.shown(token.shape))
    count = token.shape[0]
    if count > limits.MAX_TOKENS:
        limit = f"at most {limits.MAX_TOKENS} tokens"
        raise refuse("too long", file=file, tensor="prompt_token", expected=limit, actual=count)
    checks.check_metadata(parsed.metadata, count, file)
    checks.check_layout(token, "prompt_token", "I32", (count,), file)
    checks.check_layout(mel, "prompt_mel", "F32", (limits.MEL_FRAMES_PER_TOKEN * count, limits.MEL_BINS), file)
    checks.check_layout(embedding, "embedding", "F32", (limits.EMBEDDING_SIZE,), file)
    checks.check_ids(token.data, "prompt_token", file)
    checks.check_finite(mel.data, "prompt_mel", file)
    checks.check_finite(embedding.data, "embedding", file)
    return Pack(
        family=parsed.metadata["family"],
        prompt_text=parsed.metadata["prompt_text"],
        prompt_token=token.data,
        prompt_mel=mel.data,
        embedding=embedding.data,
        speech_tokenizer_sha256=parsed.metadata["speech_tokenizer_sha256"],
        campplus_sha256=parsed.metadata["campplus_sha256"],
    )


def encode(pack: Pack, file: str = "voice pack") -> bytes:
    """The bytes of the pack's file. Raises VoiceError if `decode` would refuse them."""
    metadata = {
        "format": limits.FORMAT,
        "family": pack.family,
        "prompt_text": pack.prompt_text,
        "speech_tokenizer_sha256": pack.speech_tokenizer_sha256,
        "campplus_sha256": pack.campplus_sha256,
    }
    mel_frames = len(pack.prompt_mel) // (limits.ITEM_BYTES * limits.MEL_BINS)
    tensors = {
        "prompt_token": Tensor("I32", (pack.tokens,), pack.prompt_token),
        "prompt_mel": Tensor("F32", (mel_frames, limits.MEL_BINS), pack.prompt_mel),
        "embedding": Tensor("F32", (len(pack.embedding) // limits.ITEM_BYTES,), pack.embedding),
    }
    content = container.encode(Container(metadata, tensors))
    decode(content, file)
    return content
