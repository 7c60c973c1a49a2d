import { expect, it, vi } from "vitest";
import { toConverseMessages } from "../../src/models/protocols/converse/converse-request.ts";
import { toConversation } from "../../src/models/core/conversation.ts";
import { createHttpProvider, sendPostRequest } from "../../src/models/core/http-provider.ts";
import type { ProviderCallHandler, ProviderHandlers } from "../../src/models/core/http-provider.ts";
import type { ChatCall, ProviderCall } from "../../src/models/core/provider.ts";
import { callOf, chatOf } from "./adapter-kit.ts";

const TARGET = { url: "https://up.test/", headers: {}, body: "{}" };

/** Returns a provider that converts a request with this function and never responds. */
function providerWith(send: ProviderCallHandler<ChatCall>["send"]) {
  const protocol: ProviderHandlers = {
    id: "up",
    streamType: "text/event-stream",
    chat: { send, convertResponse: () => null },
    failureInBody: () => null,
    failure: (status) => ({ kind: "retry", reason: String(status) }),
    reader: () => ({ push: () => [], flush: () => [], ended: false }),
  };
  return createHttpProvider(protocol);
}

/** Returns a call that has ended. */
const ended = (): ProviderCall => ({ ...callOf(), signal: AbortSignal.abort() });

it("an exception before sending counts as a bug of the gateway, not as a broken connection", async () => {
  const fetching = vi.spyOn(globalThis, "fetch");
  const bug = new RangeError("Maximum call stack size exceeded");
  const early = providerWith(() => Promise.reject(bug));
  await expect(early.send(callOf())).rejects.toBe(bug);
  const late = providerWith(() => {
    throw bug;
  });
  await expect(late.send(callOf())).rejects.toBe(bug);
  expect(fetching).not.toHaveBeenCalled();
  const aborted = { kind: "failure", failure: { kind: "retry", reason: "aborted" } };
  expect(await early.send(ended())).toEqual(aborted);
});

it("a failed fetch counts as a broken connection, or as aborted if the call has ended", async () => {
  vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Network connection lost."));
  const provider = providerWith((call) => sendPostRequest(call, TARGET));
  const failure = { kind: "retry", reason: "connection", again: true };
  expect(await provider.send(callOf())).toEqual({ kind: "failure", failure });
  const aborted = { kind: "retry", reason: "aborted" };
  expect(await provider.send(ended())).toEqual({ kind: "failure", failure: aborted });
});

/** More arguments than a function call can have. */
const MANY = 200_000;
const text = { kind: "text", text: "a" } as const;

it("a message with very many parts is merged with the previous message without overflowing the stack", () => {
  const content = Array.from({ length: MANY }, () => ({ type: "text", text: "a" }));
  const messages = [
    { role: "user", content: "first" },
    { role: "user", content },
  ];
  expect(toConversation(chatOf({ messages }))).toMatchObject({ turns: { length: 1 } });
  const conversation = toConversation(chatOf({ messages }));
  expect("turns" in conversation && conversation.turns[0]?.parts.length).toBe(MANY + 1);
  const turns = [
    { role: "user", parts: [text] } as const,
    { role: "user", parts: Array.from({ length: MANY }, () => text) } as const,
  ];
  const rules = { family: "other", toolBlocks: false, thoughts: false } as const;
  const [merged] = toConverseMessages({ system: [], turns, downloads: new Map() }, rules);
  expect(merged?.content.length).toBe(MANY + 1);
});

/** Returns the image of a message with this address. */
function imageAt(url: string): unknown {
  const conversation = toConversation(
    chatOf({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] }),
  );
  const part = "turns" in conversation ? conversation.turns[0]?.parts[0] : undefined;
  return part?.kind === "image" ? part.image : undefined;
}

it("a data URL may have up to 256 characters before its comma", () => {
  const inline = { mediaType: "image/png", base64: "QUJD" };
  expect(imageAt("data:image/PNG;base64,QUJD")).toEqual(inline);
  expect(imageAt("data:image/png;name=a.png;base64,QUJD")).toEqual(inline);
  const longest = "data:image/png;base64,".length;
  const padded = (length: number): string =>
    `data:image/png;${"a".repeat(length - longest - 1)};base64,QUJD`;
  expect(imageAt(padded(256))).toEqual(inline);
  for (const url of [
    padded(257),
    `data:image/png${";a".repeat(4_000_000)}`,
    `data:image/png${";a".repeat(4_000_000)};base64,QUJD`,
    "data:image/png,QUJD",
    "data:;base64,QUJD",
  ]) {
    expect(imageAt(url)).toEqual({ url });
  }
});
