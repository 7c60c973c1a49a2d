import type { PartAnswer } from "../../../shared/call-groups.ts";
import { reasonOf } from "../../../shared/log.ts";
import type { GroupedCalls, PartResult, WalletPart } from "../../../shared/contracts/wallet.ts";
import { callPart } from "../grouped-wallet.ts";
import { isKnown } from "./admission.do.ts";
import type { Gate } from "./admission.do.ts";

export function runGroup(
  gate: Gate,
  wallet: GroupedCalls,
  parts: readonly WalletPart[],
): Promise<readonly PartAnswer<PartResult>[]> {
  return Promise.all(parts.map((part) => runPart(gate, wallet, part)));
}

async function runPart(
  gate: Gate,
  wallet: GroupedCalls,
  part: WalletPart,
): Promise<PartAnswer<PartResult>> {
  try {
    if (!isKnown(gate, keyHashOf(part))) return { kind: "apart" };
    return { kind: "answered", answer: await callPart(wallet, part) };
  } catch (error) {
    return { kind: "failed", reason: reasonOf(error) };
  }
}

function keyHashOf(part: WalletPart): string | null {
  if (part.call === "admitAndHold") return part.args[0];
  return part.call === "hold" ? (part.args[1] ?? null) : null;
}
