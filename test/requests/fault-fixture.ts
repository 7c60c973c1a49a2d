import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { app } from "../../src/app.ts";
import { contentLengthHeader } from "../fixtures/content-length.ts";
import { refuse } from "../../src/shared/failure.ts";

/**
 * The fate of one call: its response is lost after it ran, it never arrives, it is rejected, or the
 * wallet can't read its tables.
 */
type Fault = "ok" | "lost" | "down" | "overloaded" | "unreadable";
type Call = (...args: readonly unknown[]) => Promise<unknown>;
type Calls = { readonly [method: string]: Call };
/** Methods, with the names of their faults and calls. */
type Names = Readonly<Record<string, string>>;

/** Admission with a hold of a cached key is also a hold. Its request is the last argument. */
const WALLET_CALLS: Names = {
  admit: "admit",
  hold: "hold",
  admitAndHold: "hold",
  settle: "settle",
  void: "void",
};

/**
 * The Worker with faulty objects: the faults of each method's calls in order. The last one applies
 * to all later calls.
 */
export class FaultFixture {
  readonly faults: Record<string, readonly Fault[]> = {};
  /** Calls by method, with their arguments. */
  readonly calls: Record<string, unknown[][]> = {};
  readonly env: Env;
  orgId = "";
  #key = "";

  constructor() {
    this.env = Object.create(env, {
      WALLET: { value: this.#behindBadLine(env.WALLET, WALLET_CALLS) },
      REGION_OUTBOX: { value: this.#behindBadLine(env.REGION_OUTBOX, { enqueue: "enqueue" }) },
      KEY_REGISTER: { value: this.#behindBadLine(env.KEY_REGISTER, { whose: "whose" }) },
      CLOCK_OFFSET_MS: { value: "0", writable: true },
    }) as Env;
  }

  /**
   * Creates an organization with a million micro-credits, and a key that its key object has cached.
   */
  async open(): Promise<this> {
    const slug = `f-${crypto.randomUUID().slice(0, 18)}`;
    const created = (await this.#operator("/orgs", {
      name: "Faulty",
      slug,
      owner_email: "o@example.com",
    })) as { organization: { id: string }; key: { key: string } };
    this.orgId = created.organization.id;
    this.#key = created.key.key;
    await this.#operator(`/orgs/${this.orgId}/credits`, {
      amount_micro: 1_000_000,
      reference: "first",
    });
    return this;
  }

  /**
   * Sends a completion and reads the whole response. `settled` resolves after everything that it
   * left to waitUntil.
   */
  async ask(model: string, stream: boolean) {
    const context = createExecutionContext();
    const messages = [{ role: "user", content: "one two three" }];
    const body = JSON.stringify({ model, stream, messages });
    const type = { authorization: `Bearer ${this.#key}`, "content-type": "application/json" };
    const response = await app.fetch(
      new Request("https://eu.example.com/v1/chat/completions", {
        method: "POST",
        headers: { ...type, ...contentLengthHeader(body) },
        body,
      }),
      this.env,
      context,
    );
    const text = await response.text();
    await waitOnExecutionContext(context);
    return { status: response.status, headers: response.headers, text };
  }

  /** Returns the wallet's own balance. */
  async balance(): Promise<{ creditsMicro: number; openHolds: number }> {
    const answer = await env.WALLET.getByName(this.orgId).balance();
    if (!answer.ok) throw new Error("the wallet did not answer");
    return answer.value;
  }

  /** Returns the amounts of its paid requests. */
  async paid(): Promise<readonly number[]> {
    const page = await env.WALLET.getByName(this.orgId).ledger(0, 1000);
    if (!page.ok) throw new Error("the wallet did not answer");
    return page.value.rows.filter((row) => row.kind === "usage").map((row) => row.amountMicro);
  }

  count(method: string): number {
    return this.calls[method]?.length ?? 0;
  }

  async #operator(path: string, body: object): Promise<unknown> {
    const response = await app.request(
      `https://eu.example.com/admin/v1${path}`,
      {
        method: "POST",
        headers: { authorization: `Bearer ${"a".repeat(32)}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      },
      env,
      createExecutionContext(),
    );
    if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    return response.json();
  }

  #behindBadLine(namespace: { getByName(name: string): unknown }, names: Names) {
    return {
      getByName: (name: string): Calls => {
        const stub = namespace.getByName(name) as Calls;
        const faulty = Object.entries(names).map(([method, called]) => [
          method,
          this.#faulty(stub, method, called),
        ]);
        return Object.fromEntries(faulty) as Calls;
      },
    };
  }

  #faulty(stub: Calls, method: string, called: string): Call {
    return async (...args) => {
      const calls = (this.calls[called] ??= []);
      const faults = this.faults[called] ?? [];
      const fault = faults[Math.min(calls.length, faults.length - 1)] ?? "ok";
      calls.push([...args]);
      if (fault === "down") throw new Error("Network connection lost.");
      if (fault === "overloaded") throw Object.assign(new Error("too busy"), { overloaded: true });
      if (fault === "unreadable") return refuse({ kind: "storage_unavailable" });
      const answer = await stub[method]?.(...args);
      if (fault === "lost") throw new Error("Network connection lost.");
      return answer;
    };
  }
}
