import { beforeEach, describe, expect, it } from "vitest";
import { Browser, inviteTo, signUp, someone, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

describe("signing up", () => {
  it("makes a person, a personal organization and its owner, who makes a key and pays with it", async () => {
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

  it("invites a second person, who is a member then", async () => {
    const { browser, view } = await signUp(issuer);
    const ben = someone();
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
