import type { Scope } from "./caller.ts";
import type { Failure, Result } from "./failure.ts";
import type { KeyTerms } from "./key-terms.ts";

/** What a limiter knows of its key. */
export type LimiterRecord = {
  readonly key_id: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
  /** Left out: none. */
  readonly terms?: KeyTerms;
};

/** The KeyLimiter's answer to `identify()`: plain values. */
export type Identified = Result<LimiterRecord>;

/** An admitted request: whose it is, and what is left of the key's minute. */
export type AdmittedKey = {
  readonly keyId: string;
  readonly orgId: string;
  readonly memberId: string;
  readonly scope: Scope;
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  /** As `Admitted` has it. */
  readonly isLimited?: boolean;
};

/** The KeyLimiter's answer to `admit()`: plain values. The object is named by the key's hash. */
export type Admission =
  | ({ readonly ok: true } & AdmittedKey)
  | { readonly ok: false; readonly failure: Failure };

/** What whoever admits in a limiter's place asks it: see `KeyLimiter`. */
export type KeyRegister = {
  whose(): Promise<Identified>;
  identify(writeId: string | null): Promise<Identified>;
  refresh(): Promise<Identified>;
};
