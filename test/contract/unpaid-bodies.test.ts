import { beforeAll, describe, expect, it, vi } from "vitest";
import { bindingsWith, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { pageHeaders, login, callFromPage } from "./console-client.ts";

const MIB = 1024 * 1024;
const COUNT = "/v1/messages/count_tokens";
let account: Account;

beforeAll(async () => {
  account = await openAccount();
});

type Sent = {
  readonly path: string;
  readonly key: string;
  readonly body: object;
  readonly bytes: number;
};

/**
 * Sends concurrent requests with bodies of this size, whose ends arrive only after each body was
 * read as far as possible or rejected. Returns the statuses.
 */
async function sendConcurrently(
  count: number,
  { path, key, body, bytes }: Sent,
): Promise<number[]> {
  const bindings = bindingsWith({}); // for a separate isolate
  const all = Promise.withResolvers<void>();
  let arrivedCount = 0;
  const countArrival = (): void => void (++arrivedCount === count && all.resolve());
  const text = JSON.stringify(body).replace("FILLED", "a".repeat(bytes));
  const answers = Array.from({ length: count }, () => {
    let isOver = false;
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(text.slice(0, -1))),
      pull: async (controller) => {
        countArrival();
        await all.promise;
        if (isOver) return;
        controller.enqueue(new TextEncoder().encode(text.slice(-1)));
        controller.close();
      },
      cancel: () => {
        isOver = true;
      },
    });
    const answer = send(path, { key, body: stream, bindings });
    void answer.then(({ status }) => [503, 529].includes(status) && countArrival());
    return answer;
  });
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  const smallBody = JSON.parse(text.replace(/a{100,}/, "small")) as object;
  // The memory for bodies is free again.
  expect((await send(path, { key, body: smallBody, bindings })).ok).toBe(true);
  return statuses;
}

describe("POST /v1/messages/count_tokens", () => {
  const counted = { model: "sandbox/echo", messages: [{ role: "user", content: "FILLED" }] };

  it("rejects six concurrent bodies of 15 MiB with 413 and an error that names the limit of 4 MiB", async () => {
    const body = JSON.stringify(counted).replace("FILLED", "a".repeat(15 * MIB));
    const sent = Array.from({ length: 6 }, () => send(COUNT, { key: account.key, body }));
    const answers = await Promise.all(sent);
    expect(answers.map(({ status }) => status)).toEqual([413, 413, 413, 413, 413, 413]);
    const [first] = await Promise.all(answers.map((response) => response.text()));
    expect(first).toContain(String(4 * MIB));
  });

  it("rejects three of six concurrent bodies of almost 4 MiB to limit memory", async () => {
    const sent = { path: COUNT, key: account.key, body: counted, bytes: 4 * MIB - 1000 };
    const statuses = await sendConcurrently(6, sent);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 200, 200, 529, 529, 529]);
  });

  it("counts against the key's rate limit, and returns 404 in the console", async () => {
    const { key } = await openAccount({ rpmLimit: 2 });
    const body = { ...counted, messages: [{ role: "user", content: "Hello" }] };
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      statuses.push((await send(COUNT, { key, body })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    const cookie = await login(key);
    await errorOf(await callFromPage(COUNT, cookie, { method: "POST", body }), 404);
  });
});

describe("a memory limit for concurrent bodies of management requests", () => {
  it("lets at most 12 of an organization's 30 concurrent bodies of 1 MiB pass", async () => {
    const body = { external_id: "ann", daily_quota_dollars: 1, created_at: "FILLED" };
    const sent = { path: "/v1/users", key: account.key, body, bytes: MIB - 1000 };
    const statuses = await sendConcurrently(30, sent);
    const read = statuses.filter((status) => status !== 503);
    expect(new Set(read)).toEqual(new Set([200, 201])); // the webhook was created, then changed
    expect(read.length).toBeLessThanOrEqual(12);
  });
});

const logIn = (body: string | ReadableStream) =>
  send("/console/api/login", { body, headers: pageHeaders(), bindings: bindingsWith({}) });

describe("POST /console/api/login", () => {
  it("reads at most 2 KiB of a body, with or without content-length", async () => {
    const long = JSON.stringify({ key: "k".repeat(2048) });
    expect((await errorOf(await logIn(long), 413)).message).toContain("2048");
    let pulls = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulls++;
        controller.enqueue(new Uint8Array(1024).fill(32));
      },
    });
    await errorOf(await logIn(endless), 413);
    expect(pulls).toBeLessThan(10);
  });

  it("waits at most 5 seconds for the body", async () => {
    const waits: number[] = [];
    const { setTimeout: wait } = globalThis;
    const shortTimeout = (run: () => void, ms = 0) => {
      waits.push(ms);
      return wait(run, ms === 5000 ? 0 : ms);
    };
    const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(shortTimeout);
    const response = await logIn(new ReadableStream({ pull: () => new Promise(() => undefined) }));
    spy.mockRestore();
    await errorOf(response, 408);
    expect(waits).toContain(5000);
  });
});
