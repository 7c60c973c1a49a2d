import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { bindingsFor, TRIED_PROVIDERS } from "../fixtures/provider-table.ts";
import type { ChatProvider } from "../fixtures/provider-table.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { openOrganization } from "../fixtures/worker-app.ts";
import { IS_LONG } from "../effort.ts";
import { mockNetwork, splitBytes } from "../providers/adapter-kit.ts";

/** A provider's failures through the whole application: body, headers and log. */
const PAUSE_MS_MAX = 300;
const CREDITS = 1_000_000_000;
let account: { readonly orgId: string; readonly key: string };
// Creates an account for each part, because one key's limit per minute is too low for all.
const openOne = async () => {
  account = await openOrganization({ credits: CREDITS });
};
type Seen = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
  /** The complete output: body, headers and log lines. */
  readonly all: string;
};

/** Skips the pause before a retry, but no other timer. */
function withoutPauses(): void {
  const later = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation((run: () => void, ms = 0) =>
    later(run, ms <= PAUSE_MS_MAX ? 0 : ms),
  );
}

async function send(
  provider: ChatProvider,
  reply: RawReply,
  stream: boolean,
  cut: typeof splitBytes = splitBytes, // some output precedes the failure
): Promise<Seen> {
  const lines: string[] = [];
  for (const level of ["log", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line: unknown) => {
      lines.push(String(line));
    });
  }
  const bindings = { ...env, ...bindingsFor([provider]), LOG_REQUESTS: "all" };
  withoutPauses();
  mockNetwork(reply, cut);
  const context = createExecutionContext();
  const response = await app.fetch(
    new Request("https://eu.test/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${account.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "test/chat",
        messages: [{ role: "user", content: "Hi" }],
        stream,
      }),
    }),
    bindings,
    context,
  );
  const body = await response.text();
  await waitOnExecutionContext(context);
  const headers = JSON.stringify([...response.headers]);
  const { status } = response;
  return {
    status,
    headers: response.headers,
    body,
    all: `${body}\n${headers}\n${lines.join("\n")}`,
  };
}

function expectNoCanary({ all }: Seen): void {
  // A cleaned 400 can repeat the provider's text, but not our account.
  for (const secret of [CANARY.key, CANARY.host, CANARY.account]) {
    expect(all).not.toContain(secret);
  }
}

async function balance(): Promise<number> {
  const request = new Request("https://eu.test/v1/balance", {
    headers: { authorization: `Bearer ${account.key}` },
  });
  const response = await app.fetch(request, env, createExecutionContext());
  return (await response.json<{ credits_micro: number }>()).credits_micro;
}

describe.each(TRIED_PROVIDERS.map((provider) => [provider.name, provider] as const))(
  "the provider %s",
  (_, provider) => {
    const { errors, errorFirst, errorMid, cut } = provider.failures;
    beforeAll(openOne);

    // A long run tests each error in both forms. Otherwise, each provider tests a third of them in
    // one form, in turn.
    const turn = TRIED_PROVIDERS.indexOf(provider);
    const isTried = (at: number): boolean => IS_LONG || (at + turn) % 3 === 0;
    const formsOf = (at: number): readonly boolean[] =>
      IS_LONG ? [false, true] : [Math.floor((at + turn) / 3) % 2 === 0];
    const cases = Object.entries(errors)
      .map(([name, reply], at) => [name, reply, formsOf(at), at] as const)
      .filter(([, , , at]) => isTried(at));
    it.each(cases)(
      "returns the gateway's own error for %s, without a charge or the provider's text",
      async (name, reply, forms) => {
        for (const stream of forms) {
          const seen = await send(provider, reply, stream);
          vi.restoreAllMocks();
          expect([400, 413, 502, 503], `${name}: ${seen.body}`).toContain(seen.status);
          const { error } = JSON.parse(seen.body) as { error: Record<string, unknown> };
          expect(Object.keys(error)).toEqual(
            expect.arrayContaining(["message", "type", "code", "param"]),
          );
          const isClientError = seen.status < 500;
          expect(isClientError || !seen.all.includes(CANARY.text)).toBe(true);
          expectNoCanary(seen);
        }
        expect(await balance()).toBe(CREDITS);
      },
    );

    it("returns an error status without a charge if the first event is an error", async () => {
      const seen = await send(provider, errorFirst, true);
      expect([502, 503]).toContain(seen.status);
      expectNoCanary(seen);
      vi.restoreAllMocks();
      expect(await balance()).toBe(CREDITS);
    });

    it.each([
      ["a mid-stream error", errorMid],
      ["a stream that breaks off", cut],
    ])("ends %s with an error event, without [DONE] and without a charge", async (__, reply) => {
      const seen = await send(provider, reply, true);
      expect(seen.status).toBe(200);
      expect(seen.body).toContain('"error":{');
      expect(seen.body).not.toContain("[DONE]");
      expect(seen.all).not.toContain(CANARY.text);
      expectNoCanary(seen);
      vi.restoreAllMocks();
      expect(await balance()).toBe(CREDITS);
    });
  },
);

const LONG = "a".repeat(5 * 1024 * 1024);

// A long run covers all. Otherwise, only some with other protocols.
const TEXTUAL = TRIED_PROVIDERS.filter(({ failures: { cut } }) => typeof cut.body === "string");
const TRIED = TEXTUAL.filter((_, at) => IS_LONG || at % 6 === 0);
it.each(TRIED.map((provider) => [provider.name, provider] as const))(
  "the stream of the provider %s ends at an event of 5 MiB, and the earlier output is charged",
  async (_, provider) => {
    await openOne();
    const { cut } = provider.failures;
    const text = String(cut.body);
    const { length } = new TextEncoder().encode(text);
    const body = `${text}data: ${JSON.stringify({ x: LONG })}\n\n`;
    const seen = await send(provider, { ...cut, body }, true, (bytes) => [
      bytes.slice(0, length),
      bytes.slice(length),
    ]);
    vi.restoreAllMocks();
    const cost = CREDITS - (await balance());
    expect(cost).toBeGreaterThan(0);
    expect(seen.status).toBe(200);
    expect(seen.body).toContain(`"cost_micro":${cost}}`);
  },
);

describe.each(TRIED_PROVIDERS.map((provider) => [provider.name, provider] as const))(
  "a response of the provider %s that fails because of the request",
  (_, provider) => {
    const { chat, failures } = provider;
    beforeAll(openOne);
    const forms = ["json", "stream"] as const;
    it.each(forms)("pays for the usage that the provider reports: %s", async (form) => {
      const reply = failures.provoked[form];
      if (reply === null) return;
      const costOf = async (one: RawReply) => {
        const before = await balance();
        const seen = await send(provider, one, form === "stream");
        vi.restoreAllMocks();
        return { seen, cost: before - (await balance()) };
      };
      const whole = await costOf(chat.text[form]);
      const { seen, cost } = await costOf(reply);
      expect(form === "stream" ? [200] : [400, 502]).toContain(seen.status);
      expect(seen.body).toContain('"error":{');
      expect(cost).toBe(whole.cost);
      expect(cost).toBeGreaterThan(0);
      const id = seen.headers.get("x-request-id");
      expect(seen.body).toContain(`"generation_id":"${id}","cost_micro":${cost}}`);
      expect(seen.body).not.toContain("Please retry");
      if (form === "stream") return;
      const headers = ["x-should-retry", "x-cost-micro"].map((name) => seen.headers.get(name));
      expect(headers).toEqual(["false", String(cost)]);
    });
  },
);
