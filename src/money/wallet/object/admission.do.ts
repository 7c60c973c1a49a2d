import type { RequestCredential } from "../../../shared/caller.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Failure, Refusal, Result } from "../../../shared/failure.ts";
import { EMPTY_KEY_TERMS } from "../../../shared/key-terms.ts";
import type { KeyStatus } from "../../../shared/key-status.ts";
import type { Session } from "../../../shared/session.ts";
import type { StoppedRequest, StoppableRequest } from "../../../shared/contracts/pauses.ts";
import type { AdmittedKey } from "../../../shared/contracts/register.ts";
import { objectsOf } from "../../../shared/contracts/objects.ts";
import type {
  AdmittedHold,
  HoldGrant,
  HoldRequest,
  GroupableWalletMethods,
  GroupedWalletCallResult,
  GroupedWalletCall,
} from "../../../shared/contracts/wallet.ts";
import { budgetStatusesOfKey, syncBudgets } from "./budgets.do.ts";
import type { PlacedHold } from "../../../shared/contracts/holds.ts";
import { placeHold } from "./placed-holds.do.ts";
import { refuseStorageUnavailable } from "./decisions.do.ts";
import type { Decisions } from "./decisions.do.ts";
import { hold, replayHold } from "./hold.do.ts";
import { readKeySpend } from "./key-dollar-budget.do.ts";
import {
  readConcurrencyStates,
  holdTermsOf,
  keyStatusOf,
  findPauseOfRequest,
  pausedField,
  policyLayersField,
} from "./hold-checks.do.ts";
import { toAdmittedKey, KeyAdmissions } from "./key-admissions.do.ts";
import type { CheckedAdmission } from "./key-admissions.do.ts";
import { assertCurrentInstance } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import type { ActiveKey } from "../tables/key-rows.do.ts";
import {
  readSessionAmounts,
  countSessionRequest,
  refuseOverSessionRate,
  readSessionRateState,
} from "./sessions.do.ts";
import type { GroupedPartResult } from "../../../shared/call-groups.ts";
import { errorMessageOf } from "../../../shared/log.ts";
import { callWalletMethod } from "../grouped-wallet.ts";

/** The parts of the wallet that admission uses. */
export type AdmissionDeps = { readonly decisions: Decisions; readonly keys: KeyAdmissions };

export function createAdmissionDeps(
  decisions: Decisions,
  ctx: DurableObjectState,
  env: () => Env,
): AdmissionDeps {
  const keys = new KeyAdmissions({
    register: (hash) => objectsOf(env()).register(hash),
    tx: () => decisions.tryOpen(),
    waitUntil: (work) => ctx.waitUntil(work),
  });
  return { decisions, keys };
}

export function admitKeyRequest(
  gate: AdmissionDeps,
  called: RequestCredential,
): Promise<Result<AdmittedKey>> {
  const { keys } = gate;
  const { keyHash, shown } = called;
  return decideForKey(gate, keyHash, (tx) => {
    const checked = checkAdmission(gate, tx, called);
    if (!checked.ok) return checked;
    keys.countAdmission(tx, checked.value);
    countSessionRequest(tx, shown?.session);
    const { record, rate } = checked.value;
    const ofSession = readSessionRateState(tx, shown?.session);
    return success(toAdmittedKey(tx, record, ofSession ?? rate, shown));
  });
}

function checkAdmission(
  { keys }: AdmissionDeps,
  tx: Tx,
  called: RequestCredential,
): Result<CheckedAdmission> {
  const checked = keys.checkAdmission(tx, called);
  return (checked.ok ? refuseOverSessionRate(tx, called.shown?.session) : null) ?? checked;
}

/**
 * Admits a request and places its hold. A retry gets the first response and isn't counted again.
 */
export function admitAndHold(
  gate: AdmissionDeps,
  called: RequestCredential,
  request: HoldRequest,
): Promise<Result<AdmittedHold>> {
  const { keys } = gate;
  const { keyHash, shown } = called;
  return decideForKey(gate, keyHash, (tx) => {
    const checked = checkAdmission(gate, tx, called);
    if (!checked.ok) return replayStoredHold(gate, tx, { called, request }) ?? checked;
    let isRepeat = false;
    try {
      const terms = { ...holdTermsOf(checked.value.record, shown), isSessionChecked: true };
      const held = hold(tx, request, terms);
      ({ isRepeat } = held);
      if (!isRepeat) countSessionRequest(tx, shown?.session);
      const before = isRepeat ? keys.rateState(tx, called) : null;
      const admitted = readSessionRateState(tx, shown?.session) ?? before ?? checked.value.rate;
      return success({ admitted, held: held.answer });
    } finally {
      // The request counts toward the rate limit even if the hold fails.
      if (!isRepeat) keys.countAdmission(tx, checked.value);
    }
  });
}

