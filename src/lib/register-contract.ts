import type { Failure, Result } from "./failure.ts";
import type { Key } from "./key.ts";

/** The KeyRegister's answer to `identify()`: plain values. */
export type Identified = Result<Key>;

/** An admitted request: whose it is, and what is left of the key's minute. */
export type AdmittedKey = Pick<Key, "keyId" | "orgId" | "memberId" | "scope"> & {
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
