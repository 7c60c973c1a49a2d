import { expect, it, test } from "vitest";
import { readBearerToken, readCredential } from "../../src/accounts/keys/authenticate.ts";

it("the Authorization header can have the word Bearer in any case, with exactly one space", () => {
  for (const scheme of ["Bearer", "bearer", "BEARER", "bEaReR"]) {
    expect(readBearerToken(`${scheme} svc_x`)).toBe("svc_x");
  }
});

it("the Authorization header must contain one bearer token and nothing else", () => {
  const malformed = [
    null,
    "",
    "Bearer",
    "Bearer ",
    "Bearer  svc_x",
    "Bearer\tsvc_x",
    " Bearer svc_x",
    "Bearer svc_x ",
    "Bearer svc _x",
    "Bearer one, Bearer two",
    "Bearer one,two",
    "Basic c3ZjX3g=",
    "svc_x",
    "Bearer svc_x\n",
    `Bearer ${"x".repeat(122)}`,
    `Bearer ${"x".repeat(10_240)}`,
  ];
  for (const header of malformed) expect(readBearerToken(header)).toBeNull();
  expect(readBearerToken(`Bearer ${"x".repeat(121)}`)).toBe("x".repeat(121));
});

test.each<[string | null, string | null, string | null, string?]>([
  [null, "svc_a", "svc_a"],
  ["Bearer svc_a", null, "svc_a"],
  ["Bearer svc_a", "svc_a", "svc_a"],
  ["Bearer svc_a", "", "svc_a"],
  ["Bearer svc_a", "  ", "svc_a"],
  ["Bearer svc_a", "sk-ant-b", "svc_a", "authorization"],
  ["Bearer sk-ant-b", "svc_a", "svc_a", "x-api-key"],
  ["Basic svc_b", "svc_a", "svc_a"],
  ["Bearer svc_a", "svc_b", null, "both"],
  [null, "sk-ant-b", null],
  ["Bearer sk-ant-b", "sk-ant-c", "sk-ant-b", "authorization"],
  [null, `svc_${"x".repeat(200)}`, null],
  [null, "", null],
])(
  "the headers Authorization %j and x-api-key %j identify the key %j (conflicting header: %s)",
  (authorization, apiKey, token, twoHeaders) => {
    const expected = twoHeaders === undefined ? { token } : { token, twoHeaders };
    expect(readCredential(authorization, apiKey)).toEqual(expected);
  },
);
