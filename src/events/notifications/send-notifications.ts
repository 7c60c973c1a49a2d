import type { Mailing } from "../../shared/config/config.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import type { EventRecord } from "../../shared/event.ts";
import { logWarning } from "../../shared/log.ts";
import { removeSpecialCharacters } from "../../shared/plain-name.ts";
import { withTimeout } from "../../shared/timers.ts";
import { formatNotification } from "./notification-text.ts";
import type { NotificationText } from "./notification-text.ts";
import { listRecipients, findMemberIdOfKey } from "./notifications.store.ts";
import type { EmailRecipient } from "./notifications.store.ts";

const DATABASE_TIMEOUT_MS = 5000;
/** Number of event IDs to remember, so that a repeated event sends no second email. */
const SENT_IDS_MAX = 200;

/** Sends emails about events to members. */
export class Notifications {
  readonly #sent = new Set<string>();
  readonly #db: D1Database;
  readonly #waitUntil: (work: Promise<unknown>) => void;

  constructor(db: D1Database, waitUntil: (work: Promise<unknown>) => void) {
    this.#db = db;
    this.#waitUntil = waitUntil;
  }

  /**
   * Sends one email per recipient and event, without retries. If D1 fails before the first email,
   * throws, so that the wallet sends the events again.
   */
  async send(mailing: Mailing, orgId: string, events: readonly EventRecord[]): Promise<void> {
    const notifications = events.flatMap((event) => {
      const text = this.#sent.has(event.id) ? null : formatNotification(event);
      return text === null ? [] : [{ event, text }];
    });
    if (notifications.length === 0) return;
    const recipients = await withTimeout(listRecipients(this.#db, orgId), DATABASE_TIMEOUT_MS);
    const keyMembers = new Map<string, string | null>();
    for (const { event } of notifications.filter(
      (one) => one.event.type === "key.budget_reached",
    )) {
      const memberId = await withTimeout(
        findMemberIdOfKey(this.#db, event.subject),
        DATABASE_TIMEOUT_MS,
      );
      keyMembers.set(event.id, memberId);
    }
    for (const { event, text } of notifications) {
      this.#markSent(event.id);
      for (const one of recipients) {
        if (!wantsEvent(one, event, keyMembers.get(event.id) ?? null)) continue;
        this.#waitUntil(sendEmail(mailing, one, text));
      }
    }
  }

  #markSent(id: string): void {
    evictOldest(this.#sent, SENT_IDS_MAX);
    this.#sent.add(id);
  }
}

/** Owners and admins also get events of other members' keys. */
function wantsEvent(
  recipient: EmailRecipient,
  { type }: EventRecord,
  keyMemberId: string | null,
): boolean {
  const types: readonly string[] = recipient.types;
  if (!types.includes(type)) return false;
  const seesAllKeys = recipient.role === "owner" || recipient.role === "admin";
  return type !== "key.budget_reached" || seesAllKeys || recipient.memberId === keyMemberId;
}

async function sendEmail(
  { binding, from }: Mailing,
  { email, organization }: EmailRecipient,
  { subject, text }: NotificationText,
): Promise<void> {
  const name = removeSpecialCharacters(organization);
  const choice = "You can choose which of these emails you get in the console (Profile).";
  const lines = [`${name}: ${text}`, "", choice];
  try {
    await binding.send({
      to: email,
      from: { email: from, name: "Turnpike" },
      subject: `${subject}: ${name}`,
      text: lines.join("\n"),
    });
  } catch {
    logWarning("notification_not_sent", { subject });
  }
}
