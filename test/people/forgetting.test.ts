import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { eraseStalePeople } from "../../src/accounts/people/erasure.store.ts";
import {
  Browser,
  inviteTo,
  inviteAndJoin,
  signUp,
  newAccount,
  startIssuer,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const DAY = 86_400_000;
const swept = (days: number): Promise<void> => eraseStalePeople(env.DB, Date.now() + days * DAY);

/** Reports whether any table about people contains the text. */
async function isKnown(text: string): Promise<boolean> {
  const tables = ["people", "identities", "invitations", "members", "member_people"];
  const reads = tables.map((name) => env.DB.prepare(`SELECT * FROM ${name}`));
  const rows = (await env.DB.batch(reads)).map(({ results }) => results);
  return JSON.stringify(rows).includes(text);
}

describe("the hourly sweep of personal data", () => {
  it("erases an invitation's address 30 days after the invitation's end, but no address of an open invitation", async () => {
    const ann = await signUp(issuer);
    const [accepted, ended, over] = [newAccount(), newAccount(), newAccount()];
    issuer.accounts.push(accepted);
    const invitation = await inviteTo(ann.browser, { role: "member", email: accepted.email });
    await new Browser().logIn(accepted, { purpose: "accept", invitation });
    await inviteTo(ann.browser, { role: "member", email: ended.email });
    const read = await ann.browser.people("GET", "/invitations");
    const { invitations } = await read.json<{ invitations: { id: string }[] }>();
    await ann.browser.people("DELETE", `/invitations/${invitations[0]?.id ?? ""}`);
    await inviteTo(ann.browser, { role: "member", email: over.email }); // kept for seven days
    const kept = async (): Promise<readonly boolean[]> => {
      const addresses = [accepted, ended, over].map(({ email }) => isInvited(email));
      return Promise.all(addresses);
    };
    await swept(29);
    expect(await kept()).toEqual([true, true, true]);
    await swept(31);
    expect(await kept()).toEqual([false, false, true]);
    await swept(38);
    expect(await kept()).toEqual([false, false, false]);
  });

  it("erases exactly the people without a membership who haven't logged in for 90 days", async () => {
    const ann = await signUp(issuer);
    const ben = await inviteAndJoin(issuer, ann.browser, "member");
    await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    await swept(89);
    expect(await isKnown(ben.account.id)).toBe(true);
    await swept(91);
    await swept(98); // the invitation that he used was deleted earlier, 30 days after its end
    for (const gone of [ben.account.id, ben.account.name, ben.account.email]) {
      expect([gone, await isKnown(gone)]).toEqual([gone, false]);
    }
    for (const stays of [ann.account.id, ann.account.name, ann.account.email]) {
      expect([stays, await isKnown(stays)]).toEqual([stays, true]);
    }
    expect(await ben.browser.session()).toBeNull();
    expect(await new Browser().logIn(ben.account)).toMatch(/why=unknown(?:&|$)/);
    expect((await ann.browser.session())?.person.id).toBe(ann.view.person.id);
  });
});

async function isInvited(email: string): Promise<boolean> {
  const row = await env.DB.prepare("SELECT 1 FROM invitations WHERE email = ?").bind(email).first();
  return row !== null;
}
