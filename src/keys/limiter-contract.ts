import type { Scope } from "../lib/caller.ts";
import type { Failure } from "../lib/failure.ts";

/** The KeyLimiter's answer to `admit()`: plain values. The object is named by the key's hash. */
export type Admission =
  | {
      readonly ok: true;
      readonly keyId: string;
      readonly orgId: string;
      readonly memberId: string;
      readonly scope: Scope;
      readonly limit: number;
      readonly remaining: number;
      readonly resetMs: number;
    }
  | { readonly ok: false; readonly failure: Failure };
