import { expireSessions } from "./checkout.ts";
import { listEvents } from "./events.ts";
import type { ListedEvent } from "./events.ts";
import { truncatedResponse, preventsCall, NoResponse, errorOf, SLOW_MS } from "./faults.ts";
import type { Fault } from "./faults.ts";
import { IdempotencyStore } from "./idempotency.ts";
import type { Answer } from "./idempotency.ts";
import { collectOpen } from "./invoices.ts";
import { expandProperties } from "./lists.ts";
import type { StripeEvent } from "./objects.ts";
import { Params } from "./params.ts";
import { Bank, Person } from "./people.ts";
import { badParameter, StripeError } from "./stripe-error.ts";
import { paymentsOf, truthOf } from "./returns.ts";
import type { Payment, Truth } from "./returns.ts";
import { perform } from "./routes.ts";
import { API_VERSION, emptyTables } from "./state.ts";
import type { Tables, StripeState } from "./state.ts";

type FakeOptions = {
  /** The clock, in ms. */
  readonly now: () => number;
  /** The URL prefix of hosted pages. */
  readonly pages?: string;
  readonly taxPercent?: number;
  /** Waits for slow responses. */
  readonly sleep?: (ms: number) => Promise<void>;
};

/** A received request with its response. A status of 0 means no response. */
type ReceivedRequest = {
  readonly method: string;
  readonly path: string;
  readonly key: string | null;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
  readonly replayed: boolean;
};

/** The whole state as JSON. */
export type Snapshot = {
  readonly tables: Readonly<Record<string, readonly (readonly [string, unknown])[]>>;
  readonly happened: readonly ListedEvent[];
  readonly answers: IdempotencyStore["entries"];
};

/**
 * A Stripe with memory. `handle` is its API, `person` its buyers, `bank` its banks. It rejects what
 * Stripe rejects, repeats responses by idempotency key, and can lose or break a response (`fault`).
 * It has no network or clock.
 */
export class FakeStripe {
  readonly requests: ReceivedRequest[] = [];
  readonly person: Person;
  readonly bank: Bank;
  readonly world: StripeState;
  /** Called for each event. */
  onEvent: (event: StripeEvent) => void = () => {};
  readonly #happened: ListedEvent[] = [];
  readonly #faults: Fault[] = [];
  readonly #options: FakeOptions;
  #answers: IdempotencyStore;
  #hiddenFor = 0;
  #ids = 0;
  #taken = 0;
  #request: StripeEvent["request"] = { id: null, idempotency_key: null };

  constructor(options: FakeOptions) {
    this.#options = options;
    this.#answers = new IdempotencyStore(options.now);
    const run = Math.floor(options.now()).toString(36);
    this.world = {
      ...emptyTables(),
      nextCharges: [],
      seconds: () => Math.floor(options.now() / 1000),
      id: (prefix) => `${prefix}_${run}${(++this.#ids).toString(36).padStart(6, "0")}`,
      emit: (type, object, previous) => this.#emit(type, object, previous),
      pages: options.pages ?? "http://stripe.test",
      taxPercent: options.taxPercent ?? 0,
    };
    this.person = new Person(this.world);
    this.bank = new Bank(this.world);
  }

  /** All events, oldest first. */
  get events(): readonly StripeEvent[] {
    return this.#happened.map(({ event }) => event);
  }

  /** Delays the listing of events. */
  hideEvents(ms: number): void {
    this.#hiddenFor = ms;
  }

  /** Breaks one response, to the first matching request. */
  fault(fault: Fault): void {
    this.#faults.push(fault);
  }

  /** Removes unused faults. */
  clearFaults(): void {
    this.#faults.length = 0;
  }

  /** Returns a payment's true state, in cents. */
  truth(intent: string): Truth {
    return truthOf(this.world, intent);
  }

  /** Returns each payment that received money, in order of creation. */
  payments(): Payment[] {
    return paymentsOf(this.world);
  }

  /** Returns events since the last call, in order. */
  takeEvents(): StripeEvent[] {
    const events = this.#happened.slice(this.#taken).map(({ event }) => event);
    this.#taken = this.#happened.length;
    return events;
  }

  /** Collects invoices with `auto_advance`. */
  collectOpenInvoices(): void {
    collectOpen(this.world);
  }

  snapshot(): Snapshot {
    const names = Object.keys(emptyTables()) as (keyof Tables)[];
    const tables = Object.fromEntries(names.map((name) => [name, [...this.world[name]]]));
    return { tables, happened: this.#happened, answers: this.#answers.entries };
  }

  restore({ tables, happened, answers }: Snapshot): void {
    for (const name of Object.keys(emptyTables()) as (keyof Tables)[]) {
      const table: Map<string, unknown> = this.world[name];
      for (const [id, one] of tables[name] ?? []) table.set(id, one);
    }
    this.#happened.push(...happened);
    this.#answers = new IdempotencyStore(this.#options.now, answers);
  }

  /** Serves the API. Rejects if there is no response. */
  async handle(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const body = new TextDecoder().decode(await request.arrayBuffer());
    const params = new Params(request.method === "GET" ? searchParams : new URLSearchParams(body));
    const key = request.method === "POST" ? request.headers.get("idempotency-key") : null;
    const call = { method: request.method, path: pathname, params, key };
    const fault = this.#faultFor(`${call.method} ${call.path}`);
    const note = (status: number, replayed: boolean): void => {
      const { method, path } = call;
      this.requests.push({ method, path, key, params: params.all, status, replayed });
    };
    try {
      refuseRequest(request, body);
      const { answer, replayed } = await this.#spoiled(call, fault);
      note(answer.status, replayed);
      const response = this.#respond(answer, replayed, fault);
      return fault?.kind === "reset" ? truncatedResponse(response, answer.body) : response;
    } catch (error) {
      if (error instanceof NoResponse) note(0, false);
      if (!(error instanceof StripeError)) throw error;
      note(error.status, false);
      return this.#respond(answerOf(error), false, fault);
    }
  }

  /** Runs the call unless the fault comes before it, then fails. */
  async #spoiled(call: Call, fault: Fault | null): Promise<Done> {
    if (fault === null) return this.#once(call);
    if (preventsCall(fault)) {
      await this.#fail(call, fault);
      if (fault.kind === "reset") throw new NoResponse();
      return this.#once(call);
    }
    const done = this.#once(call);
    await this.#fail(call, fault);
    return done;
  }

