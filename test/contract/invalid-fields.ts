import { expect } from "vitest";
import { errorOf } from "./client.ts";

/** Invalid values of fields, by the `param` of their error: `budgets[0].window` is in `budgets`. */
export type InvalidValues = Readonly<Record<string, readonly unknown[]>>;

type Fields = Readonly<Record<string, unknown>>;
type SendBody = (body: Fields) => Promise<Response>;

/** Checks that a body returns 400 with this `param`. */
export async function expectInvalid(send: SendBody, body: Fields, param: string): Promise<void> {
  const { type, code, ...error } = await errorOf(await send(body), 400);
  const shown = { body, type, code, param: error.param };
  expect(shown).toEqual({ body, type: "invalid_request_error", code: null, param });
  expect(error.message.length).toBeLessThan(1000);
}

/** Checks that a valid body with any one of the invalid values returns 400 with its `param`. */
export async function expectInvalidValues(
  send: SendBody,
  valid: () => Fields,
  invalid: InvalidValues,
): Promise<void> {
  for (const [param, values] of Object.entries(invalid)) {
    const field = param.split(/[.[]/)[0] ?? "";
    for (const value of values) {
      await expectInvalid(send, { ...valid(), [field]: value }, param);
    }
  }
}
