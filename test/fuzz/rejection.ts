import { failureResponse } from "../../src/shared/http/failure-response.ts";
import type { Refusal } from "../../src/shared/failure.ts";
import { faultOf } from "./error-table.ts";
import { mustEqual } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";

/** Checks that a failure is a 400 or 404 of the table. `isDue`: the input must be rejected. */
export async function checkRejection({ failure }: Refusal, isDue = true): Promise<CheckResult> {
  const { status, headers, body } = failureResponse(failure, "req_");
  const fault = faultOf(status, headers, await new Response(body).text());
  const found = { status: status === 404 ? 400 : status, fault, isDue };
  mustEqual(found, { status: 400, fault: null, isDue: true }, "a refusal");
  return "refused";
}
