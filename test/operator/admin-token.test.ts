import { expect, it } from "vitest";
import { isOperator } from "../../src/operator/admin-token.ts";

it("only the whole admin token opens the door", async () => {
  const token = "t,o k-e.n+/=".padEnd(200, "x").replaceAll(" ", "");
  expect(await isOperator(`Bearer ${token}`, token)).toBe(true);
  expect(await isOperator(`bearer ${token}`, token)).toBe(true);
  const wrong = [
    null,
    "",
    token,
    "Bearer ",
    `Basic ${token}`,
    `Bearer  ${token}`,
    `Bearer ${token} `,
    `Bearer ${token}x`,
    `Bearer ${token.slice(1)}`,
    `Bearer ${token}, Bearer ${token}`,
  ];
  for (const header of wrong) {
    // oxlint-disable-next-line no-await-in-loop -- one header after the other
    expect([header, await isOperator(header, token)]).toEqual([header, false]);
  }
  expect(await isOperator("Bearer ", "")).toBe(false);
});
