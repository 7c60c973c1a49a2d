from anthropic import AsyncAnthropic, beta_async_tool
from conversation import KEY, ORIGIN, TOOL, TURNS, Weather, hold

MAX_TOKENS = 1000


async def by_hand(model: str, streamed: bool, weather: Weather) -> list[str]:
    messages: list = []
    said = []
    tools = [{"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}]
    for content in TURNS:
        messages.append({"role": "user", "content": content})
        while True:
            asking = {"model": model, "max_tokens": MAX_TOKENS, "messages": messages, "tools": tools}
            if streamed:
                async with client.messages.stream(**asking) as stream:
                    answer = await stream.get_final_message()
            else:
                answer = await client.messages.create(**asking)
            messages.append({"role": "assistant", "content": answer.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": weather.call(**block.input)}
                for block in answer.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
        said.append(text_of(answer))
    return said


async def runner(model: str, streamed: bool, weather: Weather) -> list[str]:
    """Its own loop; it keeps to itself what a turn said, so the next one begins with the user's words alone."""

    @beta_async_tool
    async def get_weather(city: str) -> str:
        """The weather of a city"""
        return weather.call(city)

    said = []
    for content in TURNS:
        run = client.beta.messages.tool_runner(
            model=model,
            max_tokens=MAX_TOKENS,
            messages=[{"role": "user", "content": content}],
            tools=[get_weather],
            stream=streamed,
        )
        said.append(text_of(await run.until_done()))
    return said


def text_of(answer) -> str:
    return "".join(block.text for block in answer.content if block.type == "text")


client = AsyncAnthropic(base_url=ORIGIN, api_key=KEY, max_retries=0)
hold({"by hand": by_hand, "runner": runner})
