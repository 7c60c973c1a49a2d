from conversation import STORING_KEY, KEY, ORIGIN, TURNS, URL, Weather, function, run_conversations
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def conversation_with(make, settings=None):
    async def converse(model: str, streamed: bool, weather: Weather) -> list[str]:
        async def read_events(_, events) -> None:
            async for _event in events:
                pass

        agent = Agent(make(model), tools=[function(weather)], model_settings=settings)
        history: list = []
        texts = []
        for content in TURNS:
            handler = read_events if streamed else None
            result = await agent.run(content, message_history=history, event_stream_handler=handler)
            history = result.all_messages()
            texts.append(result.output)
        return texts

    return converse


own = OpenAIProvider(base_url=URL, api_key=KEY)
storing = OpenAIProvider(base_url=URL, api_key=STORING_KEY)
CHAINED = {"openai_previous_response_id": "auto"}
run_conversations(
    {
        "chat": conversation_with(lambda model: OpenAIChatModel(model, provider=own)),
        "responses": conversation_with(lambda model: OpenAIResponsesModel(model, provider=own)),
        "chained": conversation_with(lambda model: OpenAIResponsesModel(model, provider=storing), CHAINED),
        "chained without storage": conversation_with(lambda model: OpenAIResponsesModel(model, provider=own), CHAINED),
        "messages": conversation_with(
            lambda model: AnthropicModel(model, provider=AnthropicProvider(base_url=ORIGIN, api_key=KEY))
        ),
    }
)
