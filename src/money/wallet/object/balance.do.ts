import type { WalletBalance } from "../../../shared/contracts/wallet.ts";
import { OPERATOR_POLICY } from "../rules/policies.ts";
import type { Tx } from "./memory.do.ts";

export function readBalance(tx: Tx): WalletBalance {
  const { balance, held, holds } = tx.memory.ledger;
  const { owed } = tx.memory.debts;
  const status = { creditsMicro: balance, heldMicro: held, openHolds: holds.size };
  const operatorPolicy = tx.memory.policies.get(OPERATOR_POLICY);
  return {
    ...status,
    ...(owed !== 0 && { owedMicro: owed }),
    ...(operatorPolicy !== undefined && { operatorPolicy }),
  };
}
