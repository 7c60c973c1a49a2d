import { expect, it, vi } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";

it("a provider's extra headers and key are sent with every request", async () => {
  const sent: Headers[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
    sent.push(new Headers(init?.headers));
    return new Response("{}", { status: 500 });
  });
  const profile = PROVIDER_HOST_PROFILES.get("generic");
  if (profile === undefined) throw new Error("no generic profile");
  const headers = { "cf-aig-authorization": "Bearer aig" };
  const provider = createOpenAiCompatibleProvider({
    id: "up",
    baseUrl: "http://up.test/v1",
    profile,
    secret: "key",
    headers,
  });
  await provider.send({
    kind: "chat",
    body: { model: "m", messages: [{ role: "user", content: "Hi" }] },
    upstreamId: "m",
    cap: 10,
    stream: false,
    signal: new AbortController().signal,
  });
  expect(sent[0]?.get("cf-aig-authorization")).toBe("Bearer aig");
  expect(sent[0]?.get("authorization")).toBe("Bearer key");
});
