from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from conversation import STORING_KEY, KEY, TURNS, URL, Weather, function, run_conversations


def conversation_with(make, options=None):
    async def converse(model: str, streamed: bool, weather: Weather) -> list[str]:
        agent = Agent(make(model), tools=[function(weather)], default_options=options)
        session = agent.create_session()
        texts = []
        for content in TURNS:
            if streamed:
                stream = agent.run(content, session=session, stream=True)
                async for _ in stream:
                    pass
                response = await stream.get_final_response()
            else:
                response = await agent.run(content, session=session)
            texts.append(response.messages[-1].text)
        return texts

    return converse


own = {"base_url": URL, "api_key": KEY}
run_conversations(
    {
        "chat": conversation_with(lambda model: OpenAIChatCompletionClient(model, **own)),
        "responses": conversation_with(lambda model: OpenAIChatClient(model, **own), {"store": False}),
        "chained": conversation_with(lambda model: OpenAIChatClient(model, base_url=URL, api_key=STORING_KEY)),
        "chained without storage": conversation_with(lambda model: OpenAIChatClient(model, **own)),
    }
)
