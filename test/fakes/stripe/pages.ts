import { button, html, money, page } from "./page-html.ts";
import type { FakeStripe } from "./fake.ts";
import type { CardBehavior } from "./objects.ts";
import { StripeError } from "./stripe-error.ts";

type Fields = URLSearchParams;
type Shown = { readonly pattern: RegExp; readonly show: Show; readonly act: Act };
type Show = (fake: FakeStripe, id: string, url: URL) => Response;
type Act = (fake: FakeStripe, id: string, fields: Fields) => string | null;

/** Stripe's hosted pages, with a button for each action of a person or bank. */
const PAGES: readonly Shown[] = [
  { pattern: /^\/c\/pay\/([^/]+)$/, show: checkout, act: buy },
  { pattern: /^\/i\/([^/]+)$/, show: invoice, act: payInvoice },
  { pattern: /^\/p\/([^/]+)$/, show: portal, act: changeCard },
  { pattern: /^\/()$/, show: dashboard, act: giveBack },
  { pattern: /^\/receipts\/([^/]+)$/, show: receipt, act: () => null },
];

/** A card's behavior by the action of its button. */
const BEHAVIORS: Readonly<Record<string, readonly [string, CardBehavior]>> = {
  ok: ["Pay", "ok"],
  soft: ["Decline: no money on it", { decline_code: "insufficient_funds" }],
  hard: ["Decline: lost", { decline_code: "lost_card", advice_code: "do_not_try_again" }],
  asks: ["Ask its customer first", "asks"],
};

/** Returns a page. The response to a button leads to the next page. */
export async function answerPage(fake: FakeStripe, request: Request): Promise<Response> {
  const url = new URL(request.url);
  for (const { pattern, show, act } of PAGES) {
    const id = pattern.exec(url.pathname)?.[1];
    if (id === undefined) continue;
    try {
      if (request.method !== "POST") return show(fake, id, url);
      const to = act(fake, id, new URLSearchParams(await request.text()));
      return new Response(null, { status: 303, headers: { location: to ?? url.href } });
    } catch (error) {
      if (!(error instanceof StripeError)) throw error;
      return page("It cannot be done", `<p>${html(error.message)}</p>`, error.status);
    }
  }
  return page("Nothing is here", "", 404);
}

function checkout(fake: FakeStripe, id: string): Response {
  const session = fake.world.sessions.get(id);
  const terms = fake.world.terms.get(id);
  if (session === undefined || terms === undefined) return page("No such checkout", "", 404);
  const back = `<a href="${html(session.cancel_url ?? session.success_url)}">Back to the shop</a>`;
  if (session.status !== "open") {
    return page(`This checkout is ${session.status}`, `<p>${back}</p>`);
  }
  const intent = fake.world.intents.get(session.payment_intent ?? "");
  const lines = terms.lines.map(
    ({ name, amount }) => `<p>${html(name)} <b>${money(amount)}</b></p>`,
  );
  if (intent?.status === "requires_action") {
    const bank = "<p>Your bank wants to know whether it is you.</p>";
    return page(
      "Your bank asks",
      bank + button("approve", "It is me") + button("refuse", "It is not"),
    );
  }
  const problem = intent?.last_payment_error;
  const keeps = terms.keepsCard ? "<p>The shop keeps your card for later payments.</p>" : "";
  const problemHtml = problem
    ? `<p role="alert">${html(problem.message)} Try another card.</p>`
    : "";
  const buttons = [
    button("pay", terms.keepsCard ? "Pay and keep card" : "Pay"),
    button("decline", "Decline"),
    button("asks", "Bank asks first"),
    button("leave", "Leave"),
  ];
  return page(
    `Pay ${money(session.amount_total)}`,
    problemHtml + lines.join("") + keeps + buttons.join(""),
  );
}

function buy({ person, world: state }: FakeStripe, id: string, fields: Fields): string | null {
  const session = state.sessions.get(id);
  const what = fields.get("do");
  if (what === "leave") return session?.cancel_url ?? null;
  if (what === "decline") person.decline(id);
  if (what === "asks") person.asks(id);
  if (what === "refuse") person.refuse(id);
  if (what === "approve") person.approve(id);
  if (what === "pay") person.pay(id);
  return session?.status === "complete"
    ? session.success_url.replaceAll("{CHECKOUT_SESSION_ID}", id)
    : null;
}

