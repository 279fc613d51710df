"""Keys and values of one sequence, allocated once."""

from __future__ import annotations

import torch


class KVCache:
    """Keys and values of every layer, each [num_layers, num_kv_heads, max_tokens, head_dim].

    The memory is reserved for `max_tokens` at once; an operating system hands it out as it is first written.
    """

    def __init__(
        self,
        num_layers: int,
        num_kv_heads: int,
        max_tokens: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        shape = (num_layers, num_kv_heads, max_tokens, head_dim)
        self._keys = torch.empty(shape, dtype=dtype, device=device)
        self._values = torch.empty(shape, dtype=dtype, device=device)
        # One view a layer: [num_kv_heads, max_tokens, head_dim].
        self.layers: tuple[tuple[torch.Tensor, torch.Tensor], ...] = tuple(zip(self._keys, self._values, strict=True))
        self.max_tokens = max_tokens
        self._num_tokens = 0

    @property
    def num_tokens(self) -> int:
        """Tokens that the cache holds."""
        return self._num_tokens

    def advance(self, num_tokens: int) -> None:
        """Take over `num_tokens` tokens whose keys and values every layer has written behind the present ones."""
        if not 0 <= num_tokens <= self.max_tokens - self._num_tokens:
            raise ValueError(f"no room for {num_tokens} tokens after {self._num_tokens} of {self.max_tokens}")
        self._num_tokens += num_tokens

    def truncate(self, num_tokens: int) -> None:
        """Forget every token after the first `num_tokens`; ValueError where it holds fewer."""
        if not 0 <= num_tokens <= self._num_tokens:
            raise ValueError(f"cannot keep {num_tokens} of {self._num_tokens} tokens")
        self._num_tokens = num_tokens
