import type { Mailing } from "../../shared/config/config.ts";
import { logWarning } from "../../shared/log.ts";
import { plainName } from "../../shared/plain-name.ts";

/** A plain-text email with one link. */
export type Mail = {
  readonly to: string;
  readonly subject: string;
  readonly lines: readonly string[];
};

/** Sends after the response. Failures are logged, not retried. */
export type SendMail = (mail: Mail) => void;

/** Returns the mail function, or null without a mail binding. */
export function mailSender(
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
        const code = error instanceof Error && "code" in error ? error.code : null;
        // The error's message may contain the recipient.
        const reason = typeof code === "string" && /^E_[A-Z_]{1,60}$/.test(code) ? code : "failed";
        logWarning("mail_not_sent", { reason });
      }),
    );
  };
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

/** Returns the invitation email. */
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

/** Returns the email to a removed member. */
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

/** Returns the email about a login from a new browser. */
export function newBrowserMail(
  to: string,
  at: {
    readonly browser: string;
    readonly region: string;
    readonly time: string;
    readonly origin: string;
  },
): Mail {
  const { browser, region, time, origin } = at;
  return {
    to,
    subject: "A log-in by a new browser",
    lines: [
      `Somebody logged in as you to Turnpike ${region.toUpperCase()} by ${browser}, at ${time}.`,
      "If it was you, do nothing. If not, end it (Log out everywhere), and look after the account that you log in with:",
      "",
      `${origin}/console/#/profile`,
    ],
  };
}

/** Returns the email about a changed login method. */
export function loginMethodsMail(to: string, what: "added" | "taken away", origin: string): Mail {
  return {
    to,
    subject: "Your ways to log in have changed",
    lines: [
      `A way to log in was ${what}. If it was not you, log out everywhere and remove what you do not know:`,
      "",
      `${origin}/console/#/profile`,
    ],
  };
}

const DOMAIN_NEWS = {
  proven: "is proven: people of it may join, once the operator agrees where that is wanted.",
  approved: "was agreed to by the operator: people of it may join.",
  removed: "was removed: nobody joins by it any more, who has joined stays.",
  lost: "has lost the TXT record that proves it: after a week nobody joins by it any more, who has joined stays.",
} as const;

/** Returns the email about a domain. */
export function domainMail(
  to: string,
  of: {
    readonly organization: string;
    readonly domain: string;
    readonly what: keyof typeof DOMAIN_NEWS;
  },
): Mail {
  const name = plainName(of.organization);
  return {
    to,
    subject: `The company log-in of ${name} has changed`,
    lines: [`The domain ${of.domain} of ${name} ${DOMAIN_NEWS[of.what]}`],
  };
}

/** Returns the email about a changed company login. */
export function settingsMail(to: string, organization: string): Mail {
  const name = plainName(organization);
  return {
    to,
    subject: `The company log-in of ${name} has changed`,
    lines: [
      `How people log in to ${name} was changed. Who did it stands in its log (Events), and how it is now on the page Team.`,
    ],
  };
}
