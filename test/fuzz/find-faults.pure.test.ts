import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { failureResponse } from "../../src/shared/http/failure-response.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { faultOf } from "./error-table.ts";
import { findFaults, FUZZERS, INPUTS, mustHold, runsOf } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { strictObject } from "./reference-json.ts";

const numbers = { inputs: fc.nat(), show: String };

function isEven(number: number): CheckResult {
  return number % 2 === 0 ? "accepted" : "refused";
}

function isSmall(number: number): CheckResult {
  mustHold(number < 1000, "too much", number);
  return isEven(number);
}

function same(error: object): object {
  return error;
}

describe("a fuzzer", () => {
  it(`runs a fixed share of the ${INPUTS} inputs, so that all fuzzers together cover all inputs`, () => {
    expect(FUZZERS.reduce((sum, fuzzer) => sum + runsOf(fuzzer), 0)).toBe(INPUTS);
    expect(FUZZERS.map(runsOf)).toSatisfy((all: number[]) => all.every(Number.isSafeInteger));
  });

  it("finds no fault in correct code", async () => {
    expect(await findFaults("messages of a peer", { ...numbers, check: isEven })).toBe("");
  });

  it("reports the smallest failing input exactly as sent, with the seed", async () => {
    const report = await findFaults("messages of a peer", { ...numbers, check: isSmall });
    expect(report).toMatch(/seed: \d+/);
    expect(report).toContain("Sent: 1000\n");
    expect(report).toContain("too much");
  });

  it.each<CheckResult>(["accepted", "refused"])("fails if it runs only %s inputs", async (met) => {
    const report = await findFaults("messages of a peer", { ...numbers, check: () => met });
    expect(report).toMatch(/were accepted/);
  });
});

describe("the fuzzers' check of error responses", () => {
  const none: Failure = { kind: "not_found", message: "No such key." };
  const fault = async (
    change: (error: Record<string, unknown>) => object,
    failure: Failure = none,
    status?: number,
  ): Promise<string | null> => {
    const response = failureResponse(failure, "req_");
    const { error } = await response.json<{ error: Record<string, unknown> }>();
    const body = JSON.stringify({ error: change(error) });
    return faultOf(status ?? response.status, response.headers, body);
  };

  it("accepts an error in the API's format", async () => {
    expect(await fault(same)).toBeNull();
  });

  it.each(["message", "type", "param", "code"])("rejects an error without %s", async (name) => {
    expect(await fault((error) => ({ ...error, [name]: undefined }))).toContain("not the shape");
  });

  it("rejects unknown types, codes, fields and statuses, and internal details", async () => {
    expect(await fault((error) => ({ ...error, type: "api_error" }))).toContain("no row");
    expect(await fault((error) => ({ ...error, code: "new" }))).toContain("no row");
    expect(await fault((error) => ({ ...error, hint: "x" }))).toContain("no row");
    expect(await fault(same, none, 500)).toContain("no row");
    expect(await fault(same, { kind: "internal" })).toContain("no row");
    expect(await fault((error) => ({ ...error, message: "D1_ERROR: no" }))).toContain("insides");
  });

  it("rejects an error without a required header", async () => {
    const response = failureResponse({ kind: "overloaded" }, "req_");
    const text = await response.text();
    expect(faultOf(503, response.headers, text)).toBeNull();
    response.headers.delete("retry-after");
    expect(faultOf(503, response.headers, text)).toContain("no row");
  });
});

describe("the fuzzers' strict JSON parser", () => {
  it.each(["{}", '{"a":[1,-0.5e3,"\\u00e9",null,true]}', ' { "__proto__" : 1 } ', '{"a":{"a":1}}'])(
    "accepts %s",
    (text) => {
      expect(JSON.stringify(strictObject(text))).toBe(JSON.stringify(JSON.parse(text)));
    },
  );

  it.each([
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    "[]",
    '{"a":01}',
    '{"a":1e400}',
    '{"a":"\\ud800"}',
    "{}x",
    '{"a":1,}',
  ])("rejects %s", (text) => {
    expect(strictObject(text)).toBeUndefined();
  });
});
