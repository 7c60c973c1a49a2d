import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openRaw } from "./support/raw-request.ts";
import type { RawConnection } from "./support/raw-request.ts";
import { HELLO, stays } from "./support/stream-scripts.ts";
import { startUpstreamFixture } from "./support/upstream-fixture.ts";
import type { Organization, UpstreamFixture } from "./support/upstream-fixture.ts";

const PLACES = 2;
const SERVED_WITHIN_MS = 100_000;
const RESETS = 60;

let fixture: UpstreamFixture;
beforeAll(async () => {
  fixture = await startUpstreamFixture({
    models: { good: ["good"], fails: ["mock-500"], silent: ["mock-silent"], open: ["open"] },
    scripts: { open: stays(...HELLO) },
    bindings: { ORGANIZATION_IN_FLIGHT_MAX: String(PLACES), DRAIN_S: "0", BODY_TIMEOUT_MS: "500" },
  });
});
afterAll(() => fixture.stop());

/**
 * Uses all concurrency slots of the organization with streams that stay open until they are reset.
 */
async function fill(organization: Organization): Promise<RawConnection[]> {
  const open: RawConnection[] = [];
  for (let place = 0; place < PLACES; place++) {
    const one = await fixture.open(organization.key, "open", { stream: true });
    await one.readUntil((received) => received.includes("Hello"));
    expect(one.received().toString()).toContain("HTTP/1.1 200");
    open.push(one);
  }
  return open;
}

/** Retries until a request is served, because slots become free with a short delay. */
async function untilServed(organization: Organization): Promise<void> {
  const deadline = performance.now() + SERVED_WITHIN_MS;
  for (;;) {
    const { status, text } = await fixture.send(organization.key, "good");
    if (status === 200) return;
    expect(status).toBe(503);
    expect(text).toContain('"overloaded"');
    expect(performance.now()).toBeLessThan(deadline);
  }
}

it("openai-node retries after an overload, while other organizations are still served", async () => {
  const [organization, other] = await Promise.all([fixture.organization(), fixture.organization()]);
  await untilServed(organization);
  const open = await fill(organization);
  const tried: unknown[] = [];
  const client = new OpenAI({
    apiKey: organization.key,
    baseURL: fixture.eu.baseUrl,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      const meanwhile = await fixture.send(other.key, "good");
      tried.push([response.status, response.headers.get("retry-after"), meanwhile.status]);
      await Promise.all(open.map((one) => one.reset()));
      await untilServed(organization);
      return response;
    },
  });
  const messages = [{ role: "user" as const, content: "hello" }];
  const answer = await client.chat.completions.create({ model: "good", messages });
  expect(answer.choices[0]?.message.content).toBe("Hello");
  expect(tried).toEqual([
    [503, "1", 200],
    [200, null, 200],
  ]);
});

it(`no slot stays in use after ${RESETS} clients disconnect at any point`, async () => {
  const organization = await fixture.organization();
  const body = JSON.stringify({
    model: "silent",
    messages: [{ role: "user", content: "a".repeat(20_000) }],
  });
  const url = `${fixture.eu.baseUrl}/chat/completions`;
  const headers = { authorization: `Bearer ${organization.key}` };
  for (let i = 0; i < RESETS; i++) {
    await untilServed(organization);
    const connection = await openRaw(
      i % 3 === 0
        ? { url, headers, body, sendBytes: 600 + i * 300 }
        : { url, headers, body: body.replace("silent", i % 3 === 1 ? "open" : "silent") },
    );
    if (i % 3 === 2) await fixture.send(organization.key, "fails");
    await connection.reset();
  }
  await untilServed(organization);
  await fixture.spent(organization.orgId);
  const open = await fill(organization);
  expect((await fixture.send(organization.key, "good")).status).toBe(503);
  await Promise.all(open.map((one) => one.reset()));
  await untilServed(organization);
});
