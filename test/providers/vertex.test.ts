import { expect, it, vi } from "vitest";
import type { Provider, ProviderResult } from "../../src/models/core/provider.ts";
import { errorBody, GOOGLE_CHAT, GOOGLE_FAILURES, jsonReply } from "../fixtures/google-replies.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { callOf, eventsOf, messageOf, mockNetwork } from "./adapter-kit.ts";
import type { SentRequest } from "./adapter-kit.ts";
import { builtIn, configOf, MODEL } from "./google-kit.ts";
import { ACCOUNT, credentials, TOKEN, token, verified, vertexProvider } from "./vertex-kit.ts";

const send = (provider: Provider) => provider.send(callOf({ upstreamId: MODEL }));
const ANSWER = GOOGLE_CHAT.text.json;
const REFUSED = GOOGLE_FAILURES.errors["unauthenticated"] ?? TOKEN;
const NOW_MS = 1_760_000_000_999;
const kindOf = (answer: ProviderResult) =>
  answer.kind === "failure" ? answer.failure : answer.kind;

/** Returns the called hosts in order: "token", or "model" with its token. */
function steps(requests: readonly SentRequest[]): string[] {
  return requests.map(({ url, headers }) =>
    url.includes("oauth2") ? "token" : `model ${headers.get("authorization") ?? ""}`,
  );
}

it("the Vertex provider exchanges a signed assertion for a token, and sends the prompt to the right region", async () => {
  const requests = mockNetwork([TOKEN, ANSWER]);
  expect(kindOf(await send(await vertexProvider(() => NOW_MS)))).toBe("json");
  const [exchange, prompt] = requests;
  expect(exchange?.url).toBe("https://oauth2.googleapis.com/token");
  expect(exchange?.headers.get("content-type")).toBe("application/x-www-form-urlencoded");
  const form = new URLSearchParams(exchange?.text);
  expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
  expect(await verified(form.get("assertion") ?? "")).toEqual({
    alg: "RS256",
    typ: "JWT",
    iss: ACCOUNT.client_email,
    scope: "https://www.googleapis.com/auth/cloud-platform",
    aud: "https://oauth2.googleapis.com/token",
    iat: 1_760_000_000,
    exp: 1_760_003_600,
  });
  expect([...form.keys()]).toEqual(["grant_type", "assertion"]); // without any text of a prompt
  expect(prompt?.url).toBe(
    `https://aiplatform.eu.rep.googleapis.com/v1/projects/canary-project/locations/eu/publishers/google/models/${MODEL}:generateContent`,
  );
  expect(prompt?.headers.get("authorization")).toBe("Bearer ya29.canary-token");
  expect(prompt?.headers.has("x-goog-api-key")).toBe(false);
  expect(requests.every((one) => one.init.redirect === "manual")).toBe(true);
});

it("the Vertex provider streams like the Gemini API", async () => {
  const provider = await vertexProvider();
  mockNetwork([TOKEN, ANSWER]);
  await send(provider);
  const list = await eventsOf(provider, { upstreamId: MODEL }, GOOGLE_CHAT.tools.stream);
  expect(messageOf(list).tools).toHaveLength(3);
});

it("the Vertex provider derives its address from the region or from the configuration", async () => {
  const us = await vertexProvider(() => NOW_MS, { REGION: "us" });
  const own = await vertexProvider(() => NOW_MS, {
    VERTEX_BASE_URL: "https://proxy.example/v1beta1/",
    VERTEX_TOKEN_URL: "https://tokens.example/t",
  });
  const requests = mockNetwork([TOKEN, ANSWER, TOKEN, ANSWER]);
  await send(us);
  await send(own);
  expect(requests.map((one) => one.url.replace(/\/publishers.*/, ""))).toEqual([
    "https://oauth2.googleapis.com/token",
    "https://aiplatform.us.rep.googleapis.com/v1/projects/canary-project/locations/us",
    "https://tokens.example/t",
    "https://proxy.example/v1beta1/projects/canary-project/locations/eu",
  ]);
});

it("the Vertex provider reuses a token until five minutes before it expires", async () => {
  let nowMs = NOW_MS;
  const provider = await vertexProvider(() => nowMs);
  const requests = mockNetwork([token("a"), ANSWER, ANSWER, token("b"), ANSWER]);
  await send(provider);
  nowMs += 3_299_000 - 1;
  await send(provider);
  nowMs += 1;
  await send(provider);
  expect(steps(requests)).toEqual([
    "token",
    "model Bearer a",
    "model Bearer a",
    "token",
    "model Bearer b",
  ]);
});

