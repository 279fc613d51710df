"""What was said so far in a chat."""

from __future__ import annotations

from infernix.messages import Message
from infernix.results import FinishReason, GenerationResult
from infernix.tools import ToolCall


class Dialogue:
    """A growing list of messages: a question, an answer, the results of the calls in it, the next answer, ..."""

    def __init__(self, system: str | None = None) -> None:
        """`system` is what the model is told before all else."""
        self._messages = [] if system is None else [Message("system", system)]
        self._num_before_question = len(self._messages)
        self.open_calls: tuple[ToolCall, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages."""
        return tuple(self._messages)

    @property
    def is_waiting(self) -> bool:
        """Whether it is the model's turn."""
        return bool(self._messages) and self._messages[-1].role in ("user", "tool") and not self.open_calls

    def ask(self, text: str) -> None:
        """The user says something."""
        self._num_before_question = len(self._messages)
        self._messages.append(Message("user", text))

    def take_back(self) -> None:
        """Forgets the last question and all that followed."""
        del self._messages[self._num_before_question :]
        self.open_calls = ()

    def answer(self, result: GenerationResult) -> None:
        """The model has answered. Of an answer that was interrupted only the text stays, or nothing of its question."""
        is_interrupted = result.finish_reason is FinishReason.CANCELLED
        if is_interrupted and not result.text:
            self.take_back()
            return
        self.open_calls = () if is_interrupted else result.tool_calls
        self._messages.append(Message("assistant", result.text, reasoning=result.reasoning, tool_calls=self.open_calls))

    def give_result(self, text: str) -> None:
        """The result of the first open call."""
        call, *rest = self.open_calls
        self._messages.append(Message("tool", text, name=call.name))
        self.open_calls = tuple(rest)