/** Returns the stored response to a retry, even if the key has reached its rate limit. */
function replayStoredHold(
  { keys }: AdmissionDeps,
  tx: Tx,
  { called, request }: { readonly called: RequestCredential; readonly request: HoldRequest },
): Result<AdmittedHold> | null {
  const admitted = keys.rateState(tx, called);
  const live = keys.findActiveKey(tx, called);
  const held = live.ok ? replayHold(tx, request, holdTermsOf(live.value, called.shown)) : null;
  return admitted === null || held === null ? null : success({ admitted, held });
}

export async function placeRequestHold(
  gate: AdmissionDeps,
  request: HoldRequest,
  called?: RequestCredential,
): Promise<Result<HoldGrant>> {
  const { decisions, keys } = gate;
  if (called === undefined) {
    return decisions.decide((tx) => hold(tx, request, EMPTY_KEY_TERMS).answer);
  }
  const { keyHash, shown } = called;
  return decideForKey(gate, keyHash, (tx) => {
    const live = keys.findActiveKey(tx, called);
    if (!live.ok) return live;
    // For a request from a peer region, the session's rate limit hasn't been checked yet.
    const terms = { ...holdTermsOf(live.value, shown), isSessionChecked: !request.peer };
    return hold(tx, request, terms).answer;
  });
}

export function placeClientHold(
  gate: AdmissionDeps,
  request: HoldRequest,
  { called, isCaptured }: { readonly called: RequestCredential; readonly isCaptured: boolean },
): Promise<Result<PlacedHold>> {
  const { keyHash, shown } = called;
  return decideForKey(gate, keyHash, (tx) => {
    const live = gate.keys.findActiveKey(tx, called);
    if (!live.ok) return live;
    const terms = { ...holdTermsOf(live.value, shown), isSessionChecked: true };
    return placeHold(tx, request, { terms, isCaptured });
  });
}

function requireActiveKey(
  { keys }: AdmissionDeps,
  tx: Tx,
  called: RequestCredential,
  isCounted: boolean,
): Result<ActiveKey> {
  const session = called.shown?.session;
  const refused = isCounted ? refuseOverSessionRate(tx, session) : null;
  const live = refused ?? keys.findActiveKey(tx, called);
  if (isCounted && live.ok) countSessionRequest(tx, session);
  return live;
}

export function readKeyStatus(
  gate: AdmissionDeps,
  called: RequestCredential,
  withSpend = false,
  isCounted = false,
): Promise<Result<KeyStatus>> {
  const { keys } = gate;
  const { keyHash, shown } = called;
  return decideForKey(gate, keyHash, (tx) => {
    const live = requireActiveKey(gate, tx, called, isCounted);
    const requests = readSessionRateState(tx, shown?.session) ?? keys.rateState(tx, called);
    if (!live.ok || requests === null) return live.ok ? refuseStorageUnavailable() : live;
    const { row } = tx.memory;
    const { keyId, terms } = live.value;
    syncBudgets(tx, { scope: "key", subject: keyId }, terms.budgets);
    return success({
      ...keyStatusOf(tx, live.value),
      budgets: budgetStatusesOfKey(tx, keyId, shown?.session),
      requests,
      madeAt: row.madeAt,
      sessionsCut: keys.sessionsCut(tx, keyHash),
      ...(row.priceList !== null && { priceList: row.priceList }),
      ...(withSpend && { spend: readKeySpend(tx, keyId) }),
      concurrency: readConcurrencyStates(tx, keyId, terms),
      ...policyLayersField(tx, holdTermsOf(live.value, shown)),
      ...pausedField(tx, keyId, holdTermsOf(live.value, shown)),
      ...(shown?.session !== undefined && { session: spendOfSession(tx, shown.session) }),
    });
  });
}

function spendOfSession(tx: Tx, session: Session): NonNullable<KeyStatus["session"]> {
  const { spentMicro, heldMicro } = readSessionAmounts(tx, session);
  return { spentMicro, heldMicro };
}