it("concurrent calls of the Vertex provider share one token exchange, even if the exchange fails", async () => {
  const provider = await vertexProvider();
  const requests = mockNetwork([{ ...TOKEN, status: 503 }, TOKEN, ANSWER]);
  const failed = await Promise.all([send(provider), send(provider), send(provider)]);
  const failure = { kind: "retry", reason: "token_503" };
  expect(failed.map(kindOf)).toEqual([failure, failure, failure]);
  expect(requests).toHaveLength(1);
  const answers = await Promise.all([send(provider), send(provider), send(provider)]);
  expect(answers.map(kindOf)).toEqual(["json", "json", "json"]);
  expect(steps(requests).filter((step) => step === "token")).toHaveLength(2);
});

it("concurrent calls of the Vertex provider wait for a slow token exchange", async () => {
  const provider = await vertexProvider();
  const response = Promise.withResolvers<Response>();
  let exchanges = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation((input) => {
    const { body, headers } = ANSWER;
    if (input !== "https://oauth2.googleapis.com/token") {
      return Promise.resolve(new Response(body, { headers: { ...headers } }));
    }
    exchanges++;
    return response.promise;
  });
  const calls = [send(provider), send(provider)];
  await vi.waitUntil(() => exchanges > 0);
  await new Promise((resolve) => setTimeout(resolve, 50));
  response.resolve(new Response(TOKEN.body, { headers: { ...TOKEN.headers } }));
  expect((await Promise.all(calls)).map(kindOf)).toEqual(["json", "json"]);
  expect(exchanges).toBe(1);
});

it("the Vertex provider recovers after a token exchange is aborted along with its request", async () => {
  const provider = await vertexProvider();
  // Seconds become milliseconds for this provider only, because fake timers would affect all
  // requests.
  const { setTimeout: later } = globalThis;
  const setTimeoutMock = vi.spyOn(globalThis, "setTimeout");
  setTimeoutMock.mockImplementation((run: () => void, ms = 0) => later(run, ms / 1000));
  try {
    let exchanges = 0;
    vi.spyOn(globalThis, "fetch").mockImplementation((input) => {
      const isExchange = input === "https://oauth2.googleapis.com/token";
      const { body, headers } = isExchange ? TOKEN : ANSWER;
      const isHanging = isExchange && ++exchanges === 1;
      return isHanging
        ? Promise.withResolvers<Response>().promise
        : Promise.resolve(new Response(body, { headers: { ...headers } }));
    });
    void send(provider);
    // Signing takes real turns of the event loop.
    await vi.waitUntil(() => exchanges === 1);
    const second = send(provider);
    expect(kindOf(await second)).toBe("json");
    expect(exchanges).toBe(2);
  } finally {
    setTimeoutMock.mockRestore();
  }
});

it("the Vertex provider replaces a rejected token once, and disables the route after another rejection", async () => {
  const provider = await vertexProvider();
  const requests = mockNetwork([
    token("a"),
    REFUSED,
    token("b"),
    ANSWER,
    REFUSED,
    token("c"),
    REFUSED,
  ]);
  expect(kindOf(await send(provider))).toBe("json");
  expect(steps(requests)).toEqual(["token", "model Bearer a", "token", "model Bearer b"]);
  expect(requests[3]?.text).toBe(requests[1]?.text);
  expect(kindOf(await send(provider))).toEqual({ kind: "disabled", reason: "401" });
  expect(requests).toHaveLength(7);
});

it.each<[string, RawReply, object]>([
  ["a rejected account", { ...TOKEN, status: 400 }, { kind: "disabled", reason: "token_400" }],
  ["a forbidden account", { ...TOKEN, status: 403 }, { kind: "disabled", reason: "token_403" }],
  ["a limit", { ...TOKEN, status: 429 }, { kind: "retry", reason: "token_429" }],
  ["a redirect", { ...TOKEN, status: 302 }, { kind: "retry", reason: "token_302" }],
  ["invalid JSON", { ...TOKEN, body: "<h1>" }, { kind: "retry", reason: "token_missing" }],
  [
    "a token that doesn't fit in a header",
    token("a\r\nb: c"),
    { kind: "retry", reason: "token_missing" },
  ],
])(
  "the Vertex provider sends no prompt after a token exchange that fails with %s",
  async (_name, reply, failure) => {
    const requests = mockNetwork(reply);
    expect(kindOf(await send(await vertexProvider()))).toEqual(failure);
    expect(requests).toHaveLength(1);
  },
);

