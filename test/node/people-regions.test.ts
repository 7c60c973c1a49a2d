import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serveIssuer } from "../../scripts/dev-issuer.ts";
import type { ServedIssuer } from "../../scripts/dev-issuer.ts";
import { signedWebhook } from "../fakes/stripe/events.ts";
import type { StripeEvent } from "../fakes/stripe/objects.ts";
import type { Account } from "../fakes/local-issuer.ts";
import { serveStripe } from "../../scripts/dev-stripe.ts";
import type { ServedStripe } from "../../scripts/dev-stripe.ts";
import { ADMIN_TOKEN, startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion, TwoRegions } from "./support/two-regions.ts";

const account = (word: string): Account => ({
  id: `subject-of-${word}`,
  name: `Name-of-${word}`,
  email: `address-of-${word}@example.test`,
  isVerified: true,
});
const ANN = account("annabella");
const BEN = account("benedict");
const CLEO = account("cleopatra");

const STRIPE_SECRET = "whsec_of_this_machine";
/** One Stripe account sends its webhooks to both regions. */
const endpointOf = ({ baseUrl }: TestRegion) => ({
  url: `${new URL(baseUrl).origin}/payments/stripe`,
  secrets: [STRIPE_SECRET],
});

let issuer: ServedIssuer;
let stripe: ServedStripe;
let regions: TwoRegions;
/** Events that the customer's webhook received. */
const received: string[] = [];
const receiver = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    received.push(body);
    response.writeHead(204).end();
  });
});
beforeAll(async () => {
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  issuer = await serveIssuer(0, [ANN, BEN, CLEO]);
  stripe = await serveStripe();
  const payments = {
    STRIPE_SECRET_KEY: "sk_test_of_this_machine",
    STRIPE_WEBHOOK_SECRETS: STRIPE_SECRET,
    STRIPE_BASE_URL: stripe.url,
  };
  const bindings = { ...issuer.bindings, ...payments, LOG_REQUESTS: "all" };
  regions = await startTwoRegions({ bindings });
  stripe.sendTo([endpointOf(regions.eu), endpointOf(regions.us)]);
});
afterAll(async () => {
  await regions?.stop();
  stripe?.close();
  issuer?.close();
  receiver.closeAllConnections();
  receiver.close();
});

/** A browser with one region's console. */
class Page {
  readonly #cookies = new Map<string, string>();
  readonly #origin: string;

  constructor(region: TestRegion) {
    this.#origin = new URL(region.baseUrl).origin;
  }

