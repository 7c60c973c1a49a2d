import type { Scope } from "./caller.ts";
import type { Failure, Result } from "./failure.ts";
import type { KeySecrets } from "./key-secrets.ts";
import type { KeyTerms } from "./key-terms.ts";

/** What a register knows of its key. */
export type RegisterRecord = {
  readonly key_id: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
  /** Left out: none. */
  readonly terms?: KeyTerms;
  /** Left out: its first alone. A peer's register does not know them. */
  readonly secrets?: KeySecrets;
};

/** The KeyRegister's answer to `identify()`: plain values. */
export type Identified = Result<RegisterRecord>;

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

/** The KeyRegister's answer to `admit()`: plain values. The object is named by the key's hash. */
export type Admission =
  | ({ readonly ok: true } & AdmittedKey)
  | { readonly ok: false; readonly failure: Failure };

/**
 * What whoever admits in a register's place asks it: see `KeyRegister`. `secret`: the hash of the one that was
 * shown; left out by who looks at it himself.
 */
export type Register = {
  whose(secret?: string): Promise<Identified>;
  identify(writeId: string | null, secret?: string): Promise<Identified>;
  refresh(usedAt: number): Promise<Identified>;
};
