import { afterEach, expect, it } from "vitest";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";
import { shiftClock } from "./key-fixture.ts";

afterEach(() => shiftClock(null));

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
