import { configOf } from "../../config.ts";
import { refuse, success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import { inJurisdiction } from "../../lib/jurisdiction.ts";
import type { AdmittedKey } from "../../lib/limiter-contract.ts";
import type { AdmittedHold, HoldGrant, HoldRequest } from "../wallet-contract.ts";
import { unavailable } from "./decisions.do.ts";
import type { Decisions } from "./decisions.do.ts";
import { hold } from "./hold.do.ts";
import { KeyAdmissions } from "./key-admissions.do.ts";
import { touchStorage } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";
import { voidHold } from "./postings.do.ts";

/** What admits: where a wallet decides, and its organisation's keys. */
export type Gate = { readonly decisions: Decisions; readonly keys: KeyAdmissions };

/** A key's register is its limiter in this region. */
export function gateOf(decisions: Decisions, ctx: DurableObjectState, env: () => Env): Gate {
  const keys = new KeyAdmissions({
    register: (hash) => {
      const parsed = configOf(env());
      const jurisdiction = parsed.ok ? parsed.config.jurisdiction : undefined;
      return inJurisdiction(env().KEY_LIMITER, jurisdiction).getByName(hash);
    },
    desk: () => decisions.tryOpen(),
    waitUntil: (work) => ctx.waitUntil(work),
  });
  return { decisions, keys };
}

/** See `WalletCalls.admit`. */
export function admit(gate: Gate, keyHash: string): Promise<Result<AdmittedKey>> {
  return decideFor(gate, keyHash, (_desk, admitted) => admitted);
}

/** See `WalletCalls.admitAndHold`. */
export function admitAndHold(
  gate: Gate,
  keyHash: string,
  request: HoldRequest,
): Promise<Result<AdmittedHold>> {
  return decideFor(gate, keyHash, (desk, admitted) => {
    if (admitted.ok) return success({ admitted: admitted.value, held: heldBy(desk, request) });
    giveUp(desk, request);
    return admitted;
  });
}

/** See `WalletCalls.hold`. */
export function holdFor(
  { decisions, keys }: Gate,
  request: HoldRequest,
  keyHash?: string,
): Result<HoldGrant> {
  return decisions.decide((desk) => {
    if (keyHash === undefined || !keys.isDead(desk, keyHash)) return heldBy(desk, request);
    giveUp(desk, request);
    return refuse({ kind: "invalid_api_key" });
  });
}

/**
 * What an organisation changes of its own: not while it is suspended, nor once the key that asks for it
 * (its hash) has died.
 */
export function changeBy<T>(
  { decisions, keys }: Gate,
  keyHash: string | undefined,
  decision: (desk: Desk) => Result<T>,
): Result<T> {
  return decisions.decide((desk) => {
    const isDead = keyHash !== undefined && keys.isDead(desk, keyHash);
    if (!isDead && !desk.memory.row.suspended) return decision(desk);
    touchStorage(desk);
    return refuse({ kind: isDead ? "invalid_api_key" : "organization_suspended" });
  });
}

/** A repeat whose first attempt was granted, and whose answer was lost: nobody will come back for that hold. */
function giveUp(desk: Desk, { id }: HoldRequest): void {
  if (desk.memory.books.holds.has(id)) voidHold(desk, id);
}

/** See `WalletCalls.revokeKey` and `setKeyLimit`. Where no wallet is made nobody is admitted: nothing to tell. */
export function tellKeys(
  { decisions, keys }: Gate,
  tell: (keys: KeyAdmissions, desk: Desk) => void,
): Result<null> {
  const desk = decisions.openIfMade();
  if (desk !== null) tell(keys, desk);
  return success(null);
}

/** A wallet whose book is another's holds nothing; a repeat of what it holds is answered as before. */
function heldBy(desk: Desk, request: HoldRequest): Result<HoldGrant> {
  const { books, row } = desk.memory;
  return row.conflict === null || books.holds.has(request.id)
    ? hold(desk, request)
    : refuse({ kind: "storage_unavailable" });
}

/** One turn for a key and its admission, after its register was asked if it is not known here. */
async function decideFor<T>(
  { decisions, keys }: Gate,
  keyHash: string,
  decision: (desk: Desk, admitted: Result<AdmittedKey>) => Result<T>,
): Promise<Result<T>> {
  try {
    const before = decisions.tryOpen();
    if (before === null) return unavailable();
    const refused = keys.knows(before, keyHash) ? null : await keys.learn(keyHash);
    // No await from here on: what is read, decided and written belongs to one turn.
    return decisions.decide((desk) => decision(desk, refused ?? keys.admit(desk, keyHash)));
  } catch (error) {
    keys.forget();
    throw error;
  }
}
