import { env } from "cloudflare:workers";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN, bindingsWith, errorOf, HELLO, openAccount, send } from "./client.ts";
import { countedBindings } from "./counted-bindings.ts";

const WEAK = "weak-secret-canary";
const model = (fields: Record<string, unknown>): string =>
  JSON.stringify([
    {
      id: "own/m",
      kind: "chat",
      context: 1000,
      price: { input: 1, output: 1 },
      routes: [{ provider: "openai", upstream_id: "gpt" }],
      ...fields,
    },
  ]);
const provider = (fields: Record<string, unknown>): string =>
  JSON.stringify([{ id: "own", base_url: "https://own.test/v1", regions: ["eu"], ...fields }]);

/** Invalid values, and the variable that the log must name. */
const WRONG: readonly (readonly [string, unknown])[] = [
  ["ADMIN_TOKEN", undefined],
  ["ADMIN_TOKEN", ""],
  ["ADMIN_TOKEN", WEAK],
  ["KEY_SECRETS", undefined],
  ["KEY_SECRETS", `a:${WEAK}`],
  ["KEY_SECRETS", "k".repeat(32)],
  ["KEY_SECRETS", `a:${"k".repeat(32)},a:${"j".repeat(32)}`],
  ["REGION", undefined],
  ["REGION", "mars"],
  ["RESIDENCY", "loose"],
  ["SANDBOX", "yes"],
  ["PEERS", "{"],
  ["PEERS", '[{"region":"us","url":"nowhere"}]'],
  ["PEERS", '[{"region":"us","url":"http://us.test"}]'],
  ["PEERS", '[{"region":"us","url":"https://us.test/base"}]'],
  ["PEERS", '[{"region":"eu","url":"https://eu.test"}]'],
  ["PEERS", '[{"region":"us","url":"https://a.test"},{"region":"us","url":"https://b.test"}]'],
  ["PEER_OUT_US", undefined],
  ["PEER_OUT_US", ""],
  ["PEER_OUT_US", WEAK],
  ["PEER_OUT_US_NEXT", WEAK],
  ["PEER_IN_US", undefined],
  ["PEER_IN_US", ""],
  ["PEER_IN_US", WEAK],
  ["PEER_IN_US", env.PEER_OUT_US],
  ["PEER_IN_US_NEXT", WEAK],
  ["PEER_IN_US_NEXT", env.PEER_OUT_US],
  ["PROVIDERS", "not json"],
  ["PROVIDERS", provider({ regions: [] })],
  ["PROVIDERS", provider({ profile: "telepathy" })],
  ["PROVIDERS", provider({ base_url: "ftp://own.test/v1" })],
  ["MODELS", model({ price: { input: -1 } })],
  ["MODELS", model({ price: { input: 0.5, output: 1 } })],
  ["MODELS", model({ price: undefined })],
  ["MODELS", model({ max_output: 1_000_000_001 })],
  ["MODELS", model({ context: Number.MAX_SAFE_INTEGER })],
  ["MODELS", model({ routes: [{ provider: "no-such", upstream_id: "x" }] })],
  ["MODELS", model({ routes: [{ provider: "openai", upstream_id: "a\r\nset-cookie: b=c" }] })],
  ["MODELS", model({ id: "own/\u0000" })],
  ["ALIASES", "[]"],
  ["ALIASES", JSON.stringify({ "a\nb": "sandbox/echo" })],
  ["DEFAULT_MAX_OUTPUT", "many"],
  ["DEFAULT_MAX_OUTPUT", "0"],
  ["HOLD_TTL_S", "1.5"],
  ["HOLD_TTL_S", "900"],
  ["REQUEST_DEADLINE_S", "-1"],
];

let key: string;
let log: string[] = [];
beforeAll(async () => {
  ({ key } = await openAccount());
});
beforeEach(() => {
  log = [];
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((line: string) => void log.push(line));
  }
});

describe("a deployment with a misconfigured variable", () => {
  it.each(WRONG)(
    "returns 503, and logs the name of the variable: %s = %s",
    async (variable, value) => {
      const bindings = bindingsWith({ [variable]: value });
      const requests = [
        send("/healthz", { bindings }),
        send("/v1/models", { key, bindings }),
        send("/v1/models", { bindings }),
        send("/v1/chat/completions", { key, bindings, body: { model: "fast", messages: HELLO } }),
        send("/admin/v1/orgs", { key: ADMIN_TOKEN, bindings }),
        send("/nothing", { bindings }),
        send("/internal/v1/lookup", { bindings, body: {} }),
      ];
      for (const response of await Promise.all(requests)) {
        expect(response.headers.get("retry-after")).toBe("30");
        expect(response.headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{24}$/);
        const error = await errorOf(response, 503);
        expect(error).toMatchObject({ type: "api_error", code: "misconfigured", param: null });
        expect(error.message).not.toContain(variable);
      }
      const reportLines = log.filter((line) => line.includes('"misconfigured"'));
      expect(reportLines.some((line) => line.includes(`"variable":"${variable}"`))).toBe(true);
      expect(log.join("\n")).not.toContain(WEAK);
      for (const secret of [env.KEY_SECRETS.slice(2), env.PEER_OUT_US, env.PEER_IN_US]) {
        expect(log.join("\n")).not.toContain(secret);
      }
    },
  );

  it("calls no object and reads no table", async () => {
    const counted = countedBindings();
    const bindings = { ...counted.bindings, ADMIN_TOKEN: "" };
    await errorOf(await send("/v1/models", { key, bindings }), 503);
    await errorOf(await send("/admin/v1/orgs", { key: "", bindings }), 503);
    expect(counted).toMatchObject({ objects: 0, statements: 0 });
  });

  it("serves requests again once the variable is corrected", async () => {
    const bindings = bindingsWith({
      MODELS: model({}),
      OPENAI_API_KEY: "k",
      RESIDENCY: "relaxed",
      HOLD_TTL_S: "901",
      PEERS: '[{"region":"us","url":"http://127.0.0.1:8788"}]',
      PEER_OUT_US_NEXT: "n".repeat(32),
      PEER_IN_US_NEXT: env.PEER_IN_US,
    });
    expect((await send("/healthz", { bindings })).status).toBe(200);
    expect((await send("/v1/models/own/m", { key, bindings })).status).toBe(200);
  });
});
