from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from conversation import KEEPING_KEY, KEY, TURNS, URL, Weather, function, hold


def talk_with(make, options=None):
    async def talk(model: str, streamed: bool, weather: Weather) -> list[str]:
        agent = Agent(make(model), tools=[function(weather)], default_options=options)
        session = agent.create_session()
        said = []
        for content in TURNS:
            if streamed:
                stream = agent.run(content, session=session, stream=True)
                async for _ in stream:
                    pass
                answer = await stream.get_final_response()
            else:
                answer = await agent.run(content, session=session)
            said.append(answer.messages[-1].text)
        return said

    return talk


own = {"base_url": URL, "api_key": KEY}
hold(
    {
        "chat": talk_with(lambda model: OpenAIChatCompletionClient(model, **own)),
        "responses": talk_with(lambda model: OpenAIChatClient(model, **own), {"store": False}),
        "chained": talk_with(lambda model: OpenAIChatClient(model, base_url=URL, api_key=KEEPING_KEY)),
        "chained to none": talk_with(lambda model: OpenAIChatClient(model, **own)),
    }
)
