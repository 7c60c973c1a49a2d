"""Runs the conversation of conversation.ts with a client in Python, in each of the client's cases. Prints one JSON
object, with {"cities", "texts"} or {"error"} for each case."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable

URL = os.environ["URL"]
ORIGIN = URL.removesuffix("/v1")
KEY = os.environ["KEY"]
# The key of an organization that stores its responses.
STORING_KEY = os.environ["STORING_KEY"]
TURNS: list[str] = json.loads(os.environ["TURNS"])
MODELS: list[str] = json.loads(os.environ["MODELS"])
TOOL = json.loads(os.environ["TOOL"])


class Weather:
    """The tool, with a record of its calls."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def call(self, city: str) -> str:
        self.cities.append(city)
        return f"21 degrees in {city}"


def function(weather: Weather) -> Callable[[str], str]:
    """Returns the tool as a function whose name, docstring and types describe it."""

    def get_weather(city: str) -> str:
        """The weather of a city"""
        return weather.call(city)

    return get_weather


# A conversation takes the model, whether to stream, and the tool. It returns the last text of each turn.
Conversation = Callable[[str, bool, Weather], Awaitable[list[str]]]


async def run_conversation(converse: Conversation, model: str, streamed: bool) -> dict[str, object]:
    weather = Weather()
    try:
        texts = await converse(model, streamed, weather)
    except Exception as error:  # noqa: BLE001 (the test checks the client's exception)
        return {"error": f"{type(error).__name__}: {error}"}
    return {"cities": weather.cities, "texts": texts}


def run_conversations(conversations: dict[str, Conversation]) -> None:
    async def run_all() -> dict[str, object]:
        return {
            f"{name}, {model}, {'streamed' if streamed else 'whole'}": await run_conversation(converse, model, streamed)
            for name, converse in conversations.items()
            for model in MODELS
            for streamed in (False, True)
        }

    print(json.dumps(asyncio.run(run_all())))
