import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Browser, inviteTo, joined, signUp, someone, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
const log: string[] = [];
beforeEach(() => {
  log.length = 0;
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((...words) => void log.push(words.join(" ")));
  }
  issuer = startIssuer();
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Sent = { to: string; subject: string; text: string; from: { email: string } };
/** The platform's binding, which takes mails or throws. */
function mailbox(fault?: Error) {
  const sent: Sent[] = [];
  const send = async (mail: Sent): Promise<{ messageId: string }> => {
    sent.push(mail);
    if (fault !== undefined) throw fault;
    return { messageId: "1" };
  };
  return { sent, bindings: { EMAIL: { send }, EMAIL_FROM: "turnpike@example.test" } };
}

const asked = (email: string) => ({ role: "admin", email });

describe("mail", () => {
  it("brings an invitation to its address, and tells who is removed; nothing typed is in the subject but a clean name", async () => {
    const { sent, bindings } = mailbox();
    const name = "Ann\r\nBcc: all@example.test <script>";
    const { browser } = await signUp(issuer, someone({ name }), bindings);
    const ben = await joined(issuer, browser, "member");
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

  it("that is off, or fails, stops nothing: the link is shown, and no address is in the log", async () => {
    const fault = Object.assign(new Error("ben@example.test"), { code: "E_DELIVERY_FAILED" });
    const failing = mailbox(fault);
    for (const bindings of [{}, failing.bindings]) {
      /* oxlint-disable no-await-in-loop -- one after the other */
      const { browser } = await signUp(issuer, someone(), bindings);
      const ben = someone();
      issuer.accounts.push(ben);
      const invitation = await inviteTo(browser, asked(ben.email));
      const end = await new Browser().logIn(ben, { purpose: "accept", invitation });
      expect(end).toBe("/console/#/");
      /* oxlint-enable no-await-in-loop */
    }
    await vi.waitFor(() => expect(log.join("\n")).toContain("mail_not_sent"));
    expect(failing.sent).toHaveLength(1); // never again by itself
    expect(log.join("\n")).toContain("E_DELIVERY_FAILED");
    expect(log.join("\n")).not.toContain("@example.test");
  });
});
