from conversation import KEEPING_KEY, KEY, ORIGIN, TURNS, URL, Weather, function, hold
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def talk_with(make, settings=None):
    async def talk(model: str, streamed: bool, weather: Weather) -> list[str]:
        async def watch(_, events) -> None:
            async for _event in events:
                pass

        agent = Agent(make(model), tools=[function(weather)], model_settings=settings)
        history: list = []
        said = []
        for content in TURNS:
            handler = watch if streamed else None
            result = await agent.run(content, message_history=history, event_stream_handler=handler)
            history = result.all_messages()
            said.append(result.output)
        return said

    return talk


own = OpenAIProvider(base_url=URL, api_key=KEY)
keeping = OpenAIProvider(base_url=URL, api_key=KEEPING_KEY)
CHAINED = {"openai_previous_response_id": "auto"}
hold(
    {
        "chat": talk_with(lambda model: OpenAIChatModel(model, provider=own)),
        "responses": talk_with(lambda model: OpenAIResponsesModel(model, provider=own)),
        "chained": talk_with(lambda model: OpenAIResponsesModel(model, provider=keeping), CHAINED),
        "chained to none": talk_with(lambda model: OpenAIResponsesModel(model, provider=own), CHAINED),
        "messages": talk_with(
            lambda model: AnthropicModel(model, provider=AnthropicProvider(base_url=ORIGIN, api_key=KEY))
        ),
    }
)
