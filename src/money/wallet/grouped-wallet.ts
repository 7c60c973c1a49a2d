import { CallGroups } from "../../shared/call-groups.ts";
import type { TimerFunction } from "../../shared/timers.ts";
import type {
  GroupedCalls,
  WalletPartResult,
  WalletCalls,
  WalletPart,
} from "../../shared/contracts/wallet.ts";

type GroupingStub = GroupedCalls & Pick<WalletCalls, "together">;

/** Groups calls to one wallet. While a call runs, later calls wait and are sent together. */
export class WalletGroups {
  readonly #groups = new CallGroups<WalletPart, WalletPartResult>();

  walletOf(orgId: string, stub: () => GroupingStub, after: TimerFunction): GroupedCalls {
    const ask = (part: WalletPart): Promise<WalletPartResult> =>
      this.#groups.callPart(orgId, {
        part,
        callAlone: () => callPart(stub(), part),
        callTogether: (parts) => stub().together(parts),
        after,
      });
    const run = ask as RunPart; // `callPart` returns the result of the part's own call
    return {
      hold: (...args) => run({ call: "hold", args }),
      admitAndHold: (...args) => run({ call: "admitAndHold", args }),
      settle: (...args) => run({ call: "settle", args }),
      void: (...args) => run({ call: "void", args }),
    };
  }
}

type RunPart = <K extends WalletPart["call"]>(
  part: Extract<WalletPart, { readonly call: K }>,
) => ReturnType<GroupedCalls[K]>;

export function callPart(wallet: GroupedCalls, part: WalletPart): Promise<WalletPartResult> {
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
