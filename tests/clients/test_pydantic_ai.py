"""An agent framework doing a task of two steps: it calls a tool, and then answers in the form that it was asked for."""

from __future__ import annotations

import asyncio
import json

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from support.chat_output import xml_call
from support.live_server import MODEL, answering, live_server


class Report(BaseModel):
    city: str
    degrees: int


def speak(said: str) -> str:
    """The model: it looks the weather up, and reports what it was told."""
    if said.startswith("Weather"):
        return "hm</think>\n\n" + xml_call("weather", {"city": "Rome"})
    return "hm</think>\n\n" + json.dumps({"city": "Rome", "degrees": int(said)})


def test_a_task_of_two_steps(warmed_kernels: None) -> None:
    asked: list[str] = []

    async def run(url: str) -> Report:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="any") as client:
            model = OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client))
            agent = Agent(model, output_type=NativeOutput(Report))

            @agent.tool_plain
            def weather(city: str) -> str:
                asked.append(city)
                return "21"

            result = await agent.run("Weather in Rome?")
            return result.output

    with answering(speak) as engine, live_server(engine) as server:
        assert asyncio.run(run(server.url)) == Report(city="Rome", degrees=21)
    assert asked == ["Rome"]
