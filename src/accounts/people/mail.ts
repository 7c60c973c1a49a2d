import type { Mailing } from "../../shared/config/config.ts";
import { logWarning } from "../../shared/log.ts";
import { removeSpecialCharacters } from "../../shared/plain-name.ts";

export type Mail = {
  readonly to: string;
  readonly subject: string;
  readonly lines: readonly string[];
};

/** Sends an email after the response, without a retry. Logs failures. */
export type SendMail = (mail: Mail) => void;

export function createMailSender(
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
        // The error's message can contain the recipient.
        const reason = typeof code === "string" && /^E_[A-Z_]{1,60}$/.test(code) ? code : "failed";
        logWarning("mail_not_sent", { reason });
      }),
    );
  };
}

type InvitationMailFields = {
  readonly email: string;
  readonly organization: string;
  readonly inviter: string | null;
  readonly role: string;
  readonly region: string;
  readonly link: string;
  readonly until: string;
};

export function createInvitationMail(fields: InvitationMailFields): Mail {
  const { email, organization, inviter, role, region, link, until } = fields;
  const name = removeSpecialCharacters(organization);
  const by = inviter === null ? "An operator" : removeSpecialCharacters(inviter);
  return {
    to: email,
    subject: `Invitation to ${name}`,
    lines: [
      `${by} invites you to join ${name} on Turnpike ${region.toUpperCase()} as ${role}.`,
      "",
      link,
      "",
      `Log in with this email address. The link works once, until ${until}.`,
      "If you don't expect this invitation, ignore this message.",
    ],
  };
}

export function createMemberRemovalMail(to: string, organization: string): Mail {
  const name = removeSpecialCharacters(organization);
  return {
    to,
    subject: `You were removed from ${name}`,
    lines: [
      `You are no longer a member of ${name}. Your sessions and keys there have ended.`,
      "Please ask an administrator of the organization for the reason.",
    ],
  };
}

export function createNewBrowserMail(
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
    subject: "New login to Turnpike",
    lines: [
      `Your account was used to log in to Turnpike ${region.toUpperCase()} with ${browser} at ${time}.`,
      "If this was you, ignore this message. Otherwise choose 'Log out everywhere' and secure the account that you log in with:",
      "",
      `${origin}/console/#/profile`,
    ],
  };
}

export function createLoginMethodsChangedMail(
  to: string,
  change: "added" | "taken away",
  origin: string,
): Mail {
  return {
    to,
    subject: "Your logins have changed",
    lines: [
      `A login was ${change}. If this wasn't you, log out everywhere and remove unknown logins:`,
      "",
      `${origin}/console/#/profile`,
    ],
  };
}

const DOMAIN_CHANGE_TEXTS = {
  proven:
    "is verified. People with an address of it can join, after the operator's approval where it is required.",
  approved: "was approved by the operator. People with an address of it can join.",
  removed: "was removed. New people can't join with it, and existing members stay.",
  lost: "has lost its TXT record. After a week, new people can't join with it. Existing members stay.",
} as const;

export function createDomainChangeMail(
  to: string,
  of: {
    readonly organization: string;
    readonly domain: string;
    readonly what: keyof typeof DOMAIN_CHANGE_TEXTS;
  },
): Mail {
  const name = removeSpecialCharacters(of.organization);
  return {
    to,
    subject: `The company login of ${name} has changed`,
    lines: [`The domain ${of.domain} of ${name} ${DOMAIN_CHANGE_TEXTS[of.what]}`],
  };
}

export function createIssuerSettingsMail(to: string, organization: string): Mail {
  const name = removeSpecialCharacters(organization);
  return {
    to,
    subject: `The company login of ${name} has changed`,
    lines: [
      `The login of ${name} was changed. The Events page shows who changed it, and the Team page shows the current settings.`,
    ],
  };
}
