import { beforeEach, expect, it } from "vitest";
import { admin, chat } from "../contract/client.ts";
import { signUp, startIssuer } from "./people-client.ts";
import type { Browser } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

async function mintToken(browser: Browser): Promise<string> {
  const made = await browser.ask("POST", "/console/api/v1/sessions", { expires_in: 3600 });
  return (await made.json<{ token: string }>()).token;
}

async function fund(orgId: string): Promise<void> {
  const credit = { amount_micro: 1_000_000, reference: crypto.randomUUID() };
  expect((await admin("POST", `/orgs/${orgId}/credits`, credit)).status).toBe(200);
}

it('the button "Log out everywhere" ends the session tokens of the console, and a later login creates new ones', async () => {
  const { browser, account, view } = await signUp(issuer);
  await fund(view.organization.id);
  const token = await mintToken(browser);
  expect((await chat(token)).status).toBe(200);
  expect((await browser.people("POST", "/me/log-out", {})).status).toBe(200);
  expect((await chat(token)).status).toBe(401);
  expect(await browser.logIn(account)).toBe("/console/#/");
  expect((await chat(await mintToken(browser))).status).toBe(200);
});