export function findRequestsToStop(
  { decisions, keys }: AdmissionDeps,
  runs: readonly StoppableRequest[],
): Result<readonly StoppedRequest[]> {
  return decisions.decide((tx) => {
    assertCurrentInstance(tx);
    return success(
      runs.flatMap((run) => {
        const failure = stopReasonOf(keys, tx, run);
        return failure === null ? [] : [{ id: run.id, failure }];
      }),
    );
  });
}

function stopReasonOf(
  keys: KeyAdmissions,
  tx: Tx,
  { id, called }: StoppableRequest,
): Failure | null {
  const { shown } = called;
  const live = keys.findActiveKey(tx, called);
  if (!live.ok && live.failure.kind === "invalid_api_key" && live.failure.isForGood === true) {
    return live.failure;
  }
  const open = tx.memory.ledger.holds.get(id);
  if (open === undefined) return null;
  // Running requests continue after their key expires.
  const terms = live.ok
    ? holdTermsOf(live.value, shown)
    : { ...EMPTY_KEY_TERMS, session: shown?.session };
  return findPauseOfRequest(tx, terms, { ...open, isRunning: true });
}

/** Applies a change, unless the organization is suspended or the caller's secret is invalid. */
export function applyCallerChange<T>(
  { decisions, keys }: AdmissionDeps,
  called: RequestCredential | undefined,
  decision: (tx: Tx) => Result<T>,
): Result<T> {
  return decisions.decide((tx) => {
    const dead = called === undefined ? null : keys.refuseInactive(tx, called);
    if (dead === null && !tx.memory.row.suspended) return decision(tx);
    assertCurrentInstance(tx);
    return dead ?? refuse({ kind: "organization_suspended" });
  });
}

/** Applies a key's change if the wallet has tables. */
export function applyKeyChange(
  { decisions, keys }: AdmissionDeps,
  change: (keys: KeyAdmissions, tx: Tx) => void,
): Result<null> {
  if (decisions.openIfCreated() === null) return success(null);
  try {
    return decisions.decide((tx) => {
      change(keys, tx);
      return success(null);
    });
  } catch (error) {
    keys.clearCache(); // after an exception, the cached keys may differ from the tables
    throw error;
  }
}

function isKeyCached({ decisions, keys }: AdmissionDeps, keyHash: string | null): boolean {
  const tx = decisions.tryOpen();
  return keyHash === null || tx === null || keys.hasKey(tx, keyHash);
}

function refuseClosed({ memory }: Tx): Refusal | null {
  return memory.row.closed ? refuse({ kind: "invalid_api_key" }) : null;
}

async function decideForKey<T>(
  { decisions, keys }: AdmissionDeps,
  keyHash: string,
  decision: (tx: Tx) => Result<T>,
): Promise<Result<T>> {
  try {
    const before = decisions.tryOpen();
    if (before === null) return refuseStorageUnavailable();
    const refused = keys.hasKey(before, keyHash) ? null : await keys.loadKey(keyHash);
    // No await from here on, so that all writes commit together.
    return decisions.decide((tx) => refused ?? refuseClosed(tx) ?? decision(tx));
  } catch (error) {
    keys.clearCache();
    throw error;
  }
}

/** Runs grouped calls concurrently, each with its own result. */
export function runWalletCallGroup(
  gate: AdmissionDeps,
  wallet: GroupableWalletMethods,
  parts: readonly GroupedWalletCall[],
): Promise<readonly GroupedPartResult<GroupedWalletCallResult>[]> {
  return Promise.all(parts.map((part) => runPart(gate, wallet, part)));
}

async function runPart(
  gate: AdmissionDeps,
  wallet: GroupableWalletMethods,
  part: GroupedWalletCall,
): Promise<GroupedPartResult<GroupedWalletCallResult>> {
  try {
    if (!isKeyCached(gate, keyHashOf(part))) return { kind: "apart" };
    return { kind: "answered", answer: await callWalletMethod(wallet, part) };
  } catch (error) {
    return { kind: "failed", reason: errorMessageOf(error) };
  }
}

function keyHashOf(part: GroupedWalletCall): string | null {
  if (part.call === "admitAndHold") return part.args[0];
  return part.call === "hold" ? (part.args[1] ?? null) : null;
}
