"""What the tests of OpenAI's client ask for: an object with all kinds of fields, and a tool."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel

from support.chat_output import xml_call


class Unit(StrEnum):
    METRE = "metre"
    FOOT = "foot"


class Peak(BaseModel):
    """A mountain; nested, optional and enumerated fields become references and unions in its schema."""

    name: str
    height: float
    unit: Unit
    first_ascent: int | None
    climbers: list[str]


class Lookup(BaseModel):
    """Looks a mountain up."""

    name: str
    metres: bool


PEAK = Peak(name="Rigi", height=1797.5, unit=Unit.METRE, first_ascent=None, climbers=["ok", "lo"])
LOOKUP_CALL = xml_call("Lookup", {"name": "Rigi", "metres": "true"})
