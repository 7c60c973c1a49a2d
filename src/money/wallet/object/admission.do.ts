import type { RequestCredential, PresentedSecret } from "../../../shared/caller.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { NO_TERMS, budgetSpent } from "../../../shared/key-terms.ts";
import type { BudgetPeriod, KeySpend, KeyStatus } from "../../../shared/key-terms.ts";
import type { Period } from "../../../shared/period.ts";
import type { AdmittedKey } from "../../../shared/contracts/register.ts";
import { objectsOf } from "../../../shared/contracts/objects.ts";
import type { AdmittedHold, HoldGrant, HoldRequest } from "../../../shared/contracts/wallet.ts";
import { budgetsOfKey } from "./budget-status.do.ts";
import { followTerms } from "./budgets.do.ts";
import type { PlacedHold } from "../../../shared/contracts/holds.ts";
import { placeHold } from "./placed-holds.do.ts";
import { unavailable } from "./decisions.do.ts";
import type { Decisions } from "./decisions.do.ts";
import { hold, replay } from "./hold.do.ts";
import type { HeldTerms } from "./hold-checks.do.ts";
import { keyStatus, policiesIfAny, spendOfKey } from "./hold-checks.do.ts";
import { admittedBy, KeyAdmissions } from "./key-admissions.do.ts";
import type { AdmissionPlace } from "./key-admissions.do.ts";
import { touchStorage } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import type { ActiveKey } from "../tables/key-rows.do.ts";
import {
  budgetOfSession,
  countSessionRequest,
  refuseSessionRate,
  sessionRate,
} from "./sessions.do.ts";
import { heldOfKey } from "../rules/open-holds.ts";

export type Gate = { readonly decisions: Decisions; readonly keys: KeyAdmissions };

export function gateOf(decisions: Decisions, ctx: DurableObjectState, env: () => Env): Gate {
  const keys = new KeyAdmissions({
    register: (hash) => objectsOf(env()).register(hash),
    desk: () => decisions.tryOpen(),
    waitUntil: (work) => ctx.waitUntil(work),
  });
  return { decisions, keys };
}

export function admit(gate: Gate, called: RequestCredential): Promise<Result<AdmittedKey>> {
  const { keys } = gate;
  const { keyHash, shown } = called;
  return decideFor(gate, keyHash, (desk) => {
    const place = placeOf(gate, desk, called);
    if (!place.ok) return place;
    keys.take(desk, place.value);
    countSessionRequest(desk, shown?.session);
    const { record, rate } = place.value;
    const ofSession = sessionRate(desk, shown?.session);
    return success(admittedBy(desk, record, ofSession ?? rate, shown));
  });
}

/** Returns an admission if the rate limits of key and session allow one. Doesn't count it. */
function placeOf(
  { keys }: Gate,
  desk: Tx,
  { keyHash, shown }: RequestCredential,
): Result<AdmissionPlace> {
  const place = keys.place(desk, keyHash, shown);
  return (place.ok ? refuseSessionRate(desk, shown?.session) : null) ?? place;
}

/** Admits a request and holds its money. Retries get the first response and aren't counted. */
export function admitAndHold(
  gate: Gate,
  called: RequestCredential,
  request: HoldRequest,
): Promise<Result<AdmittedHold>> {
  const { keys } = gate;
  const { keyHash, shown } = called;
  return decideFor(gate, keyHash, (desk) => {
    const place = placeOf(gate, desk, called);
    if (!place.ok) return replayFor(gate, desk, { called, request }) ?? place;
    let isRepeat = false;
    try {
      const terms = { ...termsBy(place.value.record, shown), isPlaced: true };
      const held = hold(desk, request, terms);
      ({ isRepeat } = held);
      if (!isRepeat) countSessionRequest(desk, shown?.session);
      const before = isRepeat ? keys.standing(desk, keyHash, shown) : null;
      const admitted = sessionRate(desk, shown?.session) ?? before ?? place.value.rate;
      return success({ admitted, held: held.answer });
    } finally {
      if (!isRepeat) keys.take(desk, place.value); // even if the hold failed
    }
  });
}

function termsBy({ memberId, terms }: ActiveKey, shown: PresentedSecret | undefined): HeldTerms {
  const { session } = shown ?? {};
  return { ...terms, memberId, ...(session !== undefined && { session }) };
}

/** Returns the first response for a retry, even above the key's rate limit; otherwise null. */
function replayFor(
  { keys }: Gate,
  desk: Tx,
  { called, request }: { readonly called: RequestCredential; readonly request: HoldRequest },
): Result<AdmittedHold> | null {
  const { keyHash, shown } = called;
  const admitted = keys.standing(desk, keyHash, shown);
  const live = keys.live(desk, keyHash, shown);
  const held = live.ok ? replay(desk, request, termsBy(live.value, shown)) : null;
  return admitted === null || held === null ? null : success({ admitted, held });
}

