import { assert } from "../../../shared/assert.ts";
import type { Budget, BudgetOwner } from "../../../shared/budgets.ts";
import { definedFields } from "../../../shared/defined-fields.ts";
import { findFieldChanges } from "../../../shared/event.ts";
import type { Actor } from "../../../shared/event.ts";
import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import type {
  OperatorSettings,
  OperatorSettingsChange,
  SettingsWithBudgets,
  SettingsChange,
  SettingsRecord,
} from "../../../shared/contracts/settings.ts";
import { findBalanceAlert } from "../rules/alerts.ts";
import { enableTopUp } from "../rules/top-up.ts";
import { putTopUp } from "../tables/payment-rows.do.ts";
import {
  ORGANIZATION_POLICY_OWNER as OWN_POLICY,
  OPERATOR_POLICY_OWNER,
  setPolicy,
} from "../rules/policies.ts";
import { MAX_CONCURRENT_RULE, putRule } from "../tables/policy-pause-rows.do.ts";
import { putTagKeys, selectTagKeys } from "../tables/tag-rows.do.ts";
import { updateSettings } from "../tables/wallet-row.do.ts";
import { raiseAlerts } from "./alerts.do.ts";
import { budgetStatusesOfOwner, setBudgets } from "./budgets.do.ts";
import { addEvent } from "./event-log.do.ts";
import {
  changeWalletRow,
  nextPublishRevision,
  selectRecentHoldTimes,
  assertCurrentInstance,
} from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { recordTopUpFailure } from "./top-up.do.ts";

const ORGANIZATION: BudgetOwner = { scope: "organization", subject: "" };

export function readSettings(tx: Tx): Result<SettingsWithBudgets> {
  assertCurrentInstance(tx);
  return success(settingsAnswer(tx));
}

function settingsAnswer(tx: Tx): SettingsWithBudgets {
  const budgets = budgetStatusesOfOwner(tx, ORGANIZATION);
  return { ...settingsRecordOf(tx), budgets };
}

/** Changes settings. Default quotas apply only to new end users. */
export function patchSettings(
  tx: Tx,
  { budgets, ...change }: SettingsChange,
  actor?: Actor,
): Result<SettingsWithBudgets> {
  const { memory, sql } = tx;
  const before = settingsRecordOf(tx);
  const after: SettingsRecord = { ...before, ...definedFields(change) };
  const { policy, operatorPolicy: _, maxConcurrent, ...settings } = after;
  const budgetsBefore = budgetStatusesOfOwner(tx, ORGANIZATION).map(({ budget }) => budget);
  const changes = findFieldChanges<SettingsRecord & { readonly budgets: readonly Budget[] }>(
    { ...before, budgets: budgetsBefore },
    { ...after, budgets: budgets ?? budgetsBefore },
  );
  const low = findBalanceAlert(memory.ledger.balance, settings.lowBalanceThresholdMicro);
  const isOn = change.autoTopUp !== undefined && change.autoTopUp !== null;
  const topUp = isOn ? enableTopUp(memory.topUp) : memory.topUp;
  tx.storage.transactionSync(() => {
    updateSettings(sql, settings, nextPublishRevision(tx));
    if (change.policy !== undefined) putRule(sql, OWN_POLICY, policy, nextPublishRevision(tx));
    if (change.maxConcurrent !== undefined) {
      putRule(sql, MAX_CONCURRENT_RULE, maxConcurrent, nextPublishRevision(tx));
    }
    if (budgets !== undefined) setBudgets(tx, ORGANIZATION, budgets);
    if (topUp !== memory.topUp) putTopUp(sql, topUp);
    if (change.tagKeys !== undefined) putTagKeys(sql, memory.ledger.seq + 1, change.tagKeys);
    if (changes !== null) {
      addEvent(tx, { type: "settings.changed", actor, subject: memory.row.orgId, data: changes });
    }
    if (low !== null) raiseAlerts(tx, [low], memory.ledger.seq + 1);
  });
  memory.row = { ...memory.row, settings };
  setPolicy(memory.policies, OWN_POLICY, policy);
  memory.maxConcurrent = maxConcurrent;
  memory.topUp = topUp;
  if (change.tagKeys !== undefined) memory.tagKeys = selectTagKeys(sql);
  memory.hasChanges = true;
  return success(settingsAnswer(tx));
}

/** Applies the operator's settings: rate limit, suspension, closing and price list. */
export function applyConfiguration(
  tx: Tx,
  change: OperatorSettingsChange,
): Result<OperatorSettings> {
  const { row } = tx.memory;
  const { rpmLimit, suspended, closed, priceList } = { ...row, ...definedFields(change) };
  assert(
    rpmLimit === null || (Number.isSafeInteger(rpmLimit) && rpmLimit > 0),
    "an organization's rpm limit is null or a whole number above 0",
  );
  const wasCounting = row.rpmLimit !== null;
  changeWalletRow(tx, { rpmLimit, suspended, closed, priceList });
  if (!wasCounting) tx.memory.rateLog = selectRecentHoldTimes(tx.sql, rpmLimit, tx.nowMs);
  const { open } = tx.memory.topUp;
  // Fails an unsent top-up, so that a suspended or closed organization's card isn't charged.
  if (suspended && open?.isTold === false) recordTopUpFailure(tx, open.id, { kind: "soft" });
  return success({ rpmLimit, suspended, closed, priceList });
}

function settingsRecordOf({ memory }: Tx): SettingsRecord {
  return {
    policy: memory.policies.get(OWN_POLICY) ?? null,
    operatorPolicy: memory.policies.get(OPERATOR_POLICY_OWNER) ?? null,
    maxConcurrent: memory.maxConcurrent,
    ...memory.row.settings,
  };
}
