import type { Scope } from "../lib/caller.ts";
import type { Failure, Result } from "../lib/failure.ts";

/** What a limiter knows of its key. */
export type LimiterRecord = {
  readonly key_id: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
};

/** The KeyLimiter's answer to `identify()`: plain values. */
export type Identified = Result<LimiterRecord>;

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
