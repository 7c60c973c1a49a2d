import json

from conversation import KEY, TOOL, TURNS, URL, Weather, run_conversations
from openrouter import OpenRouter

MICROS = 1_000_000


async def chat(model: str, streamed: bool, weather: Weather) -> list[str]:
    async with OpenRouter(api_key=KEY, server_url=URL) as client:
        before = (await client.credits.get_credits_async()).data.total_usage
        messages: list = []
        texts = []
        costs = []
        for content in TURNS:
            messages.append({"role": "user", "content": content})
            while True:
                message, cost, generation = await send(client, model, messages, streamed)
                costs.append(cost)
                messages.append(message)
                if "tool_calls" not in message:
                    break
                for call in message["tool_calls"]:
                    result = weather.call(**json.loads(call["function"]["arguments"]))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            texts.append(message["content"])
        receipt = (await client.generations.get_generation_async(id=generation)).data
        assert receipt.total_cost == costs[-1] > 0, (receipt.total_cost, costs)
        after = (await client.credits.get_credits_async()).data.total_usage
        assert round((after - before) * MICROS) == round(sum(costs) * MICROS), (before, after, costs)
        key = (await client.api_keys.get_current_key_metadata_async()).data
        assert key.usage == after, (key.usage, after)
        return texts


async def send(client: OpenRouter, model: str, messages: list, streamed: bool) -> tuple[dict, float, str]:
    request = {
        "model": model,
        "messages": messages,
        "tools": [{"type": "function", "function": TOOL}],
        "provider": {"allow_fallbacks": True, "sort": "price"},
    }
    if not streamed:
        response = await client.chat.send_async(**request)
        message = response.choices[0].message
        calls = [call.model_dump() for call in message.tool_calls or []]
        return to_message(message.content, calls), response.usage.cost, response.id
    text, calls, usage = "", {}, None
    async for chunk in await client.chat.send_async(**request, stream=True):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"type": "function", "function": {"name": "", "arguments": ""}})
                call["id"] = part.id or call.get("id")
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    return to_message(text, list(calls.values())), usage.cost, chunk.id


def to_message(text: str | None, calls: list) -> dict:
    message = {"role": "assistant", "content": text}
    return {**message, "tool_calls": calls} if calls else message


run_conversations({"chat": chat})
