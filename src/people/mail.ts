import type { Mailing } from "../config.ts";
import { logWarning } from "../lib/log.ts";

/** One mail: plain text with one link. */
export type Mail = {
  readonly to: string;
  readonly subject: string;
  readonly lines: readonly string[];
};

/** Sends one behind the answer; whatever fails is a log line, and nothing is sent again. */
export type SendMail = (mail: Mail) => void;

/** What sends by the platform's binding; null: nothing is sent, links are shown alone. */
export function mailer(
  mailing: Mailing | null,
  waitUntil: (work: Promise<unknown>) => void,
): SendMail | null {
  if (mailing === null) return null;
  const { binding, from } = mailing;
  return ({ to, subject, lines }) => {
    const text = lines.join("\n");
    const sending = (async () => {
      await binding.send({ to, from: { email: from, name: "Turnpike" }, subject, text });
    })();
    waitUntil(
      sending.catch((error: unknown) => {
        const { code } = error as { readonly code?: unknown };
        // The error's own words may name who was written to.
        const reason = typeof code === "string" && /^E_[A-Z_]{1,60}$/.test(code) ? code : "failed";
        logWarning("mail_not_sent", { reason });
      }),
    );
  };
}

const NAME_MAX = 60;

/** A name that somebody typed, for a subject: letters, digits, spaces and `.-_` of it. */
export function plainName(name: string): string {
  const plain = name.replaceAll(/[^\p{L}\p{N} ._-]/gu, "").trim();
  return plain.slice(0, NAME_MAX) || "an organisation";
}

type Invited = {
  readonly email: string;
  readonly organization: string;
  readonly inviter: string | null;
  readonly role: string;
  readonly region: string;
  readonly link: string;
  readonly until: string;
};

/** What an invitation says. */
export function invitationMail(invited: Invited): Mail {
  const { email, organization, inviter, role, region, link, until } = invited;
  const name = plainName(organization);
  const by = inviter === null ? "An operator" : plainName(inviter);
  return {
    to: email,
    subject: `Invitation to ${name}`,
    lines: [
      `${by} invites you to ${name} at Turnpike ${region.toUpperCase()}, as ${role}.`,
      "",
      link,
      "",
      `It works once, until ${until}, for who logs in with this address.`,
      "If you do not know what this is, do nothing.",
    ],
  };
}

/** What who was removed by somebody else is told. */
export function removalMail(to: string, organization: string): Mail {
  const name = plainName(organization);
  return {
    to,
    subject: `You were removed from ${name}`,
    lines: [
      `You are no member of ${name} any more: your sessions and keys there have ended.`,
      "Whoever manages its team can tell you why.",
    ],
  };
}
