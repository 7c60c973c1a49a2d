import { expect, it } from "vitest";
import { operatorActSentence } from "../../src/console/browser/lib/operator-acts.ts";

const REMOVE = "DELETE /prices/{price_id}";
const said = (act: string, details: object, name: string | null = null): string =>
  operatorActSentence({
    operator: "admin",
    act,
    organization: { id: "org", name: "Northwind Labs" },
    target_name: name,
    details: { ...details },
  });

it("the sentence for an operator's change contains amounts, names and reasons", () => {
  const refund = "POST /orgs/{id}/purchases/{purchase_id}/refund";
  const part = { amount_cents: 400, purchase_dollars: 25, reason: "requested_by_customer" };
  expect(said(refund, part)).toBe(
    "admin refunded $4.00 of $25.00 to Northwind Labs: requested by customer.",
  );
  expect(said(refund, { purchase_dollars: 25 })).toBe(
    "admin refunded the rest of $25.00 to Northwind Labs.",
  );
  expect(said("PATCH /orgs/{id}", { status: "suspended", reason: "Unpaid invoice" })).toBe(
    "admin suspended Northwind Labs: Unpaid invoice.",
  );
  const policy = {
    allowed_models: null,
    allowed_providers: ["openai"],
    allowed_data_regions: null,
  };
  const limits = { rpm_limit: null, operator_policy: policy, other_fields: ["name"] };
  expect(said("PATCH /orgs/{id}", limits)).toBe(
    "admin changed Northwind Labs: requests per 60 s none, operator policy providers openai, name.",
  );
  expect(said("DELETE /orgs/{id}/keys/{key_id}", {}, "Server")).toBe(
    "admin revoked the key Server of Northwind Labs.",
  );
  expect(said("POST /orgs/{id}/credits", { amount_micro: -2_000_000, reference: "typo" })).toBe(
    "admin took $2.00 from Northwind Labs: typo.",
  );
});

it("an event of an earlier release without details still has a sentence", () => {
  expect(said("PATCH /orgs/{id}", {})).toBe("admin changed Northwind Labs.");
  expect(said("DELETE /orgs/{id}/keys/{key_id}", {})).toBe(
    "admin revoked a key of Northwind Labs.",
  );
  const removal = operatorActSentence({
    operator: "admin",
    act: REMOVE,
    organization: null,
    details: {},
  });
  expect(removal).toBe("admin removed a price.");
});
