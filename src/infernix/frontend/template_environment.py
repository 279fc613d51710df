"""The Jinja environment that Hugging Face templates are written for; a template can change nothing outside itself."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from infernix.errors import InvalidPrompt, ModelLoadError
from infernix.frontend.template_json import to_json


def compile_template(source: str) -> jinja2.Template:
    """Raises ModelLoadError for bad syntax."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = _raise_exception
    try:
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise ModelLoadError(f"chat template: {error.message} at line {error.lineno}") from error
    except (jinja2.TemplateError, RecursionError, ValueError) as error:
        raise ModelLoadError(f"chat template: {error}") from error


def render(template: jinja2.Template, values: Mapping[str, Any]) -> str:
    """Raises InvalidPrompt where the template refuses or fails."""
    try:
        return template.render(values)
    except jinja2.TemplateError as error:
        raise InvalidPrompt(f"the chat template refuses the messages: {error.message}") from error
    except Exception as error:  # a template is foreign code: it can fail like any expression
        raise InvalidPrompt(f"the chat template failed: {type(error).__name__}: {error}") from error


def own_template(name: str) -> str:
    """The source of one of the templates that come with this package: `qwen3_5` or `chatml`."""
    path = resources.files("infernix.frontend") / "templates" / f"{name}.jinja"
    # A text file ends in a line break; the template's last line does not.
    return path.read_text(encoding="utf-8").removesuffix("\n")


def _raise_exception(message: str) -> str:
    raise jinja2.TemplateError(message)
