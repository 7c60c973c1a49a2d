import type { GroupedPartResult } from "../../../shared/call-groups.ts";
import { errorMessageOf } from "../../../shared/log.ts";
import type {
  GroupedCalls,
  WalletPartResult,
  WalletPart,
} from "../../../shared/contracts/wallet.ts";
import { callPart } from "../grouped-wallet.ts";
import { isKeyCached } from "./admission.do.ts";
import type { Gate } from "./admission.do.ts";

export function runGroup(
  gate: Gate,
  wallet: GroupedCalls,
  parts: readonly WalletPart[],
): Promise<readonly GroupedPartResult<WalletPartResult>[]> {
  return Promise.all(parts.map((part) => runPart(gate, wallet, part)));
}

async function runPart(
  gate: Gate,
  wallet: GroupedCalls,
  part: WalletPart,
): Promise<GroupedPartResult<WalletPartResult>> {
  try {
    if (!isKeyCached(gate, keyHashOf(part))) return { kind: "apart" };
    return { kind: "answered", answer: await callPart(wallet, part) };
  } catch (error) {
    return { kind: "failed", reason: errorMessageOf(error) };
  }
}

function keyHashOf(part: WalletPart): string | null {
  if (part.call === "admitAndHold") return part.args[0];
  return part.call === "hold" ? (part.args[1] ?? null) : null;
}
