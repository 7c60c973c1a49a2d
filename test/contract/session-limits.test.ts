import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SESSION_TOKEN_LENGTH_MAX } from "../../src/accounts/keys/session-token.ts";
import { registerOf } from "../keys/register-fixture.ts";
import { makeKey, shiftClock } from "../keys/key-fixture.ts";
import { chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey } from "./key-client.ts";
import { createSession } from "./session-client.ts";

const PAGE = "https://app.example.com";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

/**
 * Creates a key of 20 requests per minute with a session of two. Returns the session and the key's
 * remaining requests.
 */
async function keyAndSession(): Promise<{
  readonly token: string;
  readonly readRemaining: () => Promise<number>;
}> {
  const { key } = await createKey(account.key, { rpm_limit: 20 });
  const { token } = await createSession(key, { rpm_limit: 2 });
  const readRemaining = async (): Promise<number> => {
    const { headers } = await send("/v1/models", { key });
    return Number(headers.get("x-ratelimit-remaining-requests"));
  };
  expect(await readRemaining()).toBe(18); // the creation of the session and this check count
  return { token, readRemaining };
}

describe("a request rejected by the rate limit of a session", () => {
  const large = "x".repeat(70 * 1024); // the key is admitted before the body is read
  it.each<[string, (token: string) => Promise<Response>]>([
    ["paid requests", (token) => chat(token)],
    ["large requests", (token) => chat(token, { messages: [{ role: "user", content: large }] })],
    ["requests with invalid bodies", (token) => chat(token, { temperature: 9 })],
    [
      "requests for models that the session can't use",
      (token) => chat(token, { model: "no/such" }),
    ],
    ["requests for the model list", (token) => send("/v1/models", { key: token })],
  ])(
    "doesn't count against the requests per minute of the session's key: %s",
    async (_, sendRequest) => {
      const { token, readRemaining } = await keyAndSession();
      for (let n = 0; n < 2; n++) expect((await sendRequest(token)).status).not.toBe(429);
      for (let n = 0; n < 8; n++) {
        const error = await errorOf(await sendRequest(token), 429);
        expect(error.message).toContain("for this session");
      }
      expect(await readRemaining()).toBe(15);
      shiftClock(61_000);
      expect((await sendRequest(token)).status).not.toBe(429);
    },
  );

  it("blocks neither other sessions nor the key", async () => {
    const { token, readRemaining } = await keyAndSession();
    const answers = await Promise.all(Array.from({ length: 30 }, () => chat(token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    expect(await readRemaining()).toBe(15);
  });

  it("doesn't count against the rate limit in the key's Durable Object", async () => {
    const { booked } = await makeKey({ rpmLimit: 20 });
    const register = registerOf(booked.keyHash);
    const session = { id: "ses_one", rpmLimit: 2 };
    const answers = [];
    for (let n = 0; n < 10; n++) {
      answers.push(await register.admit(null, undefined, session));
    }
    expect(answers.filter(({ ok }) => ok)).toHaveLength(2);
    expect(answers.at(-1)).toMatchObject({
      failure: { kind: "rate_limited", scope: "session", limit: 2 },
    });
    const other = { id: "ses_two", rpmLimit: 2 };
    expect((await register.admit(null, undefined, other)).ok).toBe(true);
    expect(await register.admit()).toMatchObject({ ok: true, remaining: 16 });
  });
});

const rate = ({ headers }: Response): readonly (string | null)[] =>
  ["limit", "remaining"].map((name) => headers.get(`x-ratelimit-${name}-requests`));

it("a session with its own rate limit gets the number of remaining requests in the response headers", async () => {
  const { token } = await keyAndSession();
  expect(rate(await send("/v1/models", { key: token }))).toEqual(["2", "1"]);
  expect(rate(await chat(token))).toEqual(["2", "0"]);
});

it("a session without allowed_models can use the key's models, even if the token has no space to list them", async () => {
  const allowed_models = ["sandbox/agent", "smart"];
  const { key } = await createKey(account.key, { allowed_models });
  const { token } = await createSession(key);
  expect(await modelsOf(token)).toEqual(allowed_models);
  const { token: short } = await createSession(account.key, { origins: [PAGE] });
  const room = Math.floor(((SESSION_TOKEN_LENGTH_MAX - short.length) * 3) / 4) - 8;
  const page = `${PAGE}${".x".repeat(room / 2)}`;
  const { token: full } = await createSession(key, { origins: [page] });
  expect(await modelsOf(full, { origin: page })).toEqual(allowed_models);
  for (const [one, headers] of [
    [token, {}],
    [full, { origin: page }],
  ] as const) {
    const refused = await chat(one, { model: "cheap" }, { headers });
    expect((await errorOf(refused, 403)).code).toBe("model_not_allowed");
    expect((await chat(one, { model: "smart" }, { headers })).status).toBe(200);
  }
});

function mintLong(characters: number): Promise<Response> {
  const origins = [`${PAGE}${"x".repeat(characters)}`];
  return send("/v1/sessions", { key: account.key, body: { origins, expires_in: 60 } });
}

it("a session's token can reach the length limit but not exceed it by one character", async () => {
  const { token: short } = await (await mintLong(0)).json<{ token: string }>();
  const room = Math.floor(((SESSION_TOKEN_LENGTH_MAX - short.length) * 3) / 4);
  const answers = await Promise.all([-2, -1, 0, 1, 2].map((more) => mintLong(room + more)));
  const bodies = await Promise.all(answers.map((one) => one.json<{ token?: string }>()));
  const lengths = bodies.map(({ token }) => token?.length ?? null);
  expect(lengths).toContain(SESSION_TOKEN_LENGTH_MAX);
  expect(lengths.at(-1)).toBeNull();
});

async function modelsOf(
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const list = await send("/v1/models", { key, headers });
  return (await list.json<{ data: { id: string }[] }>()).data.map(({ id }) => id);
}