export async function holdFor(
  gate: Gate,
  request: HoldRequest,
  called?: RequestCredential,
): Promise<Result<HoldGrant>> {
  const { decisions, keys } = gate;
  if (called === undefined) {
    return decisions.decide((desk) => hold(desk, request, NO_TERMS).answer);
  }
  const { keyHash, shown } = called;
  return decideFor(gate, keyHash, (desk) => {
    const live = keys.live(desk, keyHash, shown);
    if (!live.ok) return live;
    // A request from the other region hasn't been counted here.
    const terms = { ...termsBy(live.value, shown), isPlaced: !request.peer };
    return hold(desk, request, terms).answer;
  });
}

/** Places a hold. The session's rate limit already counted this request. */
export function placeHoldFor(
  gate: Gate,
  request: HoldRequest,
  { called, isCaptured }: { readonly called: RequestCredential; readonly isCaptured: boolean },
): Promise<Result<PlacedHold>> {
  const { keyHash, shown } = called;
  return decideFor(gate, keyHash, (desk) => {
    const live = gate.keys.live(desk, keyHash, shown);
    if (!live.ok) return live;
    const terms = { ...termsBy(live.value, shown), isPlaced: true };
    return placeHold(desk, request, { terms, isCaptured });
  });
}

export function keyStanding(
  gate: Gate,
  { keyHash, shown }: RequestCredential,
  withSpend = false,
): Promise<Result<KeyStatus>> {
  const { keys } = gate;
  return decideFor(gate, keyHash, (desk) => {
    const live = keys.live(desk, keyHash, shown);
    const requests = sessionRate(desk, shown?.session) ?? keys.standing(desk, keyHash, shown);
    if (!live.ok || requests === null) return live.ok ? unavailable() : live;
    const session = budgetOfSession(desk, shown?.session ?? null);
    const { books, row } = desk.memory;
    const { keyId, terms } = live.value;
    followTerms(desk, { scope: "key", subject: keyId }, terms.budgets);
    return success({
      ...keyStatus(desk, live.value),
      budgets: budgetsOfKey(desk, keyId, shown?.session),
      requests,
      madeAt: row.madeAt,
      sessionsCut: keys.sessionsCut(desk, keyHash),
      ...(row.priceList !== null && { priceList: row.priceList }),
      ...(withSpend && { spend: spendIn(spendOfKey(desk, live.value.keyId), desk.period) }),
      ...policiesIfAny(desk, termsBy(live.value, shown)),
      ...(session !== null && {
        session: {
          spentMicro: budgetSpent(session, desk.period),
          heldMicro: heldOfKey(books, session, desk.period),
        },
      }),
    });
  });
}

function spendIn(spend: KeySpend, period: Period): NonNullable<KeyStatus["spend"]> {
  const during = (budgetPeriod: BudgetPeriod | null) =>
    budgetSpent({ budgetPeriod, spend }, period);
  return {
    total: during(null),
    day: during("day"),
    week: during("week"),
    month: during("month"),
  };
}

/**
 * Applies a member's change. Fails if the organization is suspended or the calling key was revoked.
 */
export function changeBy<T>(
  { decisions, keys }: Gate,
  called: RequestCredential | undefined,
  decision: (desk: Tx) => Result<T>,
): Result<T> {
  return decisions.decide((desk) => {
    const dead = called === undefined ? null : keys.isDead(desk, called);
    if (dead === null && !desk.memory.row.suspended) return decision(desk);
    touchStorage(desk);
    return dead ?? refuse({ kind: "organization_suspended" });
  });
}

/** Applies a change of a key. Does nothing without a wallet. */
export function applyKeyChange(
  { decisions, keys }: Gate,
  tell: (keys: KeyAdmissions, desk: Tx) => void,
): Result<null> {
  const desk = decisions.openIfMade();
  if (desk === null) return success(null);
  tell(keys, desk);
  decisions.noteNews(desk);
  return success(null);
}

/** Reports whether a decision needs no call to the key object. `keyHash` is null without a key. */
export function isKnown({ decisions, keys }: Gate, keyHash: string | null): boolean {
  const desk = decisions.tryOpen();
  return keyHash === null || desk === null || keys.knows(desk, keyHash);
}

async function decideFor<T>(
  { decisions, keys }: Gate,
  keyHash: string,
  decision: (desk: Tx) => Result<T>,
): Promise<Result<T>> {
  try {
    const before = decisions.tryOpen();
    if (before === null) return unavailable();
    const refused = keys.knows(before, keyHash) ? null : await keys.learn(keyHash);
    // No await from here on, so that everything is one transaction.
    return decisions.decide((desk) => refused ?? decision(desk));
  } catch (error) {
    keys.forget();
    throw error;
  }
}
