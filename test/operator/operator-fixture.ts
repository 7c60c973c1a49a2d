import { env } from "cloudflare:workers";
import { refuse, success } from "../../src/shared/failure.ts";
import { micros } from "../../src/shared/money.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import type { EndpointResult } from "../../src/shared/http/endpoint.ts";
import type { OperatorContext } from "../../src/operator/operator-context.ts";
import type { WalletCalls } from "../../src/shared/contracts/wallet.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import type { Configuration } from "../../src/shared/contracts/settings.ts";

/** One organization's wallet in memory, with the methods that operators use. */
export class FakeWallet implements Partial<WalletCalls> {
  epoch: string | null = null;
  credits = 0;
  down = false;
  configuration: Configuration = {
    rpmLimit: null,
    suspended: false,
    closed: false,
    priceList: null,
  };
  readonly references = new Map<string, number>();

  async create(): Promise<{ epoch: string }> {
    this.check();
    this.epoch ??= crypto.randomUUID();
    return { epoch: this.epoch };
  }

  async discard(): Promise<boolean> {
    this.epoch = null;
    return true;
  }

  async credit(request: {
    amountMicro: number;
    reference: string;
  }): ReturnType<WalletCalls["credit"]> {
    this.check();
    if (!this.references.has(request.reference)) this.credits += request.amountMicro;
    this.references.set(request.reference, request.amountMicro);
    return this.balance();
  }

  async balance(): ReturnType<WalletCalls["balance"]> {
    this.check();
    return success({ creditsMicro: micros(this.credits), heldMicro: micros(0), openHolds: 0 });
  }

  async configure(
    change: Parameters<WalletCalls["configure"]>[0],
  ): ReturnType<WalletCalls["configure"]> {
    this.check();
    this.configuration = { ...this.configuration, ...change };
    return success(this.configuration);
  }

  async revokeKey(): ReturnType<WalletCalls["revokeKey"]> {
    this.check();
    return success(null);
  }

  async setKeyLimit(): ReturnType<WalletCalls["setKeyLimit"]> {
    this.check();
    return success(null);
  }

  async setKeyTerms(): ReturnType<WalletCalls["setKeyTerms"]> {
    this.check();
    return success(null);
  }

  async ledger(afterSeq: number, limit: number): ReturnType<WalletCalls["ledger"]> {
    const rows = [...this.references].map(([reference, amountMicro], i) => ({
      seq: i + 1,
      kind: "credit" as const,
      amountMicro: micros(amountMicro),
      balanceMicro: micros(this.credits),
      absorbedMicro: micros(0),
      createdAt: 0,
      reference,
      generationId: null,
    }));
    const page = rows.filter((row) => row.seq > afterSeq).slice(0, limit);
    return success({ rows: page, nextAfterSeq: page.at(-1)?.seq ?? afterSeq });
  }

  async reconcile(): ReturnType<WalletCalls["reconcile"]> {
    if (this.epoch === null) return refuse({ kind: "storage_unavailable" });
    const creditsMicro = micros(this.credits);
    const balance = { creditsMicro, heldMicro: micros(0), openHolds: 0 };
    return success({ ...balance, seq: 0, book: null, differences: [], rowsRead: 0 });
  }

  private check(): void {
    if (this.down) throw Object.assign(new Error("lost"), { retryable: true });
  }
}

/** The wallets of a test by organization, cleared before each test. */
export const wallets = new Map<string, FakeWallet>();

export function walletOf(orgId: string): FakeWallet {
  const wallet = wallets.get(orgId) ?? new FakeWallet();
  wallets.set(orgId, wallet);
  return wallet;
}

export function context(): OperatorContext {
  return {
    db: env.DB,
    region: "eu",
    peers: ["us"],
    version: "test",
    requestId: "req_test",
    role: "all",
    priceLeadMs: 3_600_000,
    aliases: new Map([["smart", "sandbox/echo"]]),
    names: { entryOf: (name) => (name.startsWith("sandbox/") ? name : null), isAlias: () => false },
    models: new Map(),
    providers: new Set(),
    checkPeer: () =>
      Promise.resolve({ url: "https://us.test", fault: null, rttMs: 1, lastOkMs: 1 }),
    breakers: [{ route: "up:m", state: "open", untilMs: 0 }],
    keySecrets: keySecrets(),
    now: Date.now(),
    actor: { kind: "operator", id: "admin" },
    ...objectsOf(env),
    wallet: (orgId) => walletOf(orgId) as Partial<WalletCalls> as WalletCalls,
    companyDomains: "approve",
    mail: null,
    takeEvents: () => undefined,
    paymentOf: (id) => Promise.resolve(id),
  };
}

/**
 * Calls an endpoint by its path in the route table, such as `GET /orgs/:id`, with parameters, query
 * and body.
 */
export async function call(
  target: string,
  options: { params?: Record<string, string>; query?: string; body?: unknown } = {},
): Promise<EndpointResult> {
  const name = target.replace(" ", " /admin/v1");
  const endpoint = OPERATOR_ROUTES.find(({ method, path }) => `${method} ${path}` === name);
  if (endpoint === undefined) throw new Error(`no such endpoint: ${target}`);
  return await endpoint.handle({
    ...context(),
    params: options.params ?? {},
    url: `http://eu.test/admin/v1?${options.query ?? ""}`,
    body: options.body ?? null,
    idempotencyKey: null,
  });
}

export function valueOf(result: EndpointResult): Readonly<Record<string, unknown>> {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.failure)}`);
  return { ...result.value };
}

export function slug(): string {
  return `t-${crypto.randomUUID().slice(0, 18)}`;
}

export type Made = {
  readonly organization: { readonly id: string; readonly slug: string };
  readonly member: { readonly id: string };
  readonly key: { readonly id: string; readonly key: string };
};

export async function makeOrganization(fields: Record<string, unknown> = {}): Promise<Made> {
  const body = { name: "Acme", slug: slug(), owner_email: "o@example.com", ...fields };
  return valueOf(await call("POST /orgs", { body })) as Made;
}
