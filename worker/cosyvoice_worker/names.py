"""Every name that crosses the worker's boundary: files, ports, headers.

The operator holds the same ones in its own `names`. A test (tests/unit/test_contract.py) compares the two sides.
"""

CONFIG_PATH = "/etc/cosyvoice/model.json"
# Beside it: the document that goes before it, the one on trial, and the order that says which revision to serve.
CURRENT_CONFIG = "current.json"
CANDIDATE_CONFIG = "candidate.json"
SWAP_ORDER = "swap"
VOICES_CONFIG_PATH = "/etc/cosyvoice/voices"
API_KEYS_PATH = "/etc/cosyvoice/api-keys"
WEIGHTS_ROOT = "/dev/shm/cosyvoice"  # noqa: S108 - a tmpfs of the pod's own, not a shared /tmp
SOURCE_ROOT = "/source"
TERMINATION_LOG = "/dev/termination-log"

# What the node agent leaves on a cgroup whose memory.high it has set: an extended attribute.
AGENT_MARK = "user.cosyvoice.memory-high"

API_PORT = 8000
ADMIN_PORT = 8081

MANIFEST_SCHEMA = 1
CONFIG_SCHEMA = 1
STATUS_SCHEMA = 1
TERMINATION_SCHEMA = 1

# What `stage` leaves in WEIGHTS_ROOT: the pointer to the staged version, and its progress while it works.
STAGED_POINTER = "staged.json"
STAGING_PROGRESS = "progress.json"
# And below it: a pointer and a document for each staged revision, and what came of the orders.
REVISIONS = "revisions"
ORDERS = "orders"

HEADER_SAMPLE_RATE = "X-CosyVoice-Sample-Rate"
HEADER_SEED = "X-CosyVoice-Seed"
HEADER_SPEECH_TOKENS = "X-CosyVoice-Speech-Tokens"
HEADER_SPEECH_TOKENS_SHA256 = "X-CosyVoice-Speech-Tokens-Sha256"
HEADER_REQUEST_ID = "X-Request-Id"
HEADER_VERSION = "X-CosyVoice-Version"
# W3C Trace Context: the span of the client that a request belongs to.
HEADER_TRACEPARENT = "traceparent"
