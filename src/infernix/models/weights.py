"""Tensors out of safetensors files: one file, or several with an index.

Format: https://github.com/huggingface/safetensors; the index is Hugging Face's `model.safetensors.index.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from infernix.errors import ModelLoadError
from infernix.models.files import read_json_object
from infernix.models.linear import Linear, MatrixFormat

SINGLE_FILE_NAME = "model.safetensors"
INDEX_FILE_NAME = "model.safetensors.index.json"
SUPPORTED_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class WeightFiles:
    """The tensors of a model directory, by name.

    On a CPU a tensor that is not converted stays a view of the memory-mapped file, so opening reads next to nothing.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: torch.dtype,
        device: torch.device,
        matrix_format: MatrixFormat = MatrixFormat.OWN,
    ) -> None:
        """Opens every file and checks its header. `matrix_format` is how linear layers keep their matrices.

        Raises ModelLoadError for a missing, truncated or corrupt file and for a malformed index.
        """
        self._dtype = dtype
        self._device = device
        self._matrix_format = matrix_format
        self._file_by_tensor: dict[str, Path] = {}
        self._open_files: dict[Path, Any] = {}
        single, index = directory / SINGLE_FILE_NAME, directory / INDEX_FILE_NAME
        if index.is_file() and not single.is_file():
            self._read_index(index)
        else:
            self._open(single)
            self._file_by_tensor = dict.fromkeys(self._open_files[single].keys(), single)
        self._source = index if index in self._file_by_tensor.values() else single

    def __contains__(self, name: str) -> bool:
        return name in self._file_by_tensor

    @property
    def matrix_format(self) -> MatrixFormat:
        """How linear layers keep their matrices."""
        return self._matrix_format

    @property
    def device(self) -> torch.device:
        """Where tensors are put."""
        return self._device

    def names_from(self, prefix: str) -> list[str]:
        """Names of the tensors that begin with `prefix`, in order."""
        return sorted(name for name in self._file_by_tensor if name.startswith(prefix))

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raises ModelLoadError where the tensor `name` is missing or has another shape; only its header is read."""
        path = self._file_by_tensor.get(name)
        if path is None:
            raise ModelLoadError(f"{self._source}: tensor {name!r} is missing")
        try:
            stored = self._open_files[path].get_slice(name).get_shape()
        except (SafetensorError, OSError) as error:
            raise ModelLoadError(f"{path}: tensor {name!r} cannot be read: {error}") from error
        if tuple(stored) != shape:
            raise ModelLoadError(f"{path}: tensor {name!r} has shape {list(stored)}, expected {list(shape)}")

    def tensor(self, name: str, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> torch.Tensor:
        """The tensor `name` in the wanted number format, or in `dtype`, on the wanted device.

        Raises ModelLoadError, naming file and tensor, where it is missing, has another shape or an integer format.
        """
        tensor = self._read(name, shape, SUPPORTED_DTYPES)
        return tensor.to(device=self._device, dtype=dtype or self._dtype)

    def integers(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """The int64 tensor `name`, on the wanted device. Raises ModelLoadError as `tensor` does."""
        return self._read(name, shape, (torch.int64,)).to(self._device)

    def linear(self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, is_delicate: bool = False) -> Linear:
        """A linear layer over tensors that were read here, its matrix in the wanted format.

        One that `is_delicate` is kept in float16 where int8 is wanted: the head, whose outputs are the logits, and
        matrices whose inputs have a few numbers far larger than the others.
        """
        is_rounded_less = is_delicate and self._matrix_format is MatrixFormat.INT8
        return Linear(weight, bias, MatrixFormat.FLOAT16 if is_rounded_less else self._matrix_format)

    def _read(self, name: str, shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...]) -> torch.Tensor:
        self.check_shape(name, shape)
        path = self._file_by_tensor[name]
        try:
            tensor: torch.Tensor = self._open_files[path].get_tensor(name)
        except (SafetensorError, OSError, RuntimeError) as error:
            raise ModelLoadError(f"{path}: tensor {name!r} cannot be read: {error}") from error
        if tensor.dtype not in dtypes:
            raise ModelLoadError(f"{path}: tensor {name!r} has the unsupported format {tensor.dtype}")
        return tensor

    def _read_index(self, index: Path) -> None:
        weight_map = read_json_object(index).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ModelLoadError(f"{index}: weight_map: expected an object that names the file of every tensor")
        for tensor, name in weight_map.items():
            # A plain file name only: an index must not reach outside its directory.
            if not isinstance(name, str) or Path(name).name != name:
                raise ModelLoadError(f"{index}: weight_map: tensor {tensor!r} is in {name!r}, which is no file name")
            path = index.parent / name
            if path not in self._open_files:
                self._open(path)
            self._file_by_tensor[tensor] = path
        for path, file in self._open_files.items():
            for tensor in set(file.keys()) - set(weight_map):
                raise ModelLoadError(f"{index}: weight_map: tensor {tensor!r} of {path.name} is not named")

    def _open(self, path: Path) -> None:
        if not path.is_file():
            raise ModelLoadError(f"{path}: weight file is missing")
        try:
            self._open_files[path] = safe_open(path, framework="pt")
        except (SafetensorError, OSError) as error:
            raise ModelLoadError(f"{path}: not a whole safetensors file: {error}") from error
