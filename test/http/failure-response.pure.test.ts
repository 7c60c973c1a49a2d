import { describe, expect, it } from "vitest";
import { toErrorObject, failureResponse } from "../../src/shared/http/failure-response.ts";
import type { Failure } from "../../src/shared/failure.ts";
import { CALLER_CASES } from "./failure-cases.ts";
import type { Case, Cases } from "./failure-cases.ts";
import { LIMIT_CASES } from "./limit-cases.ts";

// TypeScript requires a case for every kind of failure.
const cases: Cases = { ...CALLER_CASES, ...LIMIT_CASES };

const always = {
  "content-type": "application/json",
  "x-request-id": "req_1",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};

describe.each(Object.entries(cases))(
  "the function failureResponse for %s",
  (_, rows: readonly Case<Failure>[]) => {
    it.each(rows.map((row) => [row]))(
      "returns status, body and headers of the failure $0",
      async ([failure, status, error, headers]) => {
        const response = failureResponse(failure, "req_1");
        expect(response.status).toBe(status);
        expect(await response.json()).toStrictEqual({ error });
        expect(Object.fromEntries(response.headers)).toStrictEqual({ ...always, ...headers });
        expect(toErrorObject(failure)).toStrictEqual(error);
      },
    );
  },
);