  /** Throws the fault's error. A slow fault only waits. */
  async #fail(call: Call, fault: Fault): Promise<void> {
    const { sleep = () => Promise.resolve() } = this.#options;
    if (fault.kind === "slow") await this.#answers.running(call.key, () => sleep(SLOW_MS));
    if (fault.kind === "no_answer") throw new NoResponse();
    const refusal = errorOf(fault);
    if (refusal === null) return;
    if (fault.kind === "500_stored") this.#keep(call, answerOf(refusal));
    throw refusal;
  }

  /** Runs the call, or repeats the response for its key. */
  #once(call: Call): Done {
    const fingerprint = fingerprintOf(call);
    const known = call.key === null ? null : this.#answers.read(call.key, fingerprint);
    if (known !== null) return { answer: known, replayed: true };
    this.#request = { id: this.world.id("req"), idempotency_key: call.key };
    try {
      const answer = { status: 200, body: JSON.stringify(this.#perform(call), null, 2) };
      this.#keep(call, answer);
      return { answer, replayed: false };
    } catch (error) {
      if (error instanceof StripeError && error.kept) this.#keep(call, answerOf(error));
      throw error;
    } finally {
      this.#request = { id: null, idempotency_key: null };
    }
  }

  #perform({ method, path, params }: Call): object {
    expireSessions(this.world);
    const now = this.world.seconds();
    const isEvents = method === "GET" && path === "/v1/events";
    const answer = isEvents
      ? listEvents(this.#happened, params, now)
      : perform(this.world, method, path, params);
    return expandProperties(this.world, answer, params.list("expand"));
  }

  #keep(call: Call, answer: Answer): void {
    if (call.key !== null) this.#answers.keep(call.key, fingerprintOf(call), answer);
  }

  #faultFor(what: string): Fault | null {
    const at = this.#faults.findIndex(({ on }) => on === undefined || on.test(what));
    return at === -1 ? null : (this.#faults.splice(at, 1)[0] ?? null);
  }

  #respond({ status, body }: Answer, replayed: boolean, fault: Fault | null): Response {
    const retry = status === 409 || (status === 500 && fault?.kind !== "500_stored");
    const headers = new Headers({
      "content-type": "application/json",
      "request-id": this.world.id("req"),
      "stripe-version": API_VERSION,
    });
    if (status === 409 || status >= 500) {
      headers.set("stripe-should-retry", String(retry && !replayed));
    }
    if (status === 429) headers.set("stripe-rate-limited-reason", "endpoint-rate");
    if (replayed) headers.set("idempotent-replayed", "true");
    return new Response(body, { status, headers });
  }

  #emit(type: string, object: object, previous?: Record<string, unknown>): void {
    const event: StripeEvent = {
      id: this.world.id("evt"),
      object: "event",
      api_version: API_VERSION,
      created: this.world.seconds(),
      livemode: false,
      type,
      data: {
        object: structuredClone(object) as Record<string, unknown>,
        ...(previous === undefined ? {} : { previous_attributes: previous }),
      },
      request: this.#request,
    };
    const visibleAt = (this.#options.now() + this.#hiddenFor) / 1000;
    this.#happened.push({ event, visibleAt: Math.floor(visibleAt) });
    this.onEvent(event);
  }
}

type Call = {
  readonly method: string;
  readonly path: string;
  readonly params: Params;
  readonly key: string | null;
};

type Done = { readonly answer: Answer; readonly replayed: boolean };

const fingerprintOf = ({ method, path, params }: Call): string =>
  `${method} ${path} ${params.fingerprint}`;

const answerOf = ({ status, error }: StripeError): Answer => ({
  status,
  body: JSON.stringify({ error }, null, 2),
});

/** Throws for a wrong key, version or content type. */
function refuseRequest(request: Request, body: string): void {
  const credential = request.headers.get("authorization") ?? "";
  if (!/^Bearer (?:sk|rk)_test_\w+$/.test(credential)) {
    throw new StripeError(
      401,
      { type: "invalid_request_error", message: "Invalid API Key provided." },
      false,
    );
  }
  const version = request.headers.get("stripe-version");
  if (version !== API_VERSION) {
    throw badParameter(`Stripe-Version must be ${API_VERSION}: ${version}`);
  }
  const type = request.headers.get("content-type") ?? "";
  if (request.method === "POST" && !type.startsWith("application/x-www-form-urlencoded")) {
    throw badParameter(`Invalid content type ${type}; a body of ${body.length} characters`);
  }
}
