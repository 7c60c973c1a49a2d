import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import {
  sendPaidRequest,
  BODY,
  charged,
  CREDITS,
  startIdempotencyFixture,
} from "./support/idempotency-fixture.ts";
import type { IdempotencyFixture } from "./support/idempotency-fixture.ts";
import { killRegion } from "./support/kill-region.ts";
import { openRaw } from "./support/raw-request.ts";
import type { RawConnection } from "./support/raw-request.ts";

const { messages } = BODY;
const AFTER_HOLDS_END_MS = String(25 * 60_000);

let fixture: IdempotencyFixture;
let account: Account;
let headers: { readonly "Idempotency-Key": string };
beforeAll(async () => {
  fixture = await startIdempotencyFixture();
});
beforeEach(async () => {
  account = await Account.open(fixture.kept.region, { credits: CREDITS });
  headers = { "Idempotency-Key": randomUUID() };
});
afterEach(() => fixture.next());
afterAll(() => fixture.stop());

const send = (body: object = BODY) => sendPaidRequest(account, headers, body);
const createKey = () => account.call("/keys", { name: "ci" }, headers);
const paid = () => charged(account);

/** Sends a request on a connection that the test can reset. */
function open(body: object): Promise<RawConnection> {
  return openRaw({
    url: `${fixture.kept.region().baseUrl}/chat/completions`,
    headers: { authorization: `Bearer ${account.key}`, ...headers },
    body: JSON.stringify(body),
  });
}

describe("an Idempotency-Key", () => {
  it.each([false, true])(
    "runs only one of 50 concurrent requests, and returns 409 to the other 49 (streamed: %s)",
    async (stream) => {
      const before = fixture.mock.requests.length;
      const body = { ...BODY, stream };
      const seen = await Promise.all(Array.from({ length: 50 }, () => send(body)));
      const [first, ...more] = seen.filter((one) => one.status === 200);
      expect(more).toEqual([]);
      for (const { status, code, generationId } of seen.filter((one) => one !== first)) {
        expect(status).toBe(409);
        expect([`idempotency_in_progress `, `idempotency_replay ${first?.generationId}`]).toContain(
          `${code} ${generationId}`,
        );
      }
      expect(fixture.mock.requests.length - before).toBe(1);
      expect(await paid()).toEqual([first?.generationId]);
      const late = { status: 409, code: "idempotency_replay", generationId: first?.generationId };
      expect(await send(body)).toEqual(late);
    },
  );

  it("can be reused after a 502, but not after the successful retry", async () => {
    fixture.next("fail", "fail"); // the gateway retries once
    expect((await send()).status).toBe(502);
    const second = await send();
    expect(second.status).toBe(200);
    expect(await send()).toMatchObject({
      code: "idempotency_replay",
      generationId: second.generationId,
    });
    expect(await paid()).toEqual([second.generationId]);
  });

  it.each(["sandbox/error-first", "sandbox/status-500", "sandbox/cut"])(
    "can be reused after %s in a stream",
    async (model) => {
      await send({ model, messages, stream: true });
      const second = await send({ model: "sandbox/echo", messages, stream: true });
      expect(await paid()).toEqual([second.generationId]);
    },
  );

  it("returns the ID of the charged request after a client disconnected mid-stream", async () => {
    const body = { model: "sandbox/slow-stream", messages, stream: true };
    const client = await open(body);
    expect(await client.readUntil((received) => received.includes("data: {"))).toBe(true);
    await client.reset();
    const [id] = await paid();
    expect(await send(body)).toEqual({ status: 409, code: "idempotency_replay", generationId: id });
    expect(await paid()).toEqual([id]);
  });

  it("returns the 409 again after the region is killed and restarted", async () => {
    const first = await send();
    const replay = { status: 409, code: "idempotency_replay", generationId: first.generationId };
    await killRegion(fixture.kept.region());
    expect(await send()).toEqual(replay);
    await fixture.kept.restart();
    expect(await send()).toEqual(replay);
    expect(await send({ ...BODY, max_tokens: 5 })).toMatchObject({
      status: 422,
      code: "idempotency_mismatch",
    });
    expect(await paid()).toEqual([first.generationId]);
  });

  it("returns 409 until the hold of a request in a killed region expires", async () => {
    const never = Promise.withResolvers<void>();
    fixture.next(never.promise);
    const before = fixture.mock.requests.length;
    const client = await open(BODY);
    await expect.poll(() => fixture.mock.requests.length - before).toBe(1);
    await killRegion(fixture.kept.region());
    await client.reset();
    expect(await send()).toEqual({
      status: 409,
      code: "idempotency_in_progress",
      generationId: "",
    });
    await fixture.kept.restart({ CLOCK_OFFSET_MS: AFTER_HOLDS_END_MS });
    const second = await send();
    expect(second.status).toBe(200);
    expect(await paid()).toEqual([second.generationId]);
    never.resolve();
  });

  it("creates one key at POST /v1/keys, even if the region is killed afterwards", async () => {
    const first = await createKey();
    const { id } = (await first.json()) as { id: string };
    expect(first.status).toBe(201);
    await killRegion(fixture.kept.region());
    const second = await createKey();
    expect(second.status).toBe(409);
    expect(await second.json()).toMatchObject({
      error: { code: "idempotency_replay", key_id: id },
    });
  });
});
