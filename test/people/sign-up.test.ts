import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { Browser, inviteTo, signUp, newAccount, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const slots = async (): Promise<number | undefined> =>
  (await env.DB.prepare("SELECT count(*) AS n FROM sign_ups").first<{ n: number }>())?.n;

describe("a sign-up", () => {
  it("creates a person and a personal organization whose owner can create a key and pay", async () => {
    const { browser, account, view } = await signUp(issuer);
    expect(view).toMatchObject({
      kind: "person",
      role: "owner",
      person: { name: account.name, email: account.email },
      organization: { is_personal: true },
    });
    const made = await browser.ask("POST", "/console/api/v1/keys", { name: "first" });
    expect(made.status).toBe(201);
    const listed = await browser.ask("GET", "/console/api/v1/keys");
    const { keys } = await listed.json<{ keys: { name: string }[] }>();
    expect(keys.map(({ name }) => name)).toEqual(["first"]);
  });

  it("fails the fourth time per identity and day, without effect on others", async () => {
    const bindings = { SIGN_UPS_AN_HOUR: "100000" };
    const account = newAccount();
    issuer.accounts.push(account);
    for (let time = 0; time < 3; time++) {
      const browser = new Browser(bindings);
      expect(await browser.logIn(account, { purpose: "sign_up" })).toBe("/console/#/");
      expect((await browser.people("DELETE", "/me")).status).toBe(200);
    }
    const before = await slots();
    const refused = await new Browser(bindings).logIn(account, { purpose: "sign_up" });
    expect(refused).toContain("why=too_many");
    expect(await slots()).toBe(before);
    await signUp(issuer, newAccount(), bindings);
  });

  it("lets the new person invite a second person as a member", async () => {
    const { browser, view } = await signUp(issuer);
    const ben = newAccount();
    issuer.accounts.push(ben);
    const invitation = await inviteTo(browser, { role: "member", email: ben.email });
    const other = new Browser();
    expect(await other.logIn(ben, { purpose: "accept", invitation })).toBe("/console/#/");
    expect(await other.session()).toMatchObject({
      role: "member",
      organization: { id: view.organization.id },
    });
  });
});
