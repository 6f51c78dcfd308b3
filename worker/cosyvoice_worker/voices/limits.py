"""The numbers of a voice pack, in one place: what the format fixes, and what this worker accepts."""

SUFFIX = ".safetensors"
FORMAT = "cosyvoice-voice/1"
COSYVOICE2 = "cosyvoice2"
FAMILIES = (COSYVOICE2,)

SPEECH_TOKEN_IDS = 6561
TOKENS_PER_SECOND = 25
MEL_FRAMES_PER_TOKEN = 2
MEL_BINS = 80
EMBEDDING_SIZE = 192

MAX_TOKENS = 750  # 30 s
MAX_PROMPT_TEXT = 1000  # characters; 30 s of speech are some 600
ITEM_BYTES = 4  # both dtypes, I32 and F32
MAX_HEADER_BYTES = 64 * 1024
MAX_PACK_BYTES = (
    8 + MAX_HEADER_BYTES + ITEM_BYTES * (MAX_TOKENS * (1 + MEL_FRAMES_PER_TOKEN * MEL_BINS) + EMBEDDING_SIZE)
)
