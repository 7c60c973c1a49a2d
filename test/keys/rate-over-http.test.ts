import { afterEach, expect, it } from "vitest";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";
import { shiftClock } from "./key-fixture.ts";
import { MINUTE_MS } from "./register-fixture.ts";

afterEach(() => shiftClock(null));

const hello = { model: "sandbox/echo", messages: [{ role: "user", content: "hello" }] };

/** Returns the seconds in a 429, after checking that body and header agree. */
async function retryAfter(response: Response): Promise<number> {
  expect(response.status).toBe(429);
  const { error } = await response.json<{ error: { type: string; retry_after: number } }>();
  expect(error.type).toBe("rate_limit_exceeded");
  expect(response.headers.get("retry-after")).toBe(String(error.retry_after));
  expect(Number.isInteger(error.retry_after)).toBe(true);
  return error.retry_after;
}

it("a limited key is admitted after exactly retry_after, and not a second earlier", async () => {
  const { key } = await openOrganization({ rpmLimit: 2 });
  await sendToWorker("/v1/models", { key });
  shiftClock(10_000);
  await sendToWorker("/v1/models", { key });
  const seconds = await retryAfter(await sendToWorker("/v1/models", { key }));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(50);
  shiftClock(10_000 + (seconds - 1) * 1000);
  await retryAfter(await sendToWorker("/v1/models", { key }));
  shiftClock(10_000 + seconds * 1000);
  expect((await sendToWorker("/v1/models", { key })).status).toBe(200);
  await retryAfter(await sendToWorker("/v1/models", { key }));
});

it("a key's limit counts every authenticated request, whatever its outcome, except a 429", async () => {
  const { key } = await openOrganization({ rpmLimit: 6, credits: 100 });
  const outcomes = [
    await sendToWorker("/v1/models", { key }),
    await sendToWorker("/v1/nowhere", { key }),
    await sendToWorker("/v1/chat/completions", { key, body: { model: 1 } }),
    await sendToWorker("/v1/chat/completions", { key, body: { ...hello, model: "no/such" } }),
    await sendToWorker("/v1/chat/completions", { key, body: hello }),
    await sendToWorker("/v1/chat/completions", { key }),
  ];
  expect(outcomes.map((one) => one.status)).toEqual([200, 404, 400, 404, 402, 405]);
  const left = outcomes.map((one) => one.headers.get("x-ratelimit-remaining-requests"));
  expect(left).toEqual(["5", "4", "3", "2", "1", "0"]);
  for (let i = 0; i < 20; i++) {
    await retryAfter(await sendToWorker("/v1/models", { key }));
  }
  shiftClock(MINUTE_MS);
  const after = await sendToWorker("/v1/models", { key });
  expect(after.headers.get("x-ratelimit-remaining-requests")).toBe("5");
});