  async send(method: string, at: string, body?: object): Promise<Response> {
    const response = await fetch(`${this.#origin}/console/api${at}`, {
      method,
      redirect: "manual",
      headers: {
        origin: this.#origin,
        "idempotency-key": crypto.randomUUID(),
        cookie: this.#sent(),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    this.#keep(response.headers.getSetCookie());
    return response;
  }

  /** Returns the body of a successful response. */
  async fetchBody<T>(method: string, at: string, body?: object): Promise<T> {
    const response = await this.send(method, at, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${at}: ${response.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  /** Goes through all steps of a login. */
  async logIn({ id }: Account, fields: object): Promise<void> {
    const body = { issuer: "local", ...fields };
    const { location } = await this.fetchBody<{ location: string }>("POST", "/login/start", body);
    const target = new URL(location);
    target.pathname = "/continue";
    target.searchParams.set("account", id);
    const back = await fetch(target, { redirect: "manual" });
    const url = new URL(back.headers.get("location") ?? "");
    const end = await this.#land(url);
    if (end !== "/console/#/") throw new Error(`the log-in ended at ${String(end)}`);
  }

  /**
   * Returns the redirect of a navigation. Doesn't use `fetch`, which sends its own Sec-Fetch-Mode.
   */
  #land(url: URL): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const request = get(url, { headers: { cookie: this.#sent() } }, (response) => {
        response.resume();
        this.#keep(response.headers["set-cookie"] ?? []);
        resolve(response.headers.location);
      });
      request.on("error", reject);
    });
  }

  #sent(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(cookies: readonly string[]): void {
    for (const cookie of cookies) {
      const [pair = ""] = cookie.split(";", 1);
      this.#cookies.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
  }
}

function chat(region: TestRegion, key: string, stream = false): Promise<Response> {
  return fetch(`${region.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "sandbox/echo",
      messages: [{ role: "user", content: "word ".repeat(stream ? 200 : 2) }],
      stream,
    }),
  });
}

/** Reports whether any stored file of a region contains the text. */
function stores({ directory }: TestRegion, text: string): boolean {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(directory, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
  return files.some((file) => readFileSync(file).includes(text));
}

type Made = { readonly key: string; readonly id: string };
const globalKey = (page: Page): Promise<Made> =>
  page.fetchBody("POST", "/v1/keys", { name: "one", scope: "global" });

/** Buys credits by card and waits until they are added. */
async function buy(page: Page): Promise<void> {
  const body = { amount_dollars: 10, method: "checkout" };
  const { id } = await page.fetchBody<{ id: string }>("POST", "/v1/credits/purchases", body);
  const session = () =>
    [...stripe.fake.world.sessions.values()].find((one) => one.metadata["purchase_id"] === id);
  await expect.poll(() => session()?.id).toBeDefined();
  stripe.fake.person.pay(session()?.id ?? "");
  const stateOf = async (): Promise<string> =>
    (await page.fetchBody<{ state: string }>("GET", `/v1/credits/purchases/${id}`)).state;
  await expect.poll(stateOf, { timeout: 30_000 }).toBe("credited");
}

/** Delivers an event's webhook to the region. */
async function hear(region: TestRegion, event: StripeEvent): Promise<void> {
  const request = await signedWebhook(event, endpointOf(region), Math.floor(Date.now() / 1000));
  expect((await fetch(request)).status).toBe(200);
}

/** Posts a price list and assigns it to the organization as an operator. */
async function sellAt(region: TestRegion, organization: string): Promise<void> {
  const send = async (method: string, at: string, body: object): Promise<void> => {
    const answer = await fetch(`${new URL(region.baseUrl).origin}/admin/v1${at}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect([at, answer.ok]).toEqual([at, true]);
  };
  const from = new Date(Date.now() + 40 * 86_400_000).toISOString();
  const row = { list: "of-a-team", item: "sandbox/echo", from, price: { input: 1, output: 2 } };
  await send("POST", "/prices", { rows: [row] });
  await send("PATCH", `/orgs/${organization}`, { price_list: "of-a-team" });
}

it("removing a member takes effect in both regions immediately, and sends no personal data to the other region", async () => {
  const { eu, us } = regions;
  const ann = new Page(eu);
  await ann.logIn(ANN, { purpose: "sign_up" });
  const { key } = await globalKey(ann);
  for (const region of [eu, us]) {
    expect((await chat(region, key)).status).toBe(200);
  }
  await ann.fetchBody("POST", "/people/organization/team");
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  await ann.fetchBody("POST", "/v1/webhooks", { url: hook });
  const { organization } = await ann.fetchBody<{ organization: { id: string } }>("GET", "/session");
  await sellAt(eu, organization.id);
  await buy(ann);
  const invited = { role: "admin", email: BEN.email };
  const { link } = await ann.fetchBody<{ link: string }>("POST", "/people/invitations", invited);
  const ben = new Page(eu);
  await ben.logIn(BEN, { purpose: "accept", invitation: link.slice(link.lastIndexOf("/") + 1) });
  const own = await globalKey(ben);
  const { member } = await ben.fetchBody<{ member: { id: string } }>("GET", "/session");
  const session = await fetch(`${eu.baseUrl}/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${own.key}`, "content-type": "application/json" },
    body: "{}",
  });
  const { token } = (await session.json()) as { token: string };

  const streams = await Promise.all([eu, us].map((region) => chat(region, own.key, true)));
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  await ann.fetchBody("DELETE", `/people/members/${member.id}`);
  const refused = [eu, us].flatMap((region) => [own.key, token].map((one) => chat(region, one)));
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  expect((await ben.send("GET", "/v1/keys")).status).toBe(401);
  for (const text of await Promise.all(streams.map((one) => one.text()))) {
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true); // running streams are completed
  }

  const cleo = new Page(us);
  await cleo.logIn(CLEO, { purpose: "sign_up" });
  const far = await globalKey(cleo);
  expect((await chat(eu, far.key)).status).toBe(200);
  type Balance = { held_micro: number; credits_micro: number };
  await expect
    .poll(() => ann.fetchBody<Balance>("GET", "/v1/balance"))
    .toMatchObject({ held_micro: 0 });

  await buy(cleo);
  const types = [
    "invitation.created",
    "member.removed",
    "purchase.credited",
    "organization.changed",
  ];
  for (const type of types) {
    await expect.poll(() => received.some((one) => one.includes(type))).toBe(true);
  }
  for (const event of stripe.fake.events) {
    await Promise.all([eu, us].map((region) => hear(region, event)));
  }

  for (const { id, name, email } of [ANN, BEN, CLEO]) {
    const [home, other] = id === CLEO.id ? [us, eu] : [eu, us];
    expect([email, stores(home, email)]).toEqual([email, true]);
    for (const text of [id, name, email]) {
      expect([other.name, text, stores(other, text)]).toEqual([other.name, text, false]);
      const lines = JSON.stringify([...eu.log, ...us.log]);
      expect([text, lines.includes(text)]).toEqual([text, false]);
      expect([text, received.some((one) => one.includes(text))]).toEqual([text, false]);
    }
  }
  await ann.fetchBody("DELETE", "/people/me", { give_up_balance: true });
  for (const region of [eu, us]) {
    expect((await chat(region, key)).status).toBe(401);
  }
});
