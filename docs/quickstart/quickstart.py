from openai import APIStatusError, OpenAI

client = OpenAI()  # reads OPENAI_BASE_URL and OPENAI_API_KEY

completion = client.chat.completions.create(
    model="smart",
    max_tokens=200,
    messages=[{"role": "user", "content": "Hello"}],
)
print(completion.choices[0].message.content)

stream = client.chat.completions.create(
    model="smart",
    max_tokens=200,
    stream=True,
    stream_options={"include_usage": True},
    messages=[{"role": "user", "content": "Count to three"}],
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")
    if chunk.usage:
        print(f"\n{chunk.usage.total_tokens} tokens")

balance = client.get("/balance", cast_to=dict[str, object])
print(balance["credits_micro"], "micro-credits left")

try:
    client.chat.completions.create(
        model="no-such-model",
        messages=[{"role": "user", "content": "Hello"}],
    )
except APIStatusError as error:
    print(error.status_code, error.code)
