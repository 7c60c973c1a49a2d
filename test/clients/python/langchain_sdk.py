from conversation import STORING_KEY, KEY, ORIGIN, TURNS, URL, Weather, function, run_conversations
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def conversation_with(make):
    async def converse(model: str, streamed: bool, weather: Weather) -> list[str]:
        get_weather = tool(function(weather))
        bound = make(model).bind_tools([get_weather])
        messages: list = []
        texts = []
        for content in TURNS:
            messages.append(HumanMessage(content))
            while True:
                if streamed:
                    response = None
                    async for part in bound.astream(messages):
                        response = part if response is None else response + part
                else:
                    response = await bound.ainvoke(messages)
                messages.append(response)
                if not response.tool_calls:
                    break
                for call in response.tool_calls:
                    messages.append(await get_weather.ainvoke(call))
            texts.append(response.text)
        return texts

    return converse


own = {"base_url": URL, "api_key": KEY, "max_retries": 0}


def chained(model: str, key: str) -> ChatOpenAI:
    return ChatOpenAI(model=model, use_previous_response_id=True, **{**own, "api_key": key})


run_conversations(
    {
        "chat": conversation_with(lambda model: ChatOpenAI(model=model, **own)),
        "responses": conversation_with(lambda model: ChatOpenAI(model=model, use_responses_api=True, **own)),
        "chained": conversation_with(lambda model: chained(model, STORING_KEY)),
        "chained without storage": conversation_with(lambda model: chained(model, KEY)),
        "messages": conversation_with(lambda model: ChatAnthropic(model=model, **{**own, "base_url": ORIGIN})),
    }
)
