import { CallGroups } from "../../shared/call-groups.ts";
import type { After } from "../../shared/timers.ts";
import type {
  GroupedCalls,
  PartResult,
  WalletCalls,
  WalletPart,
} from "../../shared/contracts/wallet.ts";

/** A wallet that answers calls of the paid path alone and together. */
type Grouping = GroupedCalls & Pick<WalletCalls, "together">;

/** The calls of one isolate to wallets: those to one wallet go together while one is under way. */
export class WalletGroups {
  readonly #groups = new CallGroups<WalletPart, PartResult>();

  /** An organization's wallet as a request asks it: `stub` and `after` are the request's own. */
  walletOf(orgId: string, stub: () => Grouping, after: After): GroupedCalls {
    const ask = (part: WalletPart): Promise<PartResult> =>
      this.#groups.ask(orgId, {
        part,
        alone: () => callPart(stub(), part),
        together: (parts) => stub().together(parts),
        after,
      });
    return new GroupedWallet(ask as AskPart); // `callPart` answers to a part what its call answers
  }
}

/** What a call answers to its part. */
type ResultOf<K extends keyof GroupedCalls> = Awaited<ReturnType<GroupedCalls[K]>>;

type AskPart = <K extends WalletPart["call"]>(
  part: Extract<WalletPart, { readonly call: K }>,
) => Promise<ResultOf<K>>;

class GroupedWallet implements GroupedCalls {
  readonly #ask: AskPart;

  constructor(ask: AskPart) {
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

/** Makes the call that a part stands for. */
export function callPart(wallet: GroupedCalls, part: WalletPart): Promise<PartResult> {
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
