import { expect, it } from "vitest";
import type { Generation } from "../../src/console/browser/api/types.ts";
import { sentenceOf } from "../../src/console/browser/ui/request-sentence.ts";

const request = (fields: Partial<Generation>): Generation =>
  ({ error: null, cost_micro: 0, held_micro: 0, ...fields }) as Generation;

it("a failed request without a stored error says that its cause wasn't recorded", () => {
  expect(sentenceOf(request({ status: "voided" }))).toBe(
    "Failed. The cause wasn't recorded. Nothing was charged.",
  );
  expect(sentenceOf(request({ status: "settled", cost_micro: 12 }))).toBe(
    "Succeeded. $0.000012 was charged.",
  );
});
