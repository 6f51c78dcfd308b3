"""Gives a hollow module its weights: the checkpoint's tensors become its parameters, without a copy."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from cosyvoice_worker.outcome import Phase, Reason, WorkerError, fail


def assign(module: nn.Module, tensors: Mapping[str, Tensor], file: str) -> None:
    """Make `tensors` the module's parameters, exactly: none missing, none left over, every shape equal.

    `file` is what errors call the checkpoint. Raises WorkerError: MissingTensor, UnexpectedTensor or ShapeMismatch,
    each naming the first such tensor; IncompatibleModel where a tensor that no checkpoint gives stayed without memory.
    """
    wanted = module.state_dict()
    for name, hollow in wanted.items():
        if name not in tensors:
            raise _missing(file, name, [other for other in wanted if other not in tensors])
        if tensors[name].shape != hollow.shape:
            raise _mismatch(file, name, list(hollow.shape), list(tensors[name].shape))
    if unexpected := [name for name in tensors if name not in wanted]:
        raise _unexpected(file, unexpected)
    module.load_state_dict(dict(tensors), strict=True, assign=True)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            message = f"{name} has no memory after {file} was assigned: the module should make it, or the file hold it"
            raise fail(Reason.INCOMPATIBLE_MODEL, Phase.BUILD, message, file=file, tensor=name)


def _missing(file: str, name: str, missing: list[str]) -> WorkerError:
    message = f"{file} lacks the tensor {name}{_others(missing)}: is it of the same model as the directory's yaml?"
    return fail(
        Reason.MISSING_TENSOR, Phase.BUILD, message, file=file, tensor=name, expected=f"tensor {name}", actual="absent"
    )


def _unexpected(file: str, unexpected: list[str]) -> WorkerError:
    name = unexpected[0]
    message = f"{file} has a tensor {name}{_others(unexpected)} that this model does not have"
    return fail(
        Reason.UNEXPECTED_TENSOR,
        Phase.BUILD,
        message,
        file=file,
        tensor=name,
        expected="absent",
        actual=f"tensor {name}",
    )


def _mismatch(file: str, name: str, expected: list[int], actual: list[int]) -> WorkerError:
    message = f"{file}: {name} has the shape {actual}, the model needs {expected}"
    return fail(Reason.SHAPE_MISMATCH, Phase.BUILD, message, file=file, tensor=name, expected=expected, actual=actual)


def _others(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
