import type { Locator, Page, Request, Response } from "playwright-core";
import { expect } from "vitest";
import { navigation } from "./browser.ts";

const PAID = /\/console\/api\/v1\/(?:chat\/completions|completions|responses|messages|embeddings)$/;
/** Name of objects that the walk may open and end. */
export const SPARE = "spare";

/** The input device. Each button must work with both. */
type By = "mouse" | "keyboard";
export type Pressing = {
  readonly by?: By;
  /** Labels of buttons that would end or leave the walk. */
  readonly without?: readonly string[];
  /** Replaces the page's session by another one of the same role with unused calls. */
  readonly renew?: (page: Page) => Promise<void>;
  /** Additional addresses to walk, besides those that the pages link to. */
  readonly also?: readonly string[];
};
export type Pressed = {
  /** Each press, as `Keys: New key: Create key`. */
  readonly pressed: readonly string[];
  /** Presses that sent a paid request, once for each request. */
  readonly paid: readonly string[];
  /** Changes that were rejected because of the role or owner. Their buttons should not be there. */
  readonly refused: readonly string[];
};

/** Maximum calls of a session per minute, minus those that a press may need. */
const CALLS_A_MINUTE = 220;
/** Calls of a page: those in progress, and the time of each call in the last minute. */
type Calls = { readonly underWay: Map<Request, number>; at: number[] };
const callsOf = new WeakMap<Page, Calls>();

/**
 * Waits until the session may make the calls of a press. Switches to another session of the same
 * role if possible.
 */
async function awaitRoom(page: Page, renew: Pressing["renew"]): Promise<void> {
  const calls = callsOf.get(page) ?? watch(page);
  const recent = (): number => {
    calls.at = calls.at.filter((at) => at > Date.now() - 60_000);
    return calls.at.length;
  };
  if (recent() < CALLS_A_MINUTE) return;
  if (renew === undefined) await expect.poll(recent, { timeout: 70_000 }).toBeLessThan(100);
  else {
    await renew(page);
    calls.at = [];
  }
}

/**
 * Calls without a response after this time belong to a page that was left, so nothing waits for
 * them.
 */
const SLOW_MS = 3000;

/** Waits until the page has loaded and drawn everything, including a dialog that waits for data. */
async function quiet(page: Page): Promise<void> {
  const { underWay } = callsOf.get(page) ?? watch(page);
  const awaited = (): number =>
    [...underWay.values()].filter((since) => since > Date.now() - SLOW_MS).length;
  for (;;) {
    await page.waitForFunction(() => document.querySelector("main [aria-busy=true]") === null);
    await expect.poll(awaited).toBe(0);
    await page.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    if (awaited() === 0) return;
  }
}

function watch(page: Page): Calls {
  const calls: Calls = { underWay: new Map(), at: [] };
  callsOf.set(page, calls);
  page.on("request", (call) => {
    if (!call.url().includes("/console/api/")) return;
    calls.underWay.set(call, Date.now());
    calls.at.push(Date.now());
  });
  for (const end of ["requestfinished", "requestfailed"] as const) {
    page.on(end as "requestfinished", (call) => void calls.underWay.delete(call));
  }
  return calls;
}

/** Counts the paid requests of a page. */
export function paidBy(page: Page): () => number {
  let sent = 0;
  page.on("request", (request) => {
    if (request.method() === "POST" && PAID.test(request.url())) sent += 1;
  });
  return () => sent;
}

/**
 * Presses every button of every page, its tabs, its rows and the dialogs behind them, each on a
 * newly drawn page. Of buttons that each row has, presses the first two. Presses buttons that end
 * something last.
 */
export async function pressAll(page: Page, pressing: Pressing = {}): Promise<Pressed> {
  const walk = new Walk(page, pressing);
  const pages = await pagesOf(page);
  for (const name of pages) {
    await awaitRoom(page, pressing.renew);
    for (const at of await placesOf(page, name, pressing.also)) {
      await walk.press({ name, ...at }).catch(async (error: unknown) => {
        const seen = await page.locator("body").textContent();
        throw new Error(
          `after ${walk.pressed.at(-1) ?? ""}, at ${at.address}: ${seen?.slice(0, 300) ?? ""}`,
          { cause: error },
        );
      });
    }
  }
  return walk;
}

/** An address of a page. `opensRow`: opens the first row, which has no address of its own. */
type At = { readonly address: string; readonly opensRow?: boolean };
/** A place in a page of the navigation. */
type Place = At & { readonly name: string };

