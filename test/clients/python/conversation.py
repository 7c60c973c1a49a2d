"""The conversation of conversation.ts, for clients in Python: each program holds it in every case that it names, and
prints what came of it as JSON, case by case: {"cities", "said"}, or {"error"}."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable

URL = os.environ["URL"]
ORIGIN = URL.removesuffix("/v1")
KEY = os.environ["KEY"]
# The key of an organization that stores its responses.
KEEPING_KEY = os.environ["KEEPING_KEY"]
TURNS: list[str] = json.loads(os.environ["TURNS"])
MODELS: list[str] = json.loads(os.environ["MODELS"])
TOOL = json.loads(os.environ["TOOL"])


class Weather:
    """The tool, and what it was called with."""

    def __init__(self) -> None:
        self.cities: list[str] = []

    def call(self, city: str) -> str:
        self.cities.append(city)
        return f"21 degrees in {city}"


def function(weather: Weather) -> Callable[[str], str]:
    """The tool as a function whose name, words and types say all."""

    def get_weather(city: str) -> str:
        """The weather of a city"""
        return weather.call(city)

    return get_weather


# A conversation takes the model, whether to stream, and the tool. It returns the last text of each turn.
Talk = Callable[[str, bool, Weather], Awaitable[list[str]]]


async def held(talk: Talk, model: str, streamed: bool) -> dict[str, object]:
    weather = Weather()
    try:
        said = await talk(model, streamed, weather)
    except Exception as error:  # noqa: BLE001 (the test checks the client's exception)
        return {"error": f"{type(error).__name__}: {error}"}
    return {"cities": weather.cities, "said": said}


def hold(talks: dict[str, Talk]) -> None:
    async def all_of_them() -> dict[str, object]:
        return {
            f"{name}, {model}, {'streamed' if streamed else 'whole'}": await held(talk, model, streamed)
            for name, talk in talks.items()
            for model in MODELS
            for streamed in (False, True)
        }

    print(json.dumps(asyncio.run(all_of_them())))
