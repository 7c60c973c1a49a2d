import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { SettingsChange } from "../../../src/shared/contracts/settings.ts";
import type { WalletMethods } from "../../../src/shared/contracts/wallet.ts";
import { makeOrganization } from "./organization.ts";
import type { OrganizationOptions } from "./organization.ts";
import { openRaw } from "./raw-request.ts";
import type { RawConnection } from "./raw-request.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";
import type { TestRegion } from "./two-regions.ts";

/** Unknown outcomes are retried after at most 30 s, and the machine can be slow. */
const RESOLVED_WITHIN_MS = 100_000;
const POLL_MS = 20;

type BalanceResponse = {
  readonly credits_micro: number;
  readonly held_micro: number;
  readonly open_holds: number;
};
export type LedgerRow = {
  readonly kind: string;
  readonly amount_micro: number;
  readonly balance_micro: number;
  readonly generation_id: string | null;
};
type DatabaseRow = Readonly<Record<string, string | number | null>>;
/** An organization's rows in the database. */
type DatabaseRows = {
  readonly balance: number | null;
  readonly endUsers: readonly DatabaseRow[];
  readonly days: readonly DatabaseRow[];
};
type WalletStub = Pick<
  WalletMethods,
  "poke" | "patchSettings" | "putEndUser" | "readEndUser" | "listEndUsers" | "usage" | "reconcile"
>;

export class Account {
  readonly orgId: string;
  readonly memberId: string;
  readonly key: string;
  /** The region, as a function because tests can restart it. */
  readonly #region: () => TestRegion;

  private constructor(
    ids: { readonly orgId: string; readonly memberId: string; readonly key: string },
    region: () => TestRegion,
  ) {
    ({ orgId: this.orgId, memberId: this.memberId, key: this.key } = ids);
    this.#region = region;
  }

  /** Creates an organization. Its key allows 1000 requests per minute by default. */
  static async open(region: () => TestRegion, options: OrganizationOptions = {}): Promise<Account> {
    const whole = { rpmLimit: 1000, ...options };
    return new Account(await makeOrganization(region().adminUrl, ADMIN_TOKEN, whole), region);
  }

  call(path: string, body?: object, headers: Readonly<Record<string, string>> = {}) {
    return fetch(`${this.#region().baseUrl}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  chat(body: object): Promise<Response> {
    return this.call("/chat/completions", body);
  }

  /** Sends a completion on a connection that the test can reset. */
  open(body: object): Promise<RawConnection> {
    return openRaw({
      url: `${this.#region().baseUrl}/chat/completions`,
      headers: { authorization: `Bearer ${this.key}` },
      body: JSON.stringify(body),
    });
  }

  async balance(): Promise<number> {
    const response = await this.call("/balance");
    assert.equal(response.status, 200);
    return ((await response.json()) as { credits_micro: number }).credits_micro;
  }

  fullBalance(): Promise<BalanceResponse> {
    return this.#operatorReads(`/orgs/${this.orgId}`);
  }

  /** Waits until no hold is open, and returns the balance. */
  async resolved(): Promise<BalanceResponse> {
    const deadline = performance.now() + RESOLVED_WITHIN_MS;
    for (;;) {
      const balance = await this.fullBalance();
      if (balance.open_holds === 0) return balance;
      assert.ok(performance.now() < deadline, "a hold is still open");
      await sleep(POLL_MS);
    }
  }

  async ledger(): Promise<LedgerRow[]> {
    const rows: LedgerRow[] = [];
    let after: number | null = 0;
    while (after !== null) {
      const page: { rows: LedgerRow[]; next_after_seq: number } = await this.#operatorReads(
        `/orgs/${this.orgId}/ledger?after_seq=${after}&limit=1000`,
      );
      rows.push(...page.rows);
      after = page.rows.length === 0 ? null : page.next_after_seq;
    }
    return rows;
  }

  /** Returns the wallet, for calls without an endpoint. */
  async wallet(): Promise<WalletStub> {
    const { miniflare, name } = this.#region();
    const wallets = await miniflare.getDurableObjectNamespace("WALLET", `turnpike-${name}`);
    return wallets.getByName(this.orgId) as unknown as WalletStub;
  }

  /** Sets the organization's defaults in micro-credits. */
  async settings(change: {
    readonly [K in Exclude<keyof SettingsChange, "tagKeys" | "autoTopUp" | "budgets">]?:
      | number
      | null;
  }): Promise<void> {
    const wallet = await this.wallet();
    assert.ok((await wallet.patchSettings(change as SettingsChange)).ok);
  }

  /** Publishes the wallet and reads the database. */
  async published(): Promise<DatabaseRows> {
    const wallet = await this.wallet();
    assert.ok((await wallet.poke()).ok);
    return this.book();
  }

  async book(): Promise<DatabaseRows> {
    const { miniflare, name } = this.#region();
    const db = await miniflare.getD1Database("DB", `turnpike-${name}`);
    const rows = async (sql: string): Promise<DatabaseRow[]> =>
      (await db.prepare(sql).bind(this.orgId).all<DatabaseRow>()).results;
    const [balance] = await rows("SELECT credits_micro FROM balances WHERE org_id = ?");
    return {
      balance: balance === undefined ? null : Number(balance["credits_micro"]),
      endUsers: await rows(
        `SELECT external_id, daily_spend_micro, monthly_spend_micro FROM end_users
        WHERE org_id = ? ORDER BY external_id`,
      ),
      days: await rows(
        `SELECT day, requests, prompt_tokens, completion_tokens, cost_micro FROM daily_usage
        WHERE org_id = ? ORDER BY day`,
      ),
    };
  }

  /** Returns differences between the wallet's rows, totals and holds and the database. */
  async differences(): Promise<readonly unknown[]> {
    const answer = await this.#operator(`/orgs/${this.orgId}/reconcile`, "POST");
    return ((await answer.json()) as { differences: unknown[] }).differences;
  }

  async #operatorReads<T>(path: string): Promise<T> {
    const response = await this.#operator(path, "GET");
    assert.equal(response.status, 200);
    return (await response.json()) as T;
  }

  #operator(path: string, method: string): Promise<Response> {
    return fetch(`${this.#region().adminUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
  }
}

export function sumOf(rows: readonly LedgerRow[]): number {
  return rows.reduce((sum, row) => sum + row.amount_micro, 0);
}

/** Returns the status, headers and received body of a raw connection. */
export function answerOf(connection: RawConnection): {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
} {
  const text = connection.received().toString();
  const [head = "", ...rest] = text.split("\r\n\r\n");
  const [line = "", ...fields] = head.split("\r\n");
  const pairs = fields.map((field) => {
    const colon = field.indexOf(":");
    return [field.slice(0, colon), field.slice(colon + 1).trim()] as [string, string];
  });
  return {
    status: Number(line.split(" ")[1]),
    headers: new Headers(pairs),
    body: rest.join("\r\n\r\n"),
  };
}
