"""Calls the endpoints besides chat with OpenAI's, Cohere's and Mistral's SDKs, and prints the results."""

import base64
import json
import os

import cohere
from mistralai.client import Mistral
from openai import OpenAI

URL = os.environ["URL"]
KEY = os.environ["KEY"]
ORIGIN = URL.removesuffix("/v1")
AUDIO = b"ID3" + b"\x07" * 19_997
PICTURE = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def types(stream) -> str:
    return " ".join(event.type for event in stream)


def names(stream) -> str:
    return " ".join(event.event for event in stream)


def openai_results() -> dict:
    client = OpenAI(base_url=URL, api_key=KEY, max_retries=0)
    transcription = {"model": "sandbox/transcribe", "file": ("a.mp3", AUDIO)}
    image = {"model": "sandbox/image", "prompt": "a red fox"}
    edit = {"model": "sandbox/image", "prompt": "make it blue", "image": ("a.png", PICTURE)}
    edited = client.images.edit(**{**edit, "image": [("a.png", PICTURE), ("b.png", PICTURE)]}, n=2)
    moderated = client.moderations.create(model="sandbox/moderation", input="violence")
    spoken = client.audio.speech.create(model="sandbox/speech", voice="alloy", input="Hello")
    return {
        "moderation": [one.flagged for one in moderated.results],
        "transcription": client.audio.transcriptions.create(**transcription).text,
        "transcription streamed": types(client.audio.transcriptions.create(**transcription, stream=True)),
        "images": len(client.images.generate(**image, n=2).data),
        "image streamed": types(client.images.generate(**image, stream=True, partial_images=1)),
        "images edited": [len(edited.data), edited.usage.input_tokens_details.image_tokens],
        "edit streamed": types(client.images.edit(**edit, stream=True, partial_images=1)),
        "speech": spoken.read().decode(),
    }


def cohere_results() -> dict:
    ranking = {"model": "sandbox/rerank", "query": "a red fox", "top_n": 1, "request_options": {"max_retries": 0}}
    documents = ["a blue dog", "the red fox"]
    one = cohere.Client(api_key=KEY, base_url=ORIGIN).rerank(**ranking, documents=documents, return_documents=True)
    two = cohere.ClientV2(api_key=KEY, base_url=ORIGIN).rerank(**ranking, documents=documents)
    return {
        "rerank 1": [one.results[0].index, one.results[0].document.text],
        "rerank 2": [two.results[0].index, two.meta.billed_units.search_units],
    }


def mistral_results() -> dict:
    client = Mistral(api_key=KEY, server_url=ORIGIN)
    chat = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello there"}]}
    transcription = {"model": "sandbox/transcribe", "file": {"file_name": "a.mp3", "content": AUDIO}}
    speech = {"model": "sandbox/speech", "voice_id": "alloy", "input": "Hello"}
    whole = client.chat.complete(**chat).choices[0].message.content
    streamed = "".join(event.data.choices[0].delta.content or "" for event in client.chat.stream(**chat))
    moderated = client.classifiers.moderate(model="sandbox/moderation", inputs=["hello", "violence"])
    transcribed = client.audio.transcriptions.complete(**transcription)
    document = {"type": "document_url", "document_url": "https://example.com/a.pdf"}
    read = client.ocr.process(model="sandbox/ocr", document=document, pages=[0, 1])
    return {
        "chat": "Hello there" in whole,
        "chat streamed": streamed == whole,
        "embeddings": len(client.embeddings.create(model="sandbox/embed", inputs=["a"]).data[0].embedding),
        "moderation": [one.categories["violence"] for one in moderated.results],
        "transcription": [transcribed.text, transcribed.usage.prompt_audio_seconds],
        "transcription streamed": names(client.audio.transcriptions.stream(**transcription)),
        "speech": base64.b64decode(client.audio.speech.complete(**speech).audio_data).decode(),
        "speech streamed": names(client.audio.speech.complete(**speech, stream=True)),
        "ocr": [page.markdown for page in read.pages],
    }


print(json.dumps({"openai": openai_results(), "cohere": cohere_results(), "mistral": mistral_results()}))
