import * as z from "zod/mini";
import type { KeySecret } from "../../shared/config/config.ts";
import { assert } from "../../shared/assert.ts";
import type { Region } from "../../shared/regions.ts";
import { encryptText, decryptText } from "../../shared/encryption.ts";

/** The console's reasons for sending a person to an identity provider. */
export const LOGIN_PURPOSES = ["log_in", "sign_up", "accept", "link", "step_up", "join"] as const;
export type LoginPurpose = (typeof LOGIN_PURPOSES)[number];

const ticketSchema = z.object({
  purpose: z.enum(LOGIN_PURPOSES),
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  go: z.string(),
  invitation: z.nullable(z.string()),
  company: z.nullable(z.string()),
  connection: z.nullish(z.string()),
  personId: z.nullable(z.string()),
  at: z.number(),
});
/** The state of a login in progress, stored encrypted in a cookie. */
export type LoginTicket = z.infer<typeof ticketSchema>;

const TICKET_S = 600;
const ATTRIBUTES = "HttpOnly; Secure; SameSite=Lax; Path=/";
const ENCRYPTION_PURPOSE = "turnpike login 1";

const cookieName = (region: Region): string => `__Host-turnpike-${region}-login`;

/**
 * Returns a Set-Cookie value for a login's ticket. It is SameSite=Lax, because the issuer's site
 * redirects to the callback.
 */
export async function createTicketCookie(
  ticketData: LoginTicket,
  { region, issuer, secrets }: { region: Region; issuer: string; secrets: readonly KeySecret[] },
): Promise<string> {
  const [secret] = secrets;
  assert(secret !== undefined, "a ticket needs a secret");
  const context = { purpose: ENCRYPTION_PURPOSE, owner: `${region} ${issuer}` };
  const encrypted = await encryptText(JSON.stringify(ticketData), context, secret);
  return `${cookieName(region)}=${encrypted}; ${ATTRIBUTES}; Max-Age=${TICKET_S}`;
}

export function createExpiredTicketCookie(region: Region): string {
  return `${cookieName(region)}=; ${ATTRIBUTES}; Max-Age=0`;
}

/**
 * Returns the `Cookie` header's login ticket for this issuer and region, or null if it is missing,
 * repeated or expired.
 */
export async function readLoginTicket(
  cookies: string,
  at: { region: Region; issuer: string; secrets: readonly KeySecret[]; nowMs: number },
): Promise<LoginTicket | null> {
  const ticketCookies = cookies
    .split(";")
    .map((one) => one.trim())
    .filter((one) => one.startsWith(`${cookieName(at.region)}=`));
  if (ticketCookies.length !== 1) return null;
  const encrypted = (ticketCookies[0] ?? "").slice(cookieName(at.region).length + 1);
  const context = { purpose: ENCRYPTION_PURPOSE, owner: `${at.region} ${at.issuer}` };
  const text = await decryptText(encrypted, context, at.secrets);
  if (text === null) return null;
  const parsed = z.safeParse(ticketSchema, JSON.parse(text));
  if (!parsed.success) return null; // the ticket is in another release's format
  const readTicketData = parsed.data;
  const ageMs = at.nowMs - readTicketData.at;
  return ageMs >= 0 - CLOCK_SKEW_MS && ageMs <= TICKET_S * 1000 ? readTicketData : null;
}

const CLOCK_SKEW_MS = 5000;