it("the Vertex provider returns no account data in a rejection", async () => {
  const text = `${ACCOUNT.client_email} ya29.canary-token canary-project, said "x"`;
  mockNetwork([TOKEN, jsonReply(errorBody(400, "INVALID_ARGUMENT", text), 400)]);
  const answer = await send(await vertexProvider());
  expect(JSON.stringify(answer)).not.toMatch(/canary/);
  expect(answer).toMatchObject({ failure: { message: expect.stringContaining("said") } });
});

it("the Vertex provider and the Gemini API need separate secrets, and are available in the regions of their hosts", async () => {
  const all = { GEMINI_API_KEY: "k", GOOGLE_VERTEX_CREDENTIALS: await credentials() };
  for (const id of ["google", "vertex"] as const) {
    expect(builtIn(id).isSet(configOf({}))).toBe(false);
    expect(builtIn(id).isSet(configOf(all))).toBe(true);
    expect(builtIn(id).problems(configOf({}))).toEqual([]);
    expect(builtIn(id).problems(configOf(all))).toEqual([]);
    expect(builtIn(id).build(configOf(all)).id).toBe(id);
  }
  const us = configOf({ REGION: "us" });
  expect(
    ["eu", "us"].map((region) => builtIn("google").tags(configOf({ REGION: region }))),
  ).toEqual([["global"], ["global"]]);
  expect([builtIn("vertex").tags(configOf({})), builtIn("vertex").tags(us)]).toEqual([
    ["eu"],
    ["us"],
  ]);
});

/** Returns the fields that are missing in these credentials. */
function missingIn(value: unknown): string[] {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const problems = builtIn("vertex").problems(configOf({ GOOGLE_VERTEX_CREDENTIALS: text }));
  expect(JSON.stringify(problems)).not.toMatch(/canary|MII/);
  return problems.map((one) => one.problem.replace(/.*missing: /, ""));
}

it("the Vertex provider reports missing credential fields, but no values", async () => {
  const key: Record<string, unknown> = JSON.parse(await credentials());
  expect(missingIn(key)).toEqual([]);
  expect(missingIn("canary")).toEqual(["a JSON object"]);
  expect(missingIn({ ...key, client_email: "" })).toEqual(["client_email"]);
  expect(missingIn({ ...key, project_id: "canary/../x" })).toEqual(["project_id"]);
  expect(missingIn({ ...key, private_key: 7 })).toEqual(["private_key"]);
  expect(missingIn({})).toEqual(["client_email, private_key, project_id"]);
  const urls = ["GEMINI_BASE_URL", "VERTEX_BASE_URL", "VERTEX_TOKEN_URL"];
  const bad = configOf(Object.fromEntries(urls.map((name) => [name, "https://a:b@canary/"])));
  const named = [...builtIn("google").problems(bad), ...builtIn("vertex").problems(bad)];
  expect(named.map((one) => one.variable)).toEqual(urls);
});

/** Returns the problems of a Vertex address in a region. */
const problemsOf = (region: string, host: string) =>
  builtIn("vertex").problems(configOf({ REGION: region, VERTEX_BASE_URL: `https://${host}/v1` }));

it("the Vertex provider rejects another Google host's base URL, because that host may store prompts elsewhere", () => {
  const eu = "aiplatform.eu.rep.googleapis.com";
  for (const host of ["aiplatform.googleapis.com", "us-central1-aiplatform.googleapis.com"]) {
    expect(problemsOf("eu", host)).toMatchObject([{ variable: "VERTEX_BASE_URL" }]);
  }
  expect(problemsOf("us", eu)).toMatchObject([{ variable: "VERTEX_BASE_URL" }]);
  expect([...problemsOf("eu", eu), ...problemsOf("eu", "proxy.test")]).toEqual([]);
});

const withKey = (private_key: string) =>
  vertexProvider(() => NOW_MS, {
    GOOGLE_VERTEX_CREDENTIALS: JSON.stringify({ ...ACCOUNT, private_key }),
  });

it("the Vertex provider disables the route if the private key is invalid, and accepts escaped line breaks", async () => {
  const requests = mockNetwork([TOKEN, ANSWER]);
  for (const key of ["x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]) {
    const answer = await send(await withKey(key));
    expect(kindOf(answer)).toEqual({ kind: "disabled", reason: "private_key" });
  }
  expect(requests).toEqual([]);
  const { private_key: sound } = JSON.parse(await credentials()) as { private_key: string };
  expect(kindOf(await send(await withKey(sound.replaceAll("\n", "\\n"))))).toBe("json");
});
