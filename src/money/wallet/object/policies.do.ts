import type { Budget, BudgetOwner } from "../../../shared/budgets.ts";
import { findFieldChanges } from "../../../shared/event.ts";
import type { Actor } from "../../../shared/event.ts";
import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import type { MemberLimits, MemberLimitsChange } from "../../../shared/contracts/settings.ts";
import type { Policy } from "../../../shared/policy.ts";
import { OPERATOR_POLICY_OWNER, setPolicy } from "../rules/policies.ts";
import { putRule } from "../tables/policy-pause-rows.do.ts";
import { budgetStatusesOfOwner, setBudgets } from "./budgets.do.ts";
import { addEvent } from "./event-log.do.ts";
import { nextPublishRevision, assertCurrentInstance } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { endPausesOfDeletedOwner } from "./pauses.do.ts";

export function readMemberLimits(tx: Tx, memberId: string): Result<MemberLimits> {
  assertCurrentInstance(tx);
  const policy = tx.memory.policies.get(memberId) ?? null;
  return success({ policy, budgets: budgetStatusesOfOwner(tx, ownerOf(memberId)) });
}

export function setMemberLimits(
  tx: Tx,
  memberId: string,
  { policy, budgets, actor }: MemberLimitsChange & { readonly actor: Actor },
): Result<MemberLimits> {
  const owner = ownerOf(memberId);
  const { policies } = tx.memory;
  const before = {
    policy: policies.get(memberId) ?? null,
    budgets: budgetStatusesOfOwner(tx, owner).map(({ budget }) => budget),
  };
  const after = {
    policy: policy === undefined ? before.policy : policy,
    budgets: budgets ?? before.budgets,
  };
  const changes = findFieldChanges<{
    readonly policy: Policy | null;
    readonly budgets: readonly Budget[];
  }>(before, after);
  if (changes === null) return readMemberLimits(tx, memberId);
  tx.storage.transactionSync(() => {
    if (policy !== undefined) putRule(tx.sql, memberId, policy, nextPublishRevision(tx));
    setBudgets(tx, owner, after.budgets);
    addEvent(tx, { type: "member.changed", actor, subject: memberId, data: changes });
  });
  setPolicy(policies, memberId, after.policy);
  tx.memory.hasChanges = true;
  return readMemberLimits(tx, memberId);
}

/** Removes the policy, budgets and pauses of a removed member. */
export function removeMemberLimits(tx: Tx, memberId: string): Result<null> {
  const owner = ownerOf(memberId);
  setBudgets(tx, owner, []);
  endPausesOfDeletedOwner(tx, owner);
  const { memory, sql } = tx;
  if (memory.policies.has(memberId)) {
    putRule(sql, memberId, null, nextPublishRevision(tx));
    setPolicy(memory.policies, memberId, null);
    memory.hasChanges = true;
  }
  return success(null);
}

function ownerOf(memberId: string): BudgetOwner {
  return { scope: "member", subject: memberId };
}

export function setOperatorPolicy(
  tx: Tx,
  policy: Policy | null,
  actor: Actor,
): Result<Policy | null> {
  const { memory, sql, storage } = tx;
  const before = memory.policies.get(OPERATOR_POLICY_OWNER) ?? null;
  const data = findFieldChanges({ operator_policy: before }, { operator_policy: policy });
  if (data === null) return success(policy);
  storage.transactionSync(() => {
    putRule(sql, OPERATOR_POLICY_OWNER, policy, nextPublishRevision(tx));
    addEvent(tx, { type: "settings.changed", actor, subject: memory.row.orgId, data });
  });
  setPolicy(memory.policies, OPERATOR_POLICY_OWNER, policy);
  memory.hasChanges = true;
  return success(policy);
}
