import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN, openAccount, send } from "../contract/client.ts";
import {
  Browser,
  inviteTo,
  inviteAndJoin,
  signUp,
  newAccount,
  startIssuer,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
const log: string[] = [];
beforeEach(() => {
  log.length = 0;
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((...words) => void log.push(words.join(" ")));
  }
  issuer = startIssuer();
});

type Sent = { to: string; subject: string; text: string; from: { email: string } };
/** Returns the platform's email binding, which records emails or throws. */
function mailbox(fault?: Error) {
  const sent: Sent[] = [];
  const EMAIL = {
    send: async (mail: Sent): Promise<{ messageId: string }> => {
      sent.push(mail);
      if (fault !== undefined) throw fault;
      return { messageId: "1" };
    },
  };
  return { sent, bindings: { EMAIL, EMAIL_FROM: "turnpike@example.test" } };
}

const adminInvitation = (email: string) => ({ role: "admin", email });

describe("an email to a person", () => {
  it("contains an invitation or a removal notice, and a subject without special characters", async () => {
    const { sent, bindings } = mailbox();
    const name = "Ann\r\nBcc: all@example.test <script>";
    const { browser } = await signUp(issuer, newAccount({ name }), bindings);
    const ben = await inviteAndJoin(issuer, browser, "member");
    const [invitation] = sent;
    expect(invitation).toMatchObject({
      to: ben.account.email,
      from: { email: "turnpike@example.test" },
      subject: "Invitation to Ann  Bcc allexample.test script",
    });
    expect(invitation?.text.split("\n").length).toBeLessThan(12);
    expect(invitation?.text.match(/https:\/\/\S+/g)).toHaveLength(1);
    await browser.people("DELETE", `/members/${ben.view.member.id}`);
    await vi.waitFor(() => expect(sent).toHaveLength(2));
    expect(sent[1]).toMatchObject({ to: ben.account.email });
  });

  it("can be disabled or fail, in which case the console shows the link and logs omit the address", async () => {
    const fault = Object.assign(new Error("ben@example.test"), { code: "E_DELIVERY_FAILED" });
    const failing = mailbox(fault);
    for (const bindings of [{}, failing.bindings]) {
      const { browser } = await signUp(issuer, newAccount(), bindings);
      const ben = issuer.newAccount();
      const invitation = await inviteTo(browser, adminInvitation(ben.email));
      const end = await new Browser().logIn(ben, { purpose: "accept", invitation });
      expect(end).toBe("/console/#/");
    }
    await vi.waitFor(() => expect(log.join("\n")).toContain("mail_not_sent"));
    expect(failing.sent).toHaveLength(1); // emails are never sent again automatically
    expect(log.join("\n")).toContain("E_DELIVERY_FAILED");
    expect(log.join("\n")).not.toContain("@example.test");
  });

  it("reports a login from a new browser, but neither a first login nor a login from a known browser", async () => {
    const { sent, bindings } = mailbox();
    const ann = await signUp(issuer, newAccount(), bindings);
    await ann.browser.logIn(ann.account); // the same browser
    expect(sent).toEqual([]);
    const other = new Browser(bindings);
    await other.logIn(ann.account);
    await vi.waitFor(() => expect(sent).toHaveLength(1));
    expect(sent[0]).toMatchObject({
      to: ann.account.email,
      subject: "New login to Turnpike",
      text: expect.stringContaining("https://eu.test/console/#/profile") as string,
    });
    await other.people("POST", "/me/log-out");
    await other.logIn(ann.account); // the browser is known by now
    const ben = issuer.newAccount();
    await other.logIn(ben, { purpose: "sign_up" }); // another person's first login
    await ann.browser.logIn(ben); // the browser doesn't know this person
    await vi.waitFor(() => expect(sent).toHaveLength(2));
    expect(sent[1]).toMatchObject({ to: ben.email });
    const forged = new Browser(bindings);
    forged.cookies.set("__Host-turnpike-eu-known", "0".repeat(64));
    await forged.logIn(ann.account);
    await vi.waitFor(() => expect(sent).toHaveLength(3));
  });

  it("reports an added or removed login method", async () => {
    const { sent, bindings } = mailbox();
    const { browser, account } = await signUp(issuer, newAccount(), bindings);
    const second = issuer.newAccount();
    expect(await browser.logIn(second, { purpose: "link" })).toBe("/console/#/");
    const unlinked = { issuer: "https://issuer.test", subject: second.id };
    expect((await browser.people("POST", "/me/unlink", unlinked)).status).toBe(200);
    await vi.waitFor(() => expect(sent).toHaveLength(2));
    expect(sent.map(({ to }) => to)).toEqual([account.email, account.email]);
    expect(sent.map(({ text }) => /added|taken away/.exec(text)?.[0])).toEqual([
      "added",
      "taken away",
    ]);
  });

  it("contains the invitation that an operator creates", async () => {
    const { sent, bindings } = mailbox();
    const { orgId } = await openAccount({ credits: 0 });
    const body = { role: "member", email: "cleo@example.test" };
    const created = await send(`/admin/v1/orgs/${orgId}/invitations`, {
      key: ADMIN_TOKEN,
      body,
      bindings: { ...env, ...bindings },
    });
    expect(await created.json()).toMatchObject({ mailed: true });
    await vi.waitFor(() => expect(sent).toHaveLength(1));
    expect(sent[0]).toMatchObject({ to: body.email });
    expect(sent[0]?.text).toMatch(/^An operator invites you to join Contract/);
  });
});