class Walk implements Pressed {
  readonly pressed: string[] = [];
  readonly paid: string[] = [];
  readonly refused: string[] = [];
  readonly #page: Page;
  readonly #by: By;
  readonly #without: readonly string[];
  readonly #renew: Pressing["renew"];
  /** The drawn content of the page. An unchanged page is not drawn again. */
  #drawn = "";
  readonly #paid: () => number;
  /** Paths of objects that the walk has ended. */
  readonly #ended = new Set<string>();

  constructor(page: Page, { by = "mouse", without = [], renew }: Pressing) {
    this.#page = page;
    this.#by = by;
    this.#without = without;
    this.#renew = renew;
    this.#paid = paidBy(page);
    page.on("response", (response) => this.#note(response));
  }

  /** Records a rejected change: a 403, or a 404 unless the walk has ended the object. */
  #note(response: Response): void {
    const [method, status] = [response.request().method(), response.status()];
    if (method === "GET") return;
    const { pathname } = new URL(response.url());
    if (method === "DELETE" && response.ok()) this.#ended.add(pathname);
    const isEnded = [...this.#ended].some((at) => `${pathname}/`.startsWith(`${at}/`));
    if (status !== 403 && (status !== 404 || isEnded)) return;
    this.refused.push(`${this.pressed.at(-1) ?? ""}: ${method} ${pathname}: ${status}`);
  }

  /** Presses all buttons of a place. Finishes what a button opens before the next button. */
  async press(place: Place): Promise<void> {
    await this.#draw(place);
    for (const i of await this.#order()) {
      await this.#draw(place);
      const title = await titleOf(this.#page);
      if (await this.#pressOne(i, place.name)) await this.#pressOpened([i], place, title);
    }
  }

  /**
   * Presses the buttons of the dialog that a press opened, if any. Opens the dialog again for each
   * button.
   */
  async #pressOpened(path: readonly number[], place: Place, under: string): Promise<void> {
    const title = await titleOf(this.#page);
    if (title === "" || title === under) return;
    const at = `${place.name}: ${title}`;
    for (const [nth, i] of (await this.#order()).entries()) {
      // The press removed the filled fields.
      if (nth > 0 && !(await this.#reopen(path, place, title))) return;
      await fill(this.#page);
      if (await this.#pressOne(i, at)) await this.#pressBehind(title, place.name);
    }
  }

  /**
   * Presses the buttons that appear after a dialog, such as those of a new secret, until one closes
   * it.
   */
  async #pressBehind(title: string, name: string): Promise<void> {
    const behind = await titleOf(this.#page);
    if (behind === "" || behind === title) return;
    for (const i of (await this.#order()).toReversed()) {
      if ((await titleOf(this.#page)) !== behind) return;
      await this.#pressOne(i, `${name}: ${behind}`);
    }
  }

  async #reopen(path: readonly number[], place: Place, title: string): Promise<boolean> {
    await this.#draw(place);
    for (const i of path) {
      const button = buttonsOf(this.#page).nth(i);
      if ((await button.count()) > 0) await button.click();
    }
    await quiet(this.#page);
    return (await titleOf(this.#page)) === title;
  }

  /** Presses the i-th enabled button. Returns false if there is none or it must be skipped. */
  async #pressOne(i: number, at: string): Promise<boolean> {
    const button = buttonsOf(this.#page).nth(i);
    if ((await button.count()) === 0) return false;
    const label = (await button.textContent()) ?? "";
    if (this.#without.includes(label)) return false;
    const before = this.#paid();
    if (this.#by === "mouse") await button.click();
    else await button.press("Enter");
    this.pressed.push(`${at}: ${label}`);
    await quiet(this.#page);
    if (label === "Run") await expect.poll(this.#paid).toBe(before + 1);
    for (let more = before; more < this.#paid(); more++) this.paid.push(`${at}: ${label}`);
    if ((await navigation(this.#page).count()) === 0)
      throw new Error(`no session after ${at}: ${label}`);
    return true;
  }

  /**
   * Returns the buttons to press. Those that end something come last. Of buttons with one label,
   * returns the first two.
   */
  async #order(): Promise<readonly number[]> {
    const found = await buttonsOf(this.#page).evaluateAll((buttons) =>
      buttons.map((button) => ({
        label: button.textContent ?? "",
        isLast: button.matches(".danger, [type=submit]"),
      })),
    );
    const some = found.flatMap(({ label, isLast }, i) =>
      found.slice(0, i).filter((other) => other.label === label).length < 2 ? [{ i, isLast }] : [],
    );
    return some.toSorted((a, b) => Number(a.isLast) - Number(b.isLast)).map(({ i }) => i);
  }

  /** Opens the place again, as a new visitor does. */
  async #draw({ name, address, opensRow = false }: Place): Promise<void> {
    const isAsDrawn = this.#drawn === `${address} ${String(opensRow)} ${await looksOf(this.#page)}`;
    if (isAsDrawn && this.#drawn !== "") return;
    await awaitRoom(this.#page, this.#renew);
    await leavePage(this.#page);
    await show(this.#page, name, address);
    if (opensRow) await openRow(this.#page);
    if (name === "Playground") {
      const run = this.#page.getByRole("button", { name: "Run", exact: true });
      const ready = run.or(this.#page.getByText("You can't send requests")); // a customer's view
      await expect.poll(() => ready.isEnabled()).toBe(true);
    }
    this.#drawn = `${address} ${String(opensRow)} ${await looksOf(this.#page)}`;
  }
}

/** Returns the buttons that can be pressed: those of the open dialog, else of the page. */
const buttonsOf = (page: Page): Locator =>
  page.locator("dialog[open] button:enabled, main:not(:has(dialog[open])) button:enabled");

/** Describes the page's address, its open dialog and its enabled buttons. */
function looksOf(page: Page): Promise<string> {
  return page.evaluate(() => {
    const buttons = [...document.querySelectorAll("main button:enabled")];
    const open = document.querySelector("dialog[open] h2")?.textContent ?? "";
    return [location.hash, open, ...buttons.map((button) => button.textContent)].join("|");
  });
}

/** Returns the title of the open dialog, or "". */
function titleOf(page: Page): Promise<string> {
  return page.evaluate(() => document.querySelector("dialog[open] h2")?.textContent ?? "");
}

/** Fills required empty fields with valid values. */
async function fill(page: Page): Promise<void> {
  const fields = page.locator("dialog[open] :is(input, textarea):required");
  for (const field of await fields.all()) {
    if ((await field.inputValue()) !== "") continue;
    const type = (await field.getAttribute("type")) ?? "";
    await field.fill(GOOD[type] ?? `pressed-${crypto.randomUUID().slice(0, 8)}`);
  }
}

const GOOD: Readonly<Record<string, string>> = {
  number: "5",
  email: "pressed@example.com",
  url: "https://hooks.example.com/pressed",
};

/** Maximum places of a page that a walk visits. */
const PLACES_MAX = 12;

/**
 * Returns the page's address, those of its tabs, and those of their first rows, preferably spare
 * ones.
 */
async function placesOf(
  page: Page,
  name: string,
  also: readonly string[] = [],
): Promise<readonly At[]> {
  await show(page, name);
  const own = await hashOf(page);
  const tabs = await page
    .locator("main nav.tabs a")
    .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).hash));
  const further = also.filter((address) => pageOf(address) === pageOf(own));
  const addresses = [...new Set([own, ...tabs, ...further])];
  const opened: At[] = [];
  for (const address of addresses) {
    await show(page, name, address);
    if (addresses.length > PLACES_MAX || !(await openRow(page))) continue;
    const hash = await hashOf(page);
    // The row leads to another page, which is walked separately.
    if (pageOf(hash) !== pageOf(own)) continue;
    if (hash === address) opened.push({ address, opensRow: true });
    else if (!addresses.includes(hash)) addresses.push(hash);
  }
  return [...addresses.map((address) => ({ address })), ...opened];
}

/** Opens the spare row, else the first one. Returns false if none opens. */
async function openRow(page: Page): Promise<boolean> {
  const rows = page.locator("main:not(:has(dialog[open])) tr.opens");
  const spare = rows.filter({ hasText: SPARE });
  const row = (await spare.count()) > 0 ? spare.first() : rows.first();
  if ((await row.count()) === 0) return false;
  await row.press("Enter");
  await quiet(page);
  return true;
}

const pageOf = (hash: string): string => /^#\/?([^/?]*)/.exec(hash)?.[1] ?? "";

const hashOf = (page: Page): Promise<string> => page.evaluate(() => location.hash);

async function pagesOf(page: Page): Promise<string[]> {
  const names = await navigation(page).getByRole("link").allTextContents();
  return names.filter((name) => name !== "Turnpike");
}

/** Closes the page and its dialogs by opening an address without a page, which sends no calls. */
async function leavePage(page: Page): Promise<void> {
  await page.evaluate(() => {
    location.hash = "#/nowhere";
  });
  await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
}

/**
 * Opens a page by its address only, because a dialog of the previous page may be open or about to
 * open.
 */
async function show(page: Page, name: string, address = ""): Promise<void> {
  const link = page.locator("nav.rail a", { hasText: new RegExp(`^${name}$`) });
  await link.evaluate((found, at) => {
    location.hash = at === "" ? (found as HTMLAnchorElement).hash : at;
  }, address);
  await page
    .locator("nav.rail a[aria-current=page]", { hasText: new RegExp(`^${name}$`) })
    .waitFor();
  await page.locator("main h1").first().waitFor();
  await quiet(page);
}