function invoice(fake: FakeStripe, id: string): Response {
  const one = fake.world.invoices.get(id);
  if (one === undefined) return page("No such invoice", "", 404);
  const amounts = `<p>Total <b>${money(one.total)}</b>, paid ${money(one.amount_paid)}.</p>`;
  if (one.status !== "open") return page(`Invoice ${one.number ?? ""} is ${one.status}`, amounts);
  return page(
    "Your bank asks",
    `${amounts}<p>Show that it is you, and pay.</p>${button("pay", "It is me: pay")}`,
  );
}

function payInvoice({ person }: FakeStripe, id: string): null {
  person.payInvoice(id);
  return null;
}

function portal(fake: FakeStripe, id: string, url: URL): Response {
  const back = url.searchParams.get("back");
  const home = back === null ? "" : `<p><a href="${html(back)}">Back to the shop</a></p>`;
  const cards = [...fake.world.methods.values()].filter(({ customer }) => customer === id);
  const shown = cards.map(({ id: card, card: { brand, last4 } }) => {
    const behave = Object.entries(BEHAVIORS).map(([word, [label]]) =>
      button(word, label, { card }),
    );
    const remove = button("remove", "Remove this card", { card });
    return `<h2>${html(brand)} ${last4}</h2><p>What its bank says to the next charges:</p>${behave.join("")}${remove}`;
  });
  const invoices = [...fake.world.invoices.values()].filter(({ customer }) => customer === id);
  const rows = invoices.map(
    (one) =>
      `<li><a href="/i/${one.id}">${html(one.number ?? one.id)}</a> ${money(one.total)}, ${one.status}</li>`,
  );
  const none = "<p>No card is kept.</p>";
  return page(
    "Your cards and invoices",
    `${home}${shown.join("") || none}<h2>Invoices</h2><ul>${rows.join("") || "<li>None</li>"}</ul>`,
  );
}

function changeCard({ bank }: FakeStripe, _customer: string, fields: Fields): null {
  const card = fields.get("card") ?? "";
  const what = fields.get("do") ?? "";
  const behavior = BEHAVIORS[what]?.[1];
  if (what === "remove") bank.detach(card);
  if (behavior !== undefined) bank.card(card, behavior);
  return null;
}

function dashboard(fake: FakeStripe): Response {
  const rows = fake
    .payments()
    .toReversed()
    .map(({ intent, received, customer }) => {
      const { gross } = fake.truth(intent);
      const name = fake.world.customers.get(customer ?? "")?.name ?? "somebody";
      const open = [...fake.world.disputes.values()].find(
        (one) => one.payment_intent === intent && one.status === "needs_response",
      );
      const buttons = [
        ["half", "Refund half"],
        ["refund", "Refund"],
        open === undefined ? ["dispute", "Dispute"] : ["win", "Dispute is won"],
      ].map(([word = "", label = ""]) => button(word, label, { intent, dispute: open?.id ?? "" }));
      return `<h2>${money(received)} of ${html(name)}</h2><p>${intent}; gone back: ${money(gross)}</p>${buttons.join("")}`;
    });
  return page("Payments", rows.join("") || "<p>Nobody has paid yet.</p>");
}

function giveBack({ bank, world: state }: FakeStripe, _id: string, fields: Fields): null {
  const intent = fields.get("intent") ?? "";
  const what = fields.get("do");
  const received = state.intents.get(intent)?.amount_received ?? 0;
  if (what === "half") bank.refund(intent, Math.floor(received / 2));
  if (what === "refund") bank.refund(intent);
  if (what === "dispute") bank.dispute(intent);
  if (what === "win") bank.moveDispute(fields.get("dispute") ?? "", "won");
  return null;
}

function receipt(fake: FakeStripe, id: string): Response {
  const charge = fake.world.charges.get(id);
  if (charge === undefined) return page("No such receipt", "", 404);
  return page("Receipt", `<p>${money(charge.amount)} were paid by ${charge.payment_intent}.</p>`);
}
