"""Every name that crosses the operator's boundary. The worker holds its half in its own `names`.

A test (tests/unit/test_contract.py) compares the two sides.
"""

GROUP = "cosyvoice.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "CosyVoiceModel"
PLURAL = "cosyvoicemodels"

FIELD_MANAGER = "cosyvoice-operator"

LABEL_MODEL = f"{GROUP}/model"
LABEL_VERSION = f"{GROUP}/version"
LABEL_REVISION = f"{GROUP}/revision"
LABEL_APP_NAME = "app.kubernetes.io/name"
LABEL_APP_INSTANCE = "app.kubernetes.io/instance"
LABEL_APP_VERSION = "app.kubernetes.io/version"
LABEL_APP_COMPONENT = "app.kubernetes.io/component"
LABEL_APP_PART_OF = "app.kubernetes.io/part-of"
LABEL_APP_MANAGED_BY = "app.kubernetes.io/managed-by"
APP_NAME = "cosyvoice"
COMPONENT_WORKER = "worker"

# On every child: the hash of what was applied last. It tells a field we stopped to apply from one we never owned.
ANNOTATION_APPLIED = f"{GROUP}/applied"
# What a user sets on a model: anything new lifts a quarantine; a revision to run instead of the one the spec asks for.
ANNOTATION_RETRY = f"{GROUP}/retry"
ANNOTATION_ROLLBACK_TO = f"{GROUP}/rollback-to"
# On a revision's ConfigMap, for whoever reads the history.
LABEL_OUTCOME = f"{GROUP}/outcome"
OUTCOME_PENDING = "Pending"  # of a revision that has just been created
LABEL_DIGEST = f"{GROUP}/digest"
ANNOTATION_DIGEST = f"{GROUP}/digest"  # in full; the label of that name has its first digits
ANNOTATION_SOURCE = f"{GROUP}/source"
ANNOTATION_IMAGE = f"{GROUP}/image"

# On a worker pod: the memory.high that its worker container is to have, in bytes. The node agent looks for it.
LABEL_MEMORY_HIGH = f"{GROUP}/memory-high"
# What the node agent leaves on a cgroup whose memory.high it has set: an extended attribute.
AGENT_MARK = "user.cosyvoice.memory-high"

# ----- in the worker pod ----------------------------------------------------------------------------------------------

STAGE_CONTAINER = "stage"
STAGER_CONTAINER = "stager"
WORKER_CONTAINER = "worker"
CONFIG_VOLUME = "config"

CONFIG_DIRECTORY = "/etc/cosyvoice"
CONFIG_PATH = "/etc/cosyvoice/model.json"
SWAP_PATH = "/etc/cosyvoice/swap"
VOICES_CONFIG_PATH = "/etc/cosyvoice/voices"
API_KEYS_PATH = "/etc/cosyvoice/api-keys"
WEIGHTS_ROOT = "/dev/shm/cosyvoice"  # noqa: S108 - a tmpfs of the pod's own, not a shared /tmp
SOURCE_ROOT = "/source"
TEMPORARY_DIRECTORY = "/tmp"  # noqa: S108 - an emptyDir of the pod's own
TERMINATION_LOG = "/dev/termination-log"

API_PORT = 8000
API_PORT_NAME = "http"
ADMIN_PORT = 8081
ADMIN_PORT_NAME = "admin"
PATH_PING = "/ping"
PATH_HEALTH = "/health"
PATH_STATUS = "/status"

CONFIG_SCHEMA = 1
STATUS_SCHEMA = 1
TERMINATION_SCHEMA = 1
REVISION_SCHEMA = 1

# Keys of a revision's ConfigMap.
KEY_CONFIG = "model.json"
KEY_TEMPLATE = "template.json"

# Keys of a template's live ConfigMap: what any pod of it loads when it starts, and what one of them is to try.
KEY_CURRENT = "current.json"
KEY_CANDIDATE = "candidate.json"
_LIVE = "-live"

# On a pod: the order to load another revision in place, `<revision>.<attempt>` and, sent again, `.<nonce>`. The pod
# sees it as the file KEY_SWAP of its configuration.
ANNOTATION_SWAP = f"{GROUP}/swap"
KEY_SWAP = "swap"

# The uid that the worker image runs as.
WORKER_UID = 10001

# Reasons of termination messages and the exit code of each.
WORKER_EXIT_CODES: dict[str, int] = {
    "Staged": 0,
    "Completed": 0,
    "InvalidConfig": 64,
    "DigestMismatch": 65,
    "TruncatedFile": 65,
    "CorruptFile": 65,
    "LFSPointer": 65,
    "MissingFile": 66,
    "UnknownVersion": 66,
    "MissingTensor": 66,
    "UnexpectedTensor": 66,
    "ShapeMismatch": 66,
    "DtypeMismatch": 66,
    "IncompatibleModel": 66,
    "SourceUnreachable": 69,
    "WarmUpFailed": 70,
    "NonFiniteAudio": 70,
    "SilentAudio": 70,
    "OutOfMemory": 71,
    "OutOfSpace": 71,
    "LoadTimeout": 72,
    "EngineDied": 73,
    "AccessDenied": 77,
}
RETRYABLE_EXIT_CODES = frozenset({69, 71, 72, 73})
EXIT_CODE_SOURCE_UNREACHABLE = 69


def revision_name(model: str, revision: str) -> str:
    """Name of the ConfigMap that holds one revision of a model."""
    return f"{model}-{revision}"


def live_name(model: str, template: str) -> str:
    """Name of the ConfigMap that says what the pods of one template load instead of what it was made for."""
    return f"{revision_name(model, template)}{_LIVE}"


def template_of_live(model: str, name: str) -> str | None:
    """The template whose live ConfigMap of `model` is called `name`; None where it is called otherwise."""
    prefix = f"{model}-"
    template = name.removeprefix(prefix).removesuffix(_LIVE)
    return template if name == live_name(model, template) and template else None


def selector_labels(model: str) -> dict[str, str]:
    """The labels by which the Deployment, the Service and the scale subresource find a model's pods."""
    return {LABEL_MODEL: model, LABEL_APP_COMPONENT: COMPONENT_WORKER}


def voices_name(model: str) -> str:
    """Name of the user's ConfigMap of voice packs, mounted where it exists."""
    return f"{model}-voices"
