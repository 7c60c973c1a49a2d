import { expect, it } from "vitest";
import { WEBHOOK_GROUPS, WEBHOOK_TYPES } from "../../src/console/browser/lib/event-types.ts";

it("the form of a webhook lists each event type in exactly one group", () => {
  const listed = WEBHOOK_GROUPS.flatMap(([, types]) => types.map(([type]) => type));
  expect(listed.toSorted()).toEqual(WEBHOOK_TYPES.map(([type]) => type).toSorted());
  const named = new Map(
    WEBHOOK_GROUPS.map(([title, types]) => [title, types.map(([type]) => type)]),
  );
  expect(named.get("Budgets, quotas and pauses")).toContain("key.budget_reached");
  expect(named.get("Organization and people")).toContain("settings.changed");
  for (const [, types] of WEBHOOK_GROUPS) expect(types.length).toBeGreaterThan(0);
});
