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
    return new GroupedWallet(ask as RunPart); // `callPart` returns the result of the part's own call
  }
}

type ResultOf<K extends keyof GroupedCalls> = Awaited<ReturnType<GroupedCalls[K]>>;

type RunPart = <K extends WalletPart["call"]>(
  part: Extract<WalletPart, { readonly call: K }>,
) => Promise<ResultOf<K>>;

class GroupedWallet implements GroupedCalls {
  readonly #ask: RunPart;

  constructor(ask: RunPart) {
    this.#ask = ask;
  }

  hold(...args: Parameters<GroupedCalls["hold"]>): Promise<ResultOf<"hold">> {
    return this.#ask({ call: "hold", args });
  }

  admitAndHold(
    ...args: Parameters<GroupedCalls["admitAndHold"]>
  ): Promise<ResultOf<"admitAndHold">> {
    return this.#ask({ call: "admitAndHold", args });
  }

  settle(...args: Parameters<GroupedCalls["settle"]>): Promise<ResultOf<"settle">> {
    return this.#ask({ call: "settle", args });
  }

  void(...args: Parameters<GroupedCalls["void"]>): Promise<ResultOf<"void">> {
    return this.#ask({ call: "void", args });
  }
}

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
