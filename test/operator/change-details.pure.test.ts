import { expect, it } from "vitest";
import { KEY_TERMS } from "../../src/shared/key-terms.ts";
import { extractChangeDetails } from "../../src/operator/operator-events.ts";

it("an operator's event names each limit of a key that the change contains", () => {
  const fields = [...Object.values(KEY_TERMS).map(({ field }) => field), "name", "budgets"];
  for (const field of fields) {
    const details = extractChangeDetails("PATCH /orgs/:id/keys/:key_id", { [field]: "x" }, {});
    expect(JSON.stringify(details)).toContain(field);
  }
});
