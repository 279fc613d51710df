"""What the exit code of `infernix` says; scripts rely on it."""

from __future__ import annotations

SUCCESS = 0  # generate, chat: finished; check: accepted, and the text belongs to the language
INTERNAL_ERROR = 1  # a defect of the engine or of the model's numbers
DOES_NOT_BELONG = 1  # check --text: the constraint is fine, the text is not
BAD_INPUT = 2  # a flag, a file, a model, a constraint or tools that cannot be used
INCOMPLETE = 3  # generate, chat: a limit cut an answer before it had the shape that was asked for
INTERRUPTED = 130  # Ctrl-C, as 128 + SIGINT
OUTPUT_CLOSED = 141  # nobody reads standard output any more, as 128 + SIGPIPE
