from conversation import KEEPING_KEY, KEY, ORIGIN, TURNS, URL, Weather, function, hold
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


def talk_with(make):
    async def talk(model: str, streamed: bool, weather: Weather) -> list[str]:
        get_weather = tool(function(weather))
        bound = make(model).bind_tools([get_weather])
        messages: list = []
        said = []
        for content in TURNS:
            messages.append(HumanMessage(content))
            while True:
                if streamed:
                    answer = None
                    async for part in bound.astream(messages):
                        answer = part if answer is None else answer + part
                else:
                    answer = await bound.ainvoke(messages)
                messages.append(answer)
                if not answer.tool_calls:
                    break
                for call in answer.tool_calls:
                    messages.append(await get_weather.ainvoke(call))
            said.append(answer.text)
        return said

    return talk


own = {"base_url": URL, "api_key": KEY, "max_retries": 0}


def chained(model: str, key: str) -> ChatOpenAI:
    return ChatOpenAI(model=model, use_previous_response_id=True, **{**own, "api_key": key})


hold(
    {
        "chat": talk_with(lambda model: ChatOpenAI(model=model, **own)),
        "responses": talk_with(lambda model: ChatOpenAI(model=model, use_responses_api=True, **own)),
        "chained": talk_with(lambda model: chained(model, KEEPING_KEY)),
        "chained to none": talk_with(lambda model: chained(model, KEY)),
        "messages": talk_with(lambda model: ChatAnthropic(model=model, **{**own, "base_url": ORIGIN})),
    }
)
