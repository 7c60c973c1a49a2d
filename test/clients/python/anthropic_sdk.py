from anthropic import AsyncAnthropic, beta_async_tool
from conversation import KEY, ORIGIN, TOOL, TURNS, Weather, run_conversations

MAX_TOKENS = 1000


async def manual_loop(model: str, streamed: bool, weather: Weather) -> list[str]:
    messages: list = []
    texts = []
    tools = [{"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}]
    for content in TURNS:
        messages.append({"role": "user", "content": content})
        while True:
            request = {"model": model, "max_tokens": MAX_TOKENS, "messages": messages, "tools": tools}
            if streamed:
                async with client.messages.stream(**request) as stream:
                    response = await stream.get_final_message()
            else:
                response = await client.messages.create(**request)
            messages.append({"role": "assistant", "content": response.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": weather.call(**block.input)}
                for block in response.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
        texts.append(text_of(response))
    return texts


async def runner(model: str, streamed: bool, weather: Weather) -> list[str]:
    """The SDK's own loop. It doesn't return its messages, so the next turn contains only the user's message."""

    @beta_async_tool
    async def get_weather(city: str) -> str:
        """The weather of a city"""
        return weather.call(city)

    texts = []
    for content in TURNS:
        run = client.beta.messages.tool_runner(
            model=model,
            max_tokens=MAX_TOKENS,
            messages=[{"role": "user", "content": content}],
            tools=[get_weather],
            stream=streamed,
        )
        texts.append(text_of(await run.until_done()))
    return texts


def text_of(response) -> str:
    return "".join(block.text for block in response.content if block.type == "text")


client = AsyncAnthropic(base_url=ORIGIN, api_key=KEY, max_retries=0)
run_conversations({"manual loop": manual_loop, "runner": runner})
