import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { startMockProvider } from "../fixtures/openai-mock.ts";
import type { MockProvider } from "../fixtures/openai-mock.ts";
import type { Account } from "./support/account.ts";
import { call, openRemoteAccount } from "./support/peer-keys.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions, TestRegion } from "./support/two-regions.ts";

let mock: MockProvider;
let regions: FaultyRegions;
let account: Account;
beforeAll(async () => {
  mock = await startMockProvider();
  regions = await startFaultyRegions({
    bindings: {
      UPSTREAM_KEY: "sk-upstream",
      PROVIDERS: JSON.stringify([
        {
          id: "up",
          base_url: mock.url,
          profile: "generic",
          secret: "UPSTREAM_KEY",
          regions: ["eu", "us"],
        },
      ]),
      MODELS: JSON.stringify([
        {
          id: "mock/chat",
          kind: "chat",
          context: 128_000,
          max_output: 4096,
          abilities: ["tools"],
          price: { input: 1_000_000, output: 2_000_000 },
          routes: [{ provider: "up", upstream_id: "up-chat" }],
        },
      ]),
    },
  });
  account = await openRemoteAccount(regions);
  const set = await call(regions.eu, account.key, `/orgs/${account.orgId}/settings`, {
    method: "PATCH",
    body: { keep_responses_hours: 24 },
  });
  assert.equal(set.status, 200);
});
afterAll(async () => {
  await regions.stop();
  await mock.close();
});

type Item = { readonly id?: string; readonly [field: string]: unknown };
type Answer = { readonly id: string; readonly store: boolean; readonly output: readonly Item[] };

async function say(region: TestRegion, fields: object, model = "mock/chat"): Promise<Answer> {
  const response = await call(region, account.key, "/responses", { body: { model, ...fields } });
  const answer = (await response.json()) as Answer;
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer;
}

/** Returns the messages of the last provider request. */
const sent = (): unknown => mock.requests.at(-1)?.json["messages"];

const user = (content: string): Item => ({ role: "user", content });
const named = ({ output }: Answer): readonly object[] =>
  output.map(({ id }) => ({ type: "item_reference", id }));

/** Returns the files of a region's stored responses. */
const kept = (region: TestRegion): readonly string[] =>
  readdirSync(region.directory, { recursive: true, encoding: "utf8" }).filter((name) =>
    /KeptResponses\/(?!metadata).*\.sqlite$/.test(name),
  );

it("a conversation continued in either region reaches the provider in full, and is stored only at home", async () => {
  const { eu, us } = regions;
  for (const [here, there] of [
    [eu, us],
    [us, eu],
    [us, us],
  ] as const) {
    const first = await say(here, { input: [user("canary one")] });
    expect(first.store).toBe(true);
    const second = await say(there, { previous_response_id: first.id, input: [user("two")] });
    const sentBefore = sent();
    const whole = [user("canary one"), ...first.output, user("two")];
    await say(here, { store: false, input: whole });
    expect(sent()).toEqual(sentBefore);
    await say(there, { input: [user("canary one"), ...named(first), user("two")] });
    expect(sent()).toEqual(sentBefore);
    await say(here, {
      previous_response_id: first.id,
      input: [user("two"), ...named(second), user("three")],
    });
    const mixed = sent();
    await say(there, { store: false, input: [...whole, ...second.output, user("three")] });
    expect(sent()).toEqual(mixed);
    for (const region of [eu, us]) {
      const read = await call(region, account.key, `/responses/${second.id}`);
      expect(await read.json()).toEqual(second);
      const listed = await call(region, account.key, `/responses/${second.id}/input_items`);
      expect(await listed.json()).toMatchObject({ data: { length: 3 }, has_more: false });
    }
    const path = `/responses/${first.id}`;
    expect((await call(there, account.key, path, { method: "DELETE" })).status).toBe(200);
    const body = { model: "mock/chat", previous_response_id: second.id, input: "x" };
    const gone = await call(here, account.key, "/responses", { body });
    expect([gone.status, await gone.json()]).toMatchObject([
      400,
      { error: { code: "previous_response_not_found" } },
    ]);
  }
  expect(kept(eu)).not.toEqual([]);
  expect(kept(us)).toEqual([]);
});

it("a continuation returns 503 while the home region is unavailable, but a response in progress completes", async () => {
  const { us, toEu } = regions;
  const first = await say(us, { input: "one" });
  await vi.waitFor(async () => {
    const { status } = await call(us, account.key, `/responses/${first.id}`);
    expect(status).toBe(200);
  });
  mock.script(async () => {
    await toEu.set("refuse");
    return false;
  });
  const second = await say(us, { input: "two" });
  mock.script(null);
  expect(second.store).toBe(true);
  const body = { model: "mock/chat", previous_response_id: first.id, input: "x" };
  const refused = await call(us, account.key, "/responses", { body });
  expect([refused.status, await refused.json()]).toMatchObject([
    503,
    { error: { code: "home_region_unreachable" } },
  ]);
  await vi.waitFor(
    () => expect(us.log.some(({ message }) => message.includes("response_not_kept"))).toBe(true),
    {
      timeout: 30_000,
      interval: 100,
    },
  );
  await toEu.set("pass");
  expect((await call(us, account.key, "/responses", { body })).status).toBe(200);
});
