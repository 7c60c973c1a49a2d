import { expect, it } from "vitest";
import { GENERATION } from "../fixtures/generation-record.ts";
import { micros } from "../../src/shared/money.ts";
import { COUNTED_UNITS, fillUnitRecord, NO_USAGE } from "../../src/shared/usage.ts";
import {
  outcomeFromJson,
  outcomeToJson,
  createOutcomeMessage,
  outcomeFromMessage,
} from "../../src/regions/outbox-format.ts";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { mintId } from "../../src/shared/id.ts";

const item = (more: object): OutcomeItem => ({
  holdId: mintId("req_", Date.now()),
  orgId: "0b3ba3a1-6f2f-4f0e-9d5d-5f8f6f7c2a11",
  kind: "settle",
  cost: micros(7),
  generation: { ...GENERATION, region: "us", ...more },
});

it.each([
  {}, // a message of an older release, without price date, list and provider cost
  { failed: [{ route: "near:chat", why: "overloaded" }] },
  { origin: { from: null, list: null } },
  { tags: { customer_id: "cus_1", teamName: "blue" }, sessionTags: ["customer_id"] },
  { usage: { ...NO_USAGE, ...fillUnitRecord(COUNTED_UNITS, 3) } },
  {
    origin: { from: 1, list: "partners" },
    bought: { input: 5, cached: 1, cacheWrite: 6, output: 9, units: { image: 7 } },
  },
])("an outcome stays unchanged in a message between regions: %j", (more) => {
  const sent = item(more);
  const json: unknown = JSON.parse(JSON.stringify(outcomeToJson(sent)));
  expect(outcomeFromJson(json, "us")).toEqual({ ...sent, isCapped: false });
});

it("a message between regions preserves whether a charge is capped, and a released hold's provider call", () => {
  const charge = { ...item({}), isCapped: true };
  const { kind: _, ...rest } = item({});
  const release = { ...rest, kind: "void", cost: micros(0) } as OutcomeItem;
  for (const sent of [charge, release]) {
    const json: unknown = JSON.parse(JSON.stringify(outcomeToJson(sent)));
    expect(outcomeFromJson(json, "us")).toEqual(sent);
    expect(outcomeFromMessage(createOutcomeMessage(sent))).toMatchObject(sent);
  }
  const broken = { ...outcomeToJson(release), generation: { model: 7 } };
  expect(outcomeFromJson(broken, "us")).toMatchObject({ kind: "void", generation: null });
});

it("a charge from another region is accepted even if a field has a value from a newer release", () => {
  const skipped = [{ route: "near:chat", why: "a reason of the next release" }];
  const json: unknown = JSON.parse(JSON.stringify(outcomeToJson(item({ skipped, kind: "chat" }))));
  expect(outcomeFromJson(json, "us")).toMatchObject({ kind: "settle", cost: 7 });
});
