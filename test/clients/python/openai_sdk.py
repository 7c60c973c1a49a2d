import json

from conversation import KEEPING_KEY, KEY, TOOL, TURNS, URL, Weather, hold
from openai import AsyncOpenAI


async def chat(model: str, streamed: bool, weather: Weather) -> list[str]:
    messages: list = []
    said = []
    tools = [{"type": "function", "function": {**TOOL, "strict": True}}]
    for content in TURNS:
        messages.append({"role": "user", "content": content})
        while True:
            asking = {"model": model, "messages": messages, "tools": tools}
            if streamed:
                async with client.chat.completions.stream(**asking) as stream:
                    answer = await stream.get_final_completion()
            else:
                answer = await client.chat.completions.create(**asking)
            message = answer.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = weather.call(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        said.append(message.content)
    return said


async def responses(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await responded(client, model, streamed, weather, is_chained=False)


async def chained(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await responded(keeping, model, streamed, weather, is_chained=True)


async def chained_to_none(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await responded(client, model, streamed, weather, is_chained=True)


async def responded(client, model: str, streamed: bool, weather: Weather, *, is_chained: bool) -> list[str]:
    given: list = []
    said = []
    before = {}
    tools = [{"type": "function", **TOOL}]
    for content in TURNS:
        given.append({"role": "user", "content": content})
        while True:
            asking = {"model": model, "input": given, "tools": tools, **before}
            if streamed:
                async with client.responses.stream(**asking) as stream:
                    answer = await stream.get_final_response()
            else:
                answer = await client.responses.create(**asking)
            if is_chained:
                given, before = [], {"previous_response_id": answer.id}
            else:
                given += answer.output
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                output = weather.call(**json.loads(call.arguments))
                given.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        said.append(answer.output_text)
    return said


client = AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0)
keeping = client.with_options(api_key=KEEPING_KEY)
hold({"chat": chat, "responses": responses, "chained": chained, "chained to none": chained_to_none})
