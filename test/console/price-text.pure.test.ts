import { expect, it } from "vitest";
import { priceText, unitPriceTexts } from "../../src/console/browser/lib/price-text.ts";
import { describeOperatorCall } from "../../src/console/browser/lib/operator-acts.ts";

const NO_TOKENS = { input: 0, cached: 0, cache_write: 0, output: 0 };

it("the console shows prices of characters, seconds and tokens per million, and all other prices per unit", () => {
  const units = {
    character: 15,
    second: 100,
    input_image_token: 8,
    image: 0.04,
    search_unit: 0.002,
  };
  expect(unitPriceTexts({ ...NO_TOKENS, ...units })).toEqual([
    "$15.00 per million characters",
    "$100.00 per million seconds",
    "$8.00 per million image input tokens",
    "$0.04 per image",
    "$0.002 per search unit",
  ]);
});

it("the text of a price lists each unit with a price, and tokens only if tokens have a price", () => {
  const tokens = { ...NO_TOKENS, input: 0.6, output: 4 };
  expect(priceText({ price: tokens, percent: null })).toBe("$0.60 in, $4.00 out");
  const speech = { ...NO_TOKENS, character: 15 };
  expect(priceText({ price: speech, percent: null })).toBe("$15.00 per million characters");
  expect(priceText({ price: { ...tokens, image: 0.04 }, percent: null })).toBe(
    "$0.60 in, $4.00 out, $0.04 per image",
  );
  expect(priceText({ price: null, percent: 20 })).toBe("20% above cost");
});

it("the sentence for a scheduled price names the price's unit", () => {
  const from = "2027-01-01T00:00:00.000Z";
  const row = { list: "default", item: "acme/say", from, percent: null };
  const prices = [{ ...row, price: { ...NO_TOKENS, character: 15 } }];
  const act = { operator: "admin", act: "POST /prices", organization: null, details: { prices } };
  expect(describeOperatorCall(act)).toContain("acme/say: $15.00 per million characters, from");
});
