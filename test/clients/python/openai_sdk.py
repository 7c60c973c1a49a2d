import json

from conversation import STORING_KEY, KEY, TOOL, TURNS, URL, Weather, run_conversations
from openai import AsyncOpenAI


async def chat(model: str, streamed: bool, weather: Weather) -> list[str]:
    messages: list = []
    texts = []
    tools = [{"type": "function", "function": {**TOOL, "strict": True}}]
    for content in TURNS:
        messages.append({"role": "user", "content": content})
        while True:
            request = {"model": model, "messages": messages, "tools": tools}
            if streamed:
                async with client.chat.completions.stream(**request) as stream:
                    response = await stream.get_final_completion()
            else:
                response = await client.chat.completions.create(**request)
            message = response.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = weather.call(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        texts.append(message.content)
    return texts


async def responses(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await converse_responses(client, model, streamed, weather, is_chained=False)


async def chained(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await converse_responses(storing, model, streamed, weather, is_chained=True)


async def chained_without_storage(model: str, streamed: bool, weather: Weather) -> list[str]:
    return await converse_responses(client, model, streamed, weather, is_chained=True)


async def converse_responses(client, model: str, streamed: bool, weather: Weather, *, is_chained: bool) -> list[str]:
    items: list = []
    texts = []
    continuation = {}
    tools = [{"type": "function", **TOOL}]
    for content in TURNS:
        items.append({"role": "user", "content": content})
        while True:
            request = {"model": model, "input": items, "tools": tools, **continuation}
            if streamed:
                async with client.responses.stream(**request) as stream:
                    response = await stream.get_final_response()
            else:
                response = await client.responses.create(**request)
            if is_chained:
                items, continuation = [], {"previous_response_id": response.id}
            else:
                items += response.output
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                output = weather.call(**json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
        texts.append(response.output_text)
    return texts


client = AsyncOpenAI(base_url=URL, api_key=KEY, max_retries=0)
storing = client.with_options(api_key=STORING_KEY)
run_conversations({"chat": chat, "responses": responses, "chained": chained, "chained without storage": chained_without_storage})
