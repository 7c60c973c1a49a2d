import { randomUUID } from "node:crypto";
import OpenAI, { ConflictError } from "openai";
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

const send = () => sendPaidRequest(account, headers);
const paid = () => charged(account);

/** An unmodified SDK. `fetched` gets each response first. */
function sdk(fetched: (response: Response) => Promise<Response> | Response = (one) => one) {
  const statuses: number[] = [];
  const client = new OpenAI({
    apiKey: account.key,
    baseURL: fixture.kept.region().baseUrl,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      statuses.push(response.status);
      return fetched(response);
    },
  });
  const create = () =>
    client.chat.completions.create(BODY, { headers, maxRetries: 3 }).then(
      (answer) => answer.id,
      (error: unknown) => error,
    );
  return { create, statuses };
}

describe("openai-node with retries and an Idempotency-Key", () => {
  it("gets the retry's response after a 502", async () => {
    fixture.next("fail", "fail");
    const { create, statuses } = sdk();
    const id = await create();
    expect(statuses).toEqual([502, 200]);
    expect(await paid()).toEqual([String(id).replace("chatcmpl-", "req_")]);
  });

  it("stops at the 409 after a lost response, and gets the ID of the charged request", async () => {
    let lost = "";
    const { create, statuses } = sdk(async (response) => {
      if (response.status !== 200) return response;
      lost = response.headers.get("x-request-id") ?? "";
      await response.text();
      throw new TypeError("fetch failed");
    });
    const error = await create();
    expect(statuses).toEqual([200, 409]);
    expect(error).toBeInstanceOf(ConflictError);
    expect(error).toMatchObject({
      code: "idempotency_replay",
      error: { generation_id: lost },
    });
    expect(await paid()).toEqual([lost]);
  });

  it("waits while the first request is in progress, then gets the 409", async () => {
    const gate = Promise.withResolvers<void>();
    fixture.next(gate.promise);
    const before = fixture.mock.requests.length;
    const first = send();
    await expect.poll(() => fixture.mock.requests.length - before).toBe(1);
    const waits: (string | null)[] = [];
    const { create, statuses } = sdk(async (response) => {
      waits.push(response.headers.get("retry-after"));
      gate.resolve();
      await first;
      return response;
    });
    const error = await create();
    expect([statuses, waits]).toEqual([
      [409, 409],
      ["1", null],
    ]);
    const { generationId } = await first;
    expect(error).toMatchObject({
      code: "idempotency_replay",
      error: { generation_id: generationId },
    });
    expect(await paid()).toEqual([generationId]);
  });
});
