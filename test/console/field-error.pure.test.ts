import { expect, it } from "vitest";
import { fieldError } from "../../src/console/browser/lib/field-error.ts";

it.each([
  ["url must begin with https://.", "url", "Address", "Address must begin with https://."],
  [
    "allowed_models[0]: no model here is named 'gpt'. Use IDs or aliases of GET /v1/models, or author/*.",
    "allowed_models[0]",
    "Models",
    "Models: no model here is named 'gpt'. Use IDs or aliases of the Models page, or author/*.",
  ],
  ["alert_at must be at most 1.", "alert_at", "Alert [% of the limit]", "Alert must be at most 1."],
  ["identity is unknown.", "id", "Name", "identity is unknown."],
])("a form shows the API error '%s' with the name of the field", (message, param, label, shown) => {
  expect(fieldError(message, param, label)).toBe(shown);
});
