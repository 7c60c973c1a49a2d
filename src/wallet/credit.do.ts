import { assert } from "../lib/assert.ts";
import { invalid, refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { micros } from "../lib/money.ts";
import { balanceCrossing } from "./alerts.ts";
import { raiseAlerts, rearmedAt } from "./alert-rows.do.ts";
import type { Desk } from "./desk.do.ts";
import { decideCredit } from "./ledger.ts";
import { insertEntry } from "./request-rows.do.ts";
import type { BalanceAnswer, CreditRequest } from "./wallet-contract.ts";
import { updateWalletRow } from "./wallet-row.do.ts";

const REFERENCE_MAX = 200;

/** Adds to the balance, or corrects it, once per reference. See `WalletCalls.credit`. */
export function credit(desk: Desk, request: CreditRequest): Result<BalanceAnswer> {
  const { amountMicro, reference } = request;
  assert(typeof reference === "string", "a credit has a reference");
  if (reference.length < 1 || reference.length > REFERENCE_MAX) {
    return invalid(`reference must have 1 to ${REFERENCE_MAX} characters.`, "reference");
  }
  if (!Number.isSafeInteger(amountMicro) || amountMicro === 0) {
    return invalid("amount_micro must be a whole number other than 0.", "amount_micro");
  }
  const before = recall(desk, request);
  if (before !== null) return before;
  const decided = decideCredit(desk.memory.books, amountMicro);
  return decided.ok ? success(post(desk, request, decided.value)) : decided;
}

function recall(desk: Desk, request: CreditRequest): Result<BalanceAnswer> | null {
  const [row] = desk.sql
    .exec<{ amount: number; balance: number; held: number; open_holds: number }>(
      "SELECT amount, balance, held, open_holds FROM entries WHERE reference = ?",
      request.reference,
    )
    .toArray();
  if (row === undefined) return null;
  if (row.amount !== request.amountMicro) {
    return refuse({
      kind: "conflict",
      message: "This reference was used with another amount.",
      param: "reference",
    });
  }
  return success({
    creditsMicro: micros(row.balance),
    heldMicro: micros(row.held),
    openHolds: row.open_holds,
  });
}

function post(
  desk: Desk,
  request: CreditRequest,
  balance: BalanceAnswer["creditsMicro"],
): BalanceAnswer {
  const { memory, nowMs, sql } = desk;
  const { books } = memory;
  const seq = books.seq + 1;
  const answer = { creditsMicro: balance, heldMicro: books.held, openHolds: books.holds.size };
  const rearmedSeq = rearmedAt(desk, balance, seq);
  const row = { ...memory.row, rearmedSeq };
  const low = balanceCrossing(balance, row.settings.lowBalance);
  desk.storage.transactionSync(() => {
    insertEntry(sql, {
      place: { seq, balance, at: nowMs },
      kind: "credit",
      amount: request.amountMicro,
      reference: request.reference,
      held: answer.heldMicro,
      openHolds: answer.openHolds,
    });
    if (rearmedSeq !== memory.row.rearmedSeq) updateWalletRow(sql, row);
    if (low !== null) raiseAlerts(desk, [low], seq);
  });
  books.seq = seq;
  books.balance = balance;
  memory.row = row;
  memory.changed = true;
  return answer;
}
