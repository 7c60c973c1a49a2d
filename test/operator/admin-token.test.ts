import { expect, it } from "vitest";
import { findOperator as whoIs } from "../../src/operator/operator-token.ts";

/** Returns only the operator's name. */
const operatorOf = async (...args: Parameters<typeof whoIs>): Promise<string | null> =>
  (await whoIs(...args))?.name ?? null;
const named = (token: string) => [{ name: "admin", role: "all" as const, token }];

it("the operator API accepts only the complete admin token", async () => {
  const token = "t,o k-e.n+/=".padEnd(200, "x").replaceAll(" ", "");
  expect(await operatorOf(`Bearer ${token}`, named(token))).toBe("admin");
  expect(await operatorOf(`bearer ${token}`, named(token))).toBe("admin");
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
    expect([header, await operatorOf(header, named(token))]).toEqual([header, null]);
  }
  expect(await operatorOf("Bearer ", named(""))).toBeNull();
});

it("the operator API identifies an operator only by the operator's complete token", async () => {
  const operators = [
    { name: "admin", role: "all", token: "a".repeat(32) },
    { name: "ada", role: "read", token: "b".repeat(32) },
  ] as const;
  const operatorNameOf = (header: string): Promise<string | null> => operatorOf(header, operators);
  expect(await operatorNameOf(`Bearer ${"a".repeat(32)}`)).toBe("admin");
  expect(await operatorNameOf(`Bearer ${"b".repeat(32)}`)).toBe("ada");
  expect(await operatorNameOf(`Bearer ${"b".repeat(31)}`)).toBeNull();
  expect(await operatorNameOf("Bearer ")).toBeNull();
  expect(await operatorOf("Bearer x", [{ name: "admin", role: "all", token: "" }])).toBeNull();
});
