import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import { scripted, startUpstreamFixture, UPSTREAM_SECRET } from "./support/upstream-fixture.ts";
import type { UpstreamFixture, UpstreamOptions } from "./support/upstream-fixture.ts";

/** Micro-credits for 12 prompt tokens at 1 and 3 output tokens at 2. */
const EXACT = 18;

/**
 * Failures before the first byte, with the response without another route, and the number of
 * provider requests.
 */
const FAULTS: Readonly<Record<string, { status: number; requests: number; wait?: string }>> = {
  "mock-500": { status: 502, requests: 2 },
  "html-500": { status: 502, requests: 2 },
  "mock-408": { status: 502, requests: 2 },
  "mock-reset": { status: 502, requests: 2 },
  refused: { status: 502, requests: 0 },
  "mock-302": { status: 502, requests: 1 },
  "mock-html": { status: 502, requests: 1 },
  "mock-bad-json": { status: 502, requests: 1 },
  "mock-gzip-bomb": { status: 502, requests: 1 },
  "mock-401": { status: 502, requests: 1 },
  "mock-404": { status: 502, requests: 1 },
  "mock-quota": { status: 502, requests: 1 },
  "mock-silent": { status: 502, requests: 1 },
  "mock-429": { status: 503, requests: 1, wait: "7" },
  "bare-429": { status: 503, requests: 1, wait: "5" },
  "mock-503": { status: 503, requests: 1, wait: "5" },
  "mock-529": { status: 503, requests: 1, wait: "5" },
};
/** Failures of streams only. */
const STREAM_FAULTS: typeof FAULTS = {
  "mock-error-first": { status: 502, requests: 2 },
  "mock-empty-stream": { status: 502, requests: 1 },
  "mock-stall": { status: 502, requests: 1 },
};
const CASES = [false, true].flatMap((stream) =>
  Object.keys({ ...FAULTS, ...(stream ? STREAM_FAULTS : {}) }).map((name) => ({ name, stream })),
);
const FAULT_OF = new Map(Object.entries({ ...FAULTS, ...STREAM_FAULTS }));

/**
 * Failures in receipts. A rejected provider key is our own problem, so it isn't reported as such.
 */
const TOLD = {
  "mock-silent": "timeout",
  "mock-bad-json": "bad_json",
  "mock-503": "overloaded",
  "mock-401": "unavailable",
};

const status = (code: number, headers: Record<string, string> = {}) =>
  scripted((response) => void response.writeHead(code, headers).end("{}"));

let fixture: UpstreamFixture;
/** Regions with short timeouts for a silent provider. */
let hurried: UpstreamFixture;
/** The other tests take as long as the machine needs. */
const fixtureOf = (name: string): UpstreamFixture =>
  /silent|stall/.test(name) ? hurried : fixture;
beforeAll(async () => {
  const models: Record<string, string[]> = {
    "up/four-down": ["down@1", "down@2", "down@3", "down@4"],
    "up/overloaded": ["down@5", "busy-9", "busy-4"],
    "up/down-last": ["busy-9@2", "down@6"],
    "up/third": ["down@7", "down@8", "good"],
  };
  for (const { name, stream } of CASES) {
    models[`alone/${name}/${stream}`] = [`${name}@alone-${stream}`];
    models[`then/${name}/${stream}`] = [`${name}@then-${stream}`, "good"];
  }
  for (const name of Object.keys(TOLD)) models[`told/${name}`] = [`${name}@told`, "good"];
  const options: UpstreamOptions = {
    models,
    deadPort: await freePort(),
    scripts: {
      down: status(500),
      "bare-429": status(429),
      "busy-9": status(429, { "retry-after": "9" }),
      "busy-4": status(503, { "retry-after": "4" }),
      "html-500": scripted((response) => {
        response.writeHead(500, { "content-type": "text/html" });
        response.end("<h1>canary-html at 10.0.0.7</h1>");
      }),
    },
  };
  const bindings = { UPSTREAM_HEADERS_MS: "1000", UPSTREAM_FIRST_MS: "1000" };
  [fixture, hurried] = await Promise.all([
    startUpstreamFixture(options),
    startUpstreamFixture({ ...options, bindings }),
  ]);
});
afterAll(() => Promise.all([fixture.stop(), hurried.stop()]));

/** Few tokens, so that a JSON response can't take longer than its headers. */
const FEW = { max_tokens: 4 };

async function counted<T>(
  work: () => Promise<T>,
  { mock } = fixture,
): Promise<{ answer: T; requests: number }> {
  const before = mock.requests.length;
  const answer = await work();
  return { answer, requests: mock.requests.length - before };
}

