import * as fc from "fast-check";
import { it } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { PlainWallet } from "./plain-wallet.ts";
import { script, START } from "./wallet-commands.ts";
import type { Command, Content, Script } from "./wallet-commands.ts";
import { effortFor } from "../effort.ts";
import { recordMeasured } from "../measured.ts";

const numRuns = effortFor(2_500, 300_000);

// oxlint-disable-next-line vitest/expect-expect -- fc.assert throws
it(`the ledger never overspends, double charges or leaves a hold open in ${numRuns} random runs (I1-I7, L1-L3)`, () => {
  fc.assert(fc.property(script(40), run), { numRuns, seed: 20261120 });
  recordMeasured({ runs: numRuns });
});

function run(one: Script): void {
  const wallet = new PlainWallet(START, one);
  wallet.credit("first", one.first);
  const ids = new Map<number, string>();
  for (const command of one.commands) {
    apply(wallet, command, { contents: one.contents, ids });
    wallet.check();
  }
  wallet.quiesce();
}

function apply(
  wallet: PlainWallet,
  command: Command,
  sent: { contents: readonly Content[]; ids: Map<number, string> },
): void {
  if (command.kind === "tick") return wallet.tick(command.ms);
  if (command.kind === "end") {
    wallet.end(command.session);
    return;
  }
  if (command.kind === "credit") {
    wallet.credit(`reference ${command.reference}`, command.amount);
    return;
  }
  const id = sent.ids.get(command.slot) ?? mintId("req_", wallet.now);
  sent.ids.set(command.slot, id);
  const content = sent.contents[command.slot];
  if (command.kind === "hold" && content !== undefined) wallet.hold(id, content);
  if (command.kind === "settle") wallet.settle(id, command.cost, command.tokens);
  if (command.kind === "void") wallet.void(id);
}
