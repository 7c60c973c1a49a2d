import { CallGroups } from "../../shared/call-groups.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import type {
  GroupableWalletMethods,
  GroupedWalletCallResult,
  WalletMethods,
  GroupedWalletCall,
} from "../../shared/contracts/wallet.ts";

type GroupingStub = GroupableWalletMethods & Pick<WalletMethods, "together">;

/** Groups calls to one wallet. While a call runs, later calls wait and are sent together. */
export class WalletCallGroups {
  readonly #groups = new CallGroups<GroupedWalletCall, GroupedWalletCallResult>();

  walletOf(orgId: string, stub: () => GroupingStub, after: TimerFunction): GroupableWalletMethods {
    const ask = (part: GroupedWalletCall): Promise<GroupedWalletCallResult> =>
      this.#groups.callPart(orgId, {
        part,
        callAlone: () => callWalletMethod(stub(), part),
        callTogether: (parts) => stub().together(parts),
        after,
      });
    const run = ask as RunPart; // `ask` returns the result type of the called method
    return {
      hold: (...args) => run({ call: "hold", args }),
      admitAndHold: (...args) => run({ call: "admitAndHold", args }),
      settle: (...args) => run({ call: "settle", args }),
      void: (...args) => run({ call: "void", args }),
    };
  }
}

type RunPart = <K extends GroupedWalletCall["call"]>(
  part: Extract<GroupedWalletCall, { readonly call: K }>,
) => ReturnType<GroupableWalletMethods[K]>;

export function callWalletMethod(
  wallet: GroupableWalletMethods,
  part: GroupedWalletCall,
): Promise<GroupedWalletCallResult> {
  switch (part.call) {
    case "hold":
      return wallet.hold(...part.args);
    case "admitAndHold":
      return wallet.admitAndHold(...part.args);
    case "settle":
      return wallet.settle(...part.args);
    case "void":
      return wallet.void(...part.args);
  }
}
