"""A local Hugging Face model directory: its files, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from infernix.errors import InvalidOptions, ModelLoadError
from infernix.frontend.framing import THINK_CLOSE, THINK_OPEN, TOOL_CLOSE, TOOL_OPEN
from infernix.frontend.template import ChatTemplate
from infernix.frontend.template_environment import own_template
from infernix.frontend.tokenizer import Tokenizer
from infernix.models.embedded import EMBEDDED_MODEL_NAME, embedded_model_directory
from infernix.models.files import read_json_object, read_text
from infernix.models.registry import AnyModelConfig, read_any_config
from infernix.options import SamplingOptions, SamplingParameters, resolve_sampling

_SAMPLING_FIELDS = ("temperature", "top_k", "top_p", "min_p")
_TEMPLATE_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class ModelDirectory:
    """The small files of a directory. Weights are read by `WeightFiles`.

    config.json and tokenizer.json are required; generation_config.json, tokenizer_config.json and chat_template.jinja
    are read where they exist. Every method raises ModelLoadError, naming the file and the field. `name` is for people.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        try:
            exists = path.exists()
        except OSError as error:  # such as a name that is too long
            raise ModelLoadError(f"{path}: cannot be opened: {error.strerror}") from error
        if not exists:
            raise ModelLoadError(f"{path}: no such model directory (models are local; nothing is downloaded)")
        if not path.is_dir():
            raise ModelLoadError(f"{path}: not a directory; a model is a directory with config.json and weights")
        self.path = path
        self.name = name or path.resolve().name
        self._config = read_json_object(path / "config.json")
        self._generation_config = self._optional("generation_config.json")
        self._tokenizer_config = self._optional("tokenizer_config.json")

    @classmethod
    def find(cls, model: str | Path | None, progress: Callable[[str], None] | None = None) -> ModelDirectory:
        """The directory at a path; for None or "smollm2" the embedded model's, which is made where it is missing.

        `progress` receives lines about slow steps.
        """
        if model is None or model == EMBEDDED_MODEL_NAME:
            return cls(embedded_model_directory(progress), name="SmolLM2-135M-Instruct")
        if not isinstance(model, str | Path):
            raise ModelLoadError(f"a model is the path of a directory, not {type(model).__name__}")
        if model == "":
            raise ModelLoadError("the path of the model is empty")
        return cls(Path(model))

    def model_config(self) -> AnyModelConfig:
        """The network's sizes and switches."""
        return read_any_config(self._config, self.path / "config.json")

    def sampling_defaults(self) -> SamplingParameters:
        """The model's own sampling values, from generation_config.json.

        A `do_sample` of false means greedy. A repetition penalty has no counterpart here and is left out.
        """
        values = {name: self._generation_config.get(name) for name in _SAMPLING_FIELDS}
        if self._generation_config.get("do_sample") is False:
            values["temperature"] = 0.0
        try:
            return resolve_sampling(SamplingOptions(**values), SamplingParameters(), constrained=False)
        except InvalidOptions as error:
            raise ModelLoadError(f"{self.path / 'generation_config.json'}: {error.message}") from error

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, with the model's end-of-sequence tokens."""
        path = self.path / "tokenizer.json"
        text, framing = read_text(path), self._template_source() or ""
        try:
            return Tokenizer(text, eos_tokens=self._eos_tokens(), framing=framing)
        except ModelLoadError as error:
            raise ModelLoadError(f"{path}: {error.message}") from error

    def template(self, tokenizer: Tokenizer) -> ChatTemplate:
        """The chat template; one that refuses every message list where the directory has none."""
        try:
            return ChatTemplate(self._template_source(), tokenizer, special_tokens=self._template_tokens())
        except ModelLoadError as error:
            raise ModelLoadError(f"{self.path}: {error.message}") from error

    def _optional(self, name: str) -> dict[str, Any]:
        path = self.path / name
        return read_json_object(path) if path.exists() else {}

    def _eos_tokens(self) -> list[int | str]:
        """From generation_config.json, else config.json, else the tokenizer's own end token."""
        for name, document in (("generation_config.json", self._generation_config), ("config.json", self._config)):
            value = document.get("eos_token_id")
            if value is None:
                continue
            ids = value if isinstance(value, list) else [value]
            if not ids or any(isinstance(token, bool) or not isinstance(token, int) for token in ids):
                raise ModelLoadError(
                    f"{self.path / name}: eos_token_id: expected an id or a list of ids, got {value!r}"
                )
            return ids
        spelling = self._template_tokens().get("eos_token")
        if spelling is None:
            raise ModelLoadError(
                f"{self.path}: no end-of-sequence token: neither eos_token_id in generation_config.json or config.json"
                " nor eos_token in tokenizer_config.json"
            )
        return [spelling]

    def _template_tokens(self) -> dict[str, str]:
        """Special tokens by their role; an entry is a string or an object with `content`."""
        tokens = {}
        for name in _TEMPLATE_TOKENS:
            value = self._tokenizer_config.get(name)
            content = value.get("content") if isinstance(value, dict) else value
            if isinstance(content, str):
                tokens[name] = content
        return tokens

    def _template_source(self) -> str | None:
        """The directory's own template, else one of this package's where the model has the tokens for it."""
        own = self._own_template_source()
        if own is not None:
            return own
        added = read_json_object(self.path / "tokenizer.json").get("added_tokens") or []
        spellings = {entry.get("content") for entry in added if isinstance(entry, dict)}
        if not {"<|im_start|>", "<|im_end|>"} <= spellings:
            return None
        return own_template("qwen3_5" if {THINK_OPEN, THINK_CLOSE, TOOL_OPEN, TOOL_CLOSE} <= spellings else "chatml")

    def _own_template_source(self) -> str | None:
        """chat_template.jinja, or `chat_template` of tokenizer_config.json: a text, or a list of named ones."""
        path = self.path / "chat_template.jinja"
        if path.exists():
            return read_text(path)
        value = self._tokenizer_config.get("chat_template")
        if isinstance(value, list):
            named = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
            value = named.get("default")
        if value is not None and not isinstance(value, str):
            raise ModelLoadError(f"{self.path / 'tokenizer_config.json'}: chat_template: expected a text")
        return value
