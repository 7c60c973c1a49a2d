import { expect, it } from "vitest";
import type * as z from "zod/mini";
import { nameSchema, slugSchema } from "../../src/accounts/organizations/organization.ts";

function refusedBy(schema: z.ZodMiniType, texts: readonly string[]): string[] {
  return texts.filter((text) => !schema.safeParse(text).success);
}

it("an organization's slug can have 3 to 32 lowercase letters, digits and hyphens", () => {
  expect(
    refusedBy(slugSchema, ["abc", "a-b", "0x0", "a-b-c-1", "-a-", "a--b", "---", "a".repeat(32)]),
  ).toEqual([]);
  const wrong = ["", "a", "ab", "--", "a".repeat(33), "Abc", "a_b", "ä-b", "abc\n"];
  expect(refusedBy(slugSchema, wrong)).toEqual(wrong);
});

it("an organization can't have a reserved slug", () => {
  const reserved = ["admin", "api", "turnpike", "closed-", "closed-019abcde-1234-7ab"];
  expect(refusedBy(slugSchema, [...reserved, "admins", "closed"])).toEqual(reserved);
});

it("an organization must have a readable name without control characters", () => {
  expect(refusedBy(nameSchema, ["A", "Ünïted & Co.", "x".repeat(200)])).toEqual([]);
  const wrong = ["", "   ", "a\r\nX-Header: b", "a\u0000", "x".repeat(201)];
  expect(refusedBy(nameSchema, wrong)).toEqual(wrong);
});