describe("a provider that fails before the first byte", () => {
  it.each(CASES)(
    "causes an uncharged error without the provider's text if no other route exists: $name, stream $stream",
    async ({ name, stream }) => {
      const expected = FAULT_OF.get(name);
      const one = fixtureOf(name);
      const { key, orgId } = await one.organization();
      const { answer, requests } = await counted(
        () => one.send(key, `alone/${name}/${stream}`, { ...FEW, stream }),
        one,
      );
      expect([answer.status, requests]).toEqual([expected?.status, expected?.requests]);
      const { error } = JSON.parse(answer.text) as { error: Record<string, unknown> };
      expect(error).toMatchObject(
        answer.status === 502
          ? { type: "upstream_error" }
          : { type: "api_error", code: "upstream_overloaded" },
      );
      expect(answer.headers.get("retry-after")).toBe(expected?.wait ?? null);
      expect(answer.headers.get("x-route")).toBeNull();
      expect(answer.text).not.toMatch(/canary|openai\.com|127\.0\.0\.1|<h1>/);
      expect(await one.spent(orgId)).toEqual({ micro: 0, held: 0, records: [] });
    },
  );

  it.each(CASES)(
    "stays hidden from the client if another route responds, and only that response is charged: $name, stream $stream",
    async ({ name, stream }) => {
      const one = fixtureOf(name);
      const { key, orgId } = await one.organization();
      const answer = await one.send(key, `then/${name}/${stream}`, { ...FEW, stream });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-route")).toBe("up:good");
      expect(answer.headers.get("x-attempts")).toBe("2");
      const spent = await one.spent(orgId);
      expect(spent.micro).toBe(EXACT);
      expect(spent.records).toMatchObject([{ provider: "up", estimated: false }]);
    },
  );

  it("leaves no connection open", async () => {
    await expect.poll(() => fixture.inFlight() + hurried.inFlight()).toBe(0);
  });
});

/** Returns the failed attempts in a response's receipt. */
async function failedAttempts(
  key: string,
  headers: Headers,
  { eu } = fixture,
): Promise<readonly { route: string; why: string }[]> {
  const id = headers.get("x-request-id") ?? "";
  const response = await fetch(`${eu.url}/v1/generations/${id}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const receipt = (await response.json()) as { failed_attempts: { route: string; why: string }[] };
  return receipt.failed_attempts;
}

describe("failover", () => {
  it("makes at most three calls, however many routes exist", async () => {
    const { key, orgId } = await fixture.organization();
    const { answer, requests } = await counted(() => fixture.send(key, "up/four-down"));
    expect([answer.status, requests]).toEqual([502, 3]);
    expect((await fixture.spent(orgId)).micro).toBe(0);
  });

  it("reaches the third route, and charges the request once", async () => {
    const { key, orgId } = await fixture.organization();
    const { answer, requests } = await counted(() => fixture.send(key, "up/third"));
    expect([answer.status, requests, answer.headers.get("x-attempts")]).toEqual([200, 3, "3"]);
    expect(answer.headers.get("x-cost-micro")).toBe(String(EXACT));
    expect((await fixture.spent(orgId)).micro).toBe(EXACT);
    expect(await failedAttempts(key, answer.headers)).toEqual([
      { route: "up:down@7", why: "500" },
      { route: "up:down@8", why: "500" },
    ]);
  });

  it.each(Object.entries(TOLD))(
    "adds a failed route to the receipt: %s as %s",
    async (name, why) => {
      const one = fixtureOf(name);
      const { key } = await one.organization();
      const { headers } = await one.send(key, `told/${name}`, FEW);
      expect(await failedAttempts(key, headers, one)).toMatchObject([{ why }]);
    },
  );

  it("returns overloaded with the shortest wait if the last route was overloaded, and otherwise upstream_error", async () => {
    const { key } = await fixture.organization();
    const busy = await fixture.send(key, "up/overloaded");
    expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "4"]);
    const down = await fixture.send(key, "up/down-last");
    expect([down.status, down.headers.get("retry-after")]).toEqual([502, null]);
  });
});

describe("the provider's secret", () => {
  it("appears in no header, body or log, even if the provider's 401 contains it", async () => {
    const { key } = await fixture.organization();
    const answers = [
      await fixture.send(key, "alone/mock-401/false", FEW),
      await fixture.send(key, "then/mock-401/true", { ...FEW, stream: true }),
    ];
    const echoed = fixture.mock.requests.find(({ json }) =>
      String(json["model"]).startsWith("mock-401"),
    );
    expect(echoed?.headers.authorization).toBe(`Bearer ${UPSTREAM_SECRET}`);
    const seen = answers.map(({ headers, text }) => JSON.stringify([...headers]) + text);
    expect(seen.join("")).not.toContain(UPSTREAM_SECRET.slice(3));
    expect(fixture.eu.log.length).toBeGreaterThan(0);
    expect(JSON.stringify(fixture.eu.log)).not.toContain(UPSTREAM_SECRET.slice(3));
  });
});
