import { expect, it } from "vitest";
import {
  createTicketCookie,
  readLoginTicket,
} from "../../src/accounts/identity-providers/ticket.ts";
import type { LoginTicket } from "../../src/accounts/identity-providers/ticket.ts";

const NOW_MS = 1_900_000_000_000;
const TICKET: LoginTicket = {
  purpose: "log_in",
  state: "state",
  nonce: "nonce",
  verifier: "verifier",
  go: "/",
  invitation: null,
  company: null,
  connection: null,
  personId: null,
  at: NOW_MS,
};
const PLACE = {
  region: "eu",
  issuer: "https://issuer.test",
  secrets: [{ id: "a", secret: "0123456789".repeat(4) }],
} as const;

it.each([
  ["accepts a ticket", -5000, TICKET],
  ["accepts a ticket", 600_000, TICKET],
  ["rejects a ticket", -5001, null],
  ["rejects a ticket", 600_001, null],
])("a login %s at the age %i ms", async (_, ageMs, expected) => {
  const [cookie = ""] = (await createTicketCookie(TICKET, PLACE)).split(";");
  expect(await readLoginTicket(cookie, { ...PLACE, nowMs: NOW_MS + ageMs })).toEqual(expected);
});
