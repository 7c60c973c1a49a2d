import { readdirSync, readFileSync, statSync } from "node:fs";
import { get } from "node:http";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serveIssuer } from "../../scripts/dev-issuer.ts";
import type { ServedIssuer } from "../../scripts/dev-issuer.ts";
import type { Account } from "../../scripts/local-issuer.ts";
import { startTwoRegions } from "./support/two-regions.ts";
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

let issuer: ServedIssuer;
let regions: TwoRegions;
beforeAll(async () => {
  issuer = await serveIssuer(0, [ANN, BEN, CLEO]);
  regions = await startTwoRegions({ bindings: { ...issuer.bindings, LOG_REQUESTS: "all" } });
});
afterAll(async () => {
  await regions?.stop();
  issuer?.close();
});

/** A browser at one region's console. */
class Page {
  readonly #cookies = new Map<string, string>();
  readonly #origin: string;

  constructor(region: TestRegion) {
    this.#origin = new URL(region.baseUrl).origin;
  }

  async ask(method: string, at: string, body?: object): Promise<Response> {
    const response = await fetch(`${this.#origin}/console/api${at}`, {
      method,
      redirect: "manual",
      headers: {
        origin: this.#origin,
        cookie: this.#sent(),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    this.#keep(response.headers.getSetCookie());
    return response;
  }

  /** What a success says. */
  async tell<T>(method: string, at: string, body?: object): Promise<T> {
    const response = await this.ask(method, at, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${at}: ${response.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  /** The whole dance of a log-in. */
  async logIn({ id }: Account, fields: object): Promise<void> {
    const asked = { issuer: "local", ...fields };
    const { location } = await this.tell<{ location: string }>("POST", "/login/start", asked);
    const target = new URL(location);
    target.pathname = "/continue";
    target.searchParams.set("account", id);
    const back = await fetch(target, { redirect: "manual" });
    const url = new URL(back.headers.get("location") ?? "");
    const end = await this.#land(url);
    if (end !== "/console/#/") throw new Error(`the log-in ended at ${String(end)}`);
  }

  /** The navigation back: where it leads. `fetch` would say that it is no navigation. */
  #land(url: URL): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const asked = get(url, { headers: { cookie: this.#sent() } }, (response) => {
        response.resume();
        this.#keep(response.headers["set-cookie"] ?? []);
        resolve(response.headers.location);
      });
      asked.on("error", reject);
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

/** Whether any file of a region's stores has this text, in whatever place of it. */
function stores({ directory }: TestRegion, text: string): boolean {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => path.join(directory, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
  return files.some((file) => readFileSync(file).includes(text));
}

type Made = { readonly key: string; readonly id: string };
const globalKey = (page: Page): Promise<Made> =>
  page.tell("POST", "/v1/keys", { name: "one", scope: "global" });

it("who is removed while they stream is out in both regions with the answer, and nothing of a person is in the other region's stores or in a log", async () => {
  const { eu, us } = regions;
  const ann = new Page(eu);
  await ann.logIn(ANN, { purpose: "sign_up" });
  const { key } = await globalKey(ann);
  for (const region of [eu, us]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await chat(region, key)).status).toBe(200);
  }
  await ann.tell("POST", "/people/organization/team");
  const invited = { role: "admin", email: BEN.email };
  const { link } = await ann.tell<{ link: string }>("POST", "/people/invitations", invited);
  const ben = new Page(eu);
  await ben.logIn(BEN, { purpose: "accept", invitation: link.slice(link.lastIndexOf("/") + 1) });
  const own = await globalKey(ben);
  const { member } = await ben.tell<{ member: { id: string } }>("GET", "/session");
  const session = await fetch(`${eu.baseUrl}/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${own.key}`, "content-type": "application/json" },
    body: "{}",
  });
  const { token } = (await session.json()) as { token: string };

  const streams = await Promise.all([eu, us].map((region) => chat(region, own.key, true)));
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  await ann.tell("DELETE", `/people/members/${member.id}`);
  const refused = [eu, us].flatMap((region) => [own.key, token].map((one) => chat(region, one)));
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  expect((await ben.ask("GET", "/v1/keys")).status).toBe(401);
  for (const text of await Promise.all(streams.map((one) => one.text()))) {
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true); // what runs is finished
  }

  const cleo = new Page(us);
  await cleo.logIn(CLEO, { purpose: "sign_up" });
  const far = await globalKey(cleo);
  expect((await chat(eu, far.key)).status).toBe(200);
  type Balance = { held_micro: number; credits_micro: number };
  await expect.poll(() => ann.tell<Balance>("GET", "/v1/balance")).toMatchObject({ held_micro: 0 });

  for (const { id, name, email } of [ANN, BEN, CLEO]) {
    const [home, other] = id === CLEO.id ? [us, eu] : [eu, us];
    expect([email, stores(home, email)]).toEqual([email, true]);
    for (const text of [id, name, email]) {
      expect([other.name, text, stores(other, text)]).toEqual([other.name, text, false]);
      const lines = JSON.stringify([...eu.log, ...us.log]);
      expect([text, lines.includes(text)]).toEqual([text, false]);
    }
  }
  await ann.tell("DELETE", "/people/me", { give_up_balance: true });
  for (const region of [eu, us]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect((await chat(region, key)).status).toBe(401);
  }
});
