import type { Made } from "../admin-client.ts";
import { getOrganization } from "../admin-client.ts";
import type { Result } from "../../src/lib/failure.ts";
import type { LedgerPage, WalletCalls } from "../../src/wallet/wallet-contract.ts";
import { ask, leave } from "./ask.ts";
import type { Producer } from "./producer.ts";
import type { Finding } from "./rows.ts";
import { untilDelivered, untilResolved } from "./waiting.ts";
import { inTurns, makeAccount, startPlaces } from "./world.ts";
import type { Place, Places } from "./world.ts";

const ORGANIZATIONS = 12;
/** Some of them run dry. */
const CREDITS = [1_000_000, 1_000_000, 2000];
const REQUESTS = 900;
const CALLERS = 16;
/** Events of a stream that a client reads before it leaves, in bytes. */
const LEAVES_AFTER = 900;

/** How an organisation stands after the load, read from each place where that is kept; money in micros. */
export type Standing = {
  readonly ledger: number;
  readonly balance: number;
  readonly book: number | null;
  readonly openHolds: number;
  readonly shortfall: number;
  readonly charges: number;
  readonly estimated: number;
};

/** Rows 4 and 15: whether the three places agree, and what was not paid, or charged by estimate. */
export function loadFindings(standings: readonly Standing[], requests: number): readonly Finding[] {
  const sum = (of: (one: Standing) => number): number =>
    standings.reduce((total, one) => total + of(one), 0);
  const ledgerOff = sum(({ ledger, balance }) => Math.abs(ledger - balance));
  const bookOff = sum(({ book, balance }) => Math.abs((book ?? NaN) - balance));
  const [shortfall, charges] = [sum((one) => one.shortfall), sum((one) => one.charges)];
  const [estimated, openHolds] = [sum((one) => one.estimated), sum((one) => one.openHolds)];
  const share = (100 * estimated) / charges;
  const load = `${requests} requests, ${standings.length} organisations, both regions`;
  return [
    {
      row: 4,
      measured: `${ledgerOff}; ${bookOff} micros, ${openHolds} open holds (${load})`,
      isMet: ledgerOff === 0 && bookOff === 0 && openHolds === 0 && charges > 0,
      values: { ledgerOff, bookOff, openHolds, requests, organizations: standings.length },
    },
    {
      row: 15,
      measured: `${shortfall} micros; ${share.toFixed(1)} % of ${charges} charges (${load}, a quarter of the clients leave, with DRAIN_S 1)`,
      isMet: shortfall === 0 && charges > 0,
      values: { shortfall, charges, estimated, estimatedPercent: share },
    },
  ];
}

export const MIXED_LOAD: Producer = {
  rows: [4, 15],
  what: "a mixed load on both regions",
  seconds: 30,
  produce: async ({ scratch, say }) => {
    const places = await startPlaces({ directory: scratch, bindings: { DRAIN_S: "1" } });
    try {
      const accounts = await inTurns(ORGANIZATIONS, 4, (n) =>
        makeAccount(places.eu, { credits: CREDITS[n % CREDITS.length] ?? 0, scope: "global" }),
      );
      say(`${REQUESTS} requests`);
      await inTurns(REQUESTS, CALLERS, (n) => send(places, accounts, n));
      say("waiting for every hold and outbox");
      for (const { orgId } of accounts) await untilResolved(places.eu, orgId);
      await Promise.all([untilDelivered(places.us), untilDelivered(places.eu)]);
      const standings = await inTurns(accounts.length, 4, (n) =>
        standingOf(places.eu, accounts[n]),
      );
      return loadFindings(standings, REQUESTS);
    } finally {
      await places.stop();
    }
  },
};

/** The n-th request: every kind, in both regions, with keys of all organisations. */
async function send({ eu, us }: Places, accounts: readonly Made[], n: number): Promise<void> {
  const place = n % 3 === 0 ? us : eu;
  const key = accounts[n % accounts.length]?.key ?? "";
  const kind = Math.floor(n / accounts.length) % 12;
  const chat = (model: string, more: object = {}): object => ({
    model: `sandbox/${model}`,
    messages: [{ role: "user", content: `What is said ${n} times. `.repeat(1 + (n % 9)) }],
    max_tokens: 120,
    user: ["ann", "bob", undefined][n % 3],
    ...more,
  });
  const streamed = { stream: true, stream_options: { include_usage: true } };
  if (kind < 3) {
    await leave(place, key, chat("slow-stream", streamed), LEAVES_AFTER * (1 + kind));
  } else if (kind === 3) {
    await ask(place, key, "/embeddings", { model: "sandbox/embed", input: ["a", "b"] });
  } else {
    const bodies = [chat("cut", streamed), chat("no-usage", streamed), chat("status-500")];
    const usual = chat("echo", n % 2 === 0 ? {} : streamed);
    await ask(place, key, "/chat/completions", bodies[kind - 4] ?? usual);
  }
}

type WalletStub = {
  poke: WalletCalls["poke"];
  ledger: (after: number, limit: number) => Promise<Result<LedgerPage>>;
};

async function standingOf(eu: Place, account: Made | undefined): Promise<Standing> {
  const { orgId = "", key = "" } = account ?? {};
  const wallets = await eu.miniflare.getDurableObjectNamespace("WALLET", eu.worker);
  const wallet = wallets.getByName(orgId) as unknown as WalletStub;
  await wallet.poke(); // publishes now
  const page = await wallet.ledger(0, 1000);
  if (!page.ok) throw new Error("a wallet did not answer");
  const { rows } = page.value;
  const paid = rows.filter((row) => row.kind === "usage");
  const isEstimated = await inTurns(paid.length, 8, async (n) => {
    const { text } = await ask(eu, key, `/generations/${paid[n]?.generationId ?? ""}`);
    return (JSON.parse(text) as { estimated: boolean }).estimated;
  });
  const db = await eu.miniflare.getD1Database("DB", eu.worker);
  const book = await db
    .prepare("SELECT credits_micro FROM balances WHERE org_id = ?")
    .bind(orgId)
    .first<number>("credits_micro");
  const standing = await getOrganization(eu.admin, orgId);
  if (standing.credits_micro === null || standing.open_holds === null) {
    throw new Error("a wallet did not answer");
  }
  return {
    ledger: rows.reduce((sum, row) => sum + row.amountMicro, 0),
    balance: standing.credits_micro,
    book,
    openHolds: standing.open_holds,
    shortfall: rows.reduce((sum, row) => sum + row.absorbedMicro, 0),
    charges: paid.length,
    estimated: isEstimated.filter(Boolean).length,
  };
}
