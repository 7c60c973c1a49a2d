import { chatOf } from "../providers/adapter-kit.ts";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { downloadImages } from "../../src/models/core/inline-image.ts";
import { toConversation } from "../../src/models/core/conversation.ts";
import { cleanMessage } from "../../src/models/core/cleaned-message.ts";
import { HELLO, openAccount, send } from "../contract/client.ts";

/**
 * Texts for which a careless pattern takes seconds. The test's timeout suffices if everything reads
 * them in linear time, but not in quadratic time, which would take many seconds for each.
 */
const LONG = 100_000;
const CHAT = "/v1/chat/completions";
const body = { model: "sandbox/echo", messages: HELLO };

const download = (url: string): ReturnType<typeof downloadImages> => {
  const content = [{ type: "image_url", image_url: { url } }];
  const conversation = toConversation(chatOf({ messages: [{ role: "user", content }] }));
  if ("reason" in conversation) throw new Error(conversation.reason);
  return downloadImages(conversation, { signal: new AbortController().signal });
};

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

describe("a content-type of 100,000 characters", () => {
  it.each([
    ["spaces", `application/json${" ".repeat(LONG)}x`],
    ["spaces after a parameter", `application/json; charset=utf-8${" ".repeat(LONG)}x`],
    ["spaces before a parameter", `application/json${" ".repeat(LONG)};${" ".repeat(LONG)}x`],
    ["parameters", `application/json${"; charset=utf-8".repeat(LONG / 10)}`],
  ])("results quickly in an error with or without a key: %s", async (_, type) => {
    const headers = { "content-type": type };
    expect((await send(CHAT, { key, body, headers })).status).toBe(415);
    expect((await send(CHAT, { body, headers })).status).toBe(401);
    expect((await send("/v1/users", { key, body, headers })).status).toBe(415);
  });

  it("exceeds the limit for a JSON content type, which is exactly 100 characters", async () => {
    const statuses = [99, 100].map(async (length) => {
      const type = "application/json;charset=utf-8".padEnd(length) + ";";
      return (await send(CHAT, { key, body, headers: { "content-type": type } })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 415]);
  });
});

describe("a header or path of 100,000 characters", () => {
  it.each([" ", "a", ",", "=", ";", "a ", "Bearer "])(
    "doesn't delay the response for a header of many %j",
    async (unit) => {
      const long = `a${unit.repeat(LONG / unit.length)}a`;
      for (const name of ["authorization", "idempotency-key", "accept", "content-encoding"]) {
        const response = await send(CHAT, { key, body, headers: { [name]: long } });
        expect([name, response.status < 500]).toEqual([name, true]);
        await response.text();
      }
    },
  );

  it.each(["/", "./", "../", "a/", "%41", "%2F", "%2e%2e/", "a.", "?", "&a", "a=b&"])(
    "doesn't delay the response for a path of many %j",
    async (unit) => {
      for (const start of ["/v1/models/", "/v1/users/", "/v1/users?", "/internal/v1/", "/"]) {
        const response = await send(start + unit.repeat(LONG / unit.length), { key });
        expect(response.status).toBeLessThan(500);
        await response.text();
      }
    },
  );
});

describe("the URL of an image in a prompt", () => {
  const refused = { kind: "refused", reason: "image" };
  it.each([
    ["dots", `https://a${".".repeat(LONG)}b/`],
    ["labels", `https://${"a.".repeat(LONG)}local/`],
    ["digits", `https://${"1.".repeat(LONG)}x/`],
    ["parameters of a data URL", `data:image/png${";a".repeat(LONG)};base64,x`],
  ])("returns an error without a request for a host or data URL of many %s", async (_, url) => {
    const fetched = vi.spyOn(globalThis, "fetch");
    expect(await download(url)).toMatchObject(refused);
    expect(fetched).not.toHaveBeenCalled();
  });

  it("may contain a host name of 253 characters but not of 254", async () => {
    const labels = `${"a".repeat(61)}.`.repeat(4);
    const longest = `${labels}ex`.padEnd(253, "e");
    const fetched = vi
      .spyOn(globalThis, "fetch")
      .mockResolvedValue(new Response("x", { headers: { "content-type": "image/png" } }));
    expect(await download(`https://${longest}e/`)).toMatchObject(refused);
    expect(fetched).not.toHaveBeenCalled();
    expect(await download(`https://${longest}/`)).toHaveProperty("turns");
  });
});

it("a provider's error message of 100,000 characters is cleaned like its first 4,000 characters", () => {
  for (const unit of ["a", ".", "a.", "-a-", "0:", "::a", "/a", "a@", "_", "***", "sk-", "a:1 "]) {
    const cleaned = cleanMessage(unit.repeat(LONG / unit.length));
    expect(cleaned).toBe(cleanMessage(unit.repeat(4000).slice(0, 4000)));
  }
});
