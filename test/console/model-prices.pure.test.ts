import { expect, it } from "vitest";
import { describeModelPrices } from "../../src/console/browser/lib/model-prices.ts";

const FREE = { prompt: "0", completion: "0", input_cache_read: "0", input_cache_write: "0" };

it.each([
  [
    "tokens",
    { prompt: "0.0000006", completion: "0.000004" },
    "$0.60 in, $4.00 out per million tokens",
  ],
  ["units", { image: "0.04" }, "$0.04 per image"],
  [
    "tokens and units",
    { prompt: "0.000005", image: "0.04" },
    "$5.00 in per million tokens, $0.04 per image",
  ],
  ["nothing", {}, "$0.00 in, $0.00 out per million tokens"],
])("a model's price hint lists only prices that apply: %s", (_, prices, text) => {
  expect(describeModelPrices({ pricing: { ...FREE, ...prices } })).toBe(text);
});

it("the hint for an alias shows the current model and its price", () => {
  const pricing = { ...FREE, image: "0.04" };
  expect(describeModelPrices({ alias_of: "openai/gpt-image", pricing })).toBe(
    "now openai/gpt-image: $0.04 per image",
  );
});
