import * as z from "zod/mini";
import type { IssuerEntry, KeySecret } from "../../shared/config/config.ts";
import { created } from "../../shared/http/endpoint.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { timestamp } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { logAlert } from "../../shared/log.ts";
import { parsePublicUrl } from "../../shared/public-address.ts";
import { reencryptText, encryptText, decryptText } from "../../shared/encryption.ts";
import type { IdentityClaims } from "../identity-providers/claims.ts";
import { listDomains } from "./company.store.ts";
import {
  findCompanyIssuer,
  storeReencryptedSecret,
  storeIssuerDraft,
  removeIssuer,
  setIssuerRequired,
  listIssuersWithOutdatedSecrets,
} from "./company-issuer.store.ts";
import type { CompanyIssuer } from "./company-issuer.store.ts";
import { createIssuerSettingsMail } from "./mail.ts";
import type { MemberCall, PeopleServices } from "./people-call.ts";
import { listOwnersToEmail } from "./team.store.ts";

const asciiTextSchema = z
  .string()
  .check(z.regex(/^[\x20-\x7e]{1,300}$/, "must be 1 to 300 ASCII characters"));
export const newIssuerSchema = z.object({
  issuer: asciiTextSchema,
  client_id: asciiTextSchema,
  client_secret: asciiTextSchema,
});
export const issuerRequirementSchema = z.object({ required: z.boolean() });

function encryptionPurposeOf({ orgId, id }: Pick<CompanyIssuer, "orgId" | "id">) {
  return { purpose: "turnpike company issuer 1", owner: `${orgId} ${id}` };
}

/** Hosts of identity providers where anyone can create an account. */
const PUBLIC_HOSTS =
  /^(?:accounts\.google|appleid\.apple|github|gitlab|bitbucket|id\.atlassian|api\.login\.yahoo|login\.yahoo|(?:www\.)?linkedin|id\.twitch|(?:[\w-]+\.)?slack|discord|(?:www\.)?facebook|access\.line|(?:www\.)?paypal)\.(?:com|org|me|tv)$/;
/** Paths of Microsoft's issuers that accept any account. Other paths are tenants. */
const MICROSOFT_PUBLIC_PATHS =
  /^\/(?:common|consumers|organizations|9188040d-6c67-4c5b-b112-36a304b66dad)(?:\/|$)/;

function isPublicIssuer(address: string): boolean {
  const url = URL.parse(address);
  if (url === null) return false;
  const host = url.hostname.replace(/\.$/, "");
  return (
    PUBLIC_HOSTS.test(host) ||
    (host === "login.microsoftonline.com" &&
      MICROSOFT_PUBLIC_PATHS.test(url.pathname.toLowerCase()))
  );
}

/** Returns the reason why an issuer's address is invalid, or null. */
export function findIssuerProblem(address: string, isInsecure: boolean): string | null {
  const url = parsePublicUrl(address);
  if (typeof url !== "string") return null;
  const local = URL.parse(address);
  const isLocalhost =
    local?.protocol === "http:" && /^(?:localhost|127\.0\.0\.1)$/.test(local.hostname);
  return isInsecure && isLocalhost ? null : url;
}

export async function getCompanyIssuer(call: MemberCall) {
  return success(issuerView(call, await findCompanyIssuer(call.db, call.as.orgId)));
}

function issuerView({ as, origin }: MemberCall, row: CompanyIssuer | null) {
  return {
    callback: `${origin}/console/api/login/callback/${as.orgId}`,
    issuer: row?.issuer ?? null,
    client_id: row?.clientId ?? null,
    state: issuerState(row),
    required: row !== null && row.requiredAt !== null,
    created_at: row === null ? null : timestamp(row.createdAt),
  };
}

function issuerState(row: CompanyIssuer | null): "none" | "draft" | "on" {
  if (row === null) return "none";
  return row.triedAt === null ? "draft" : "on";
}

export async function postCompanyIssuer(call: MemberCall) {
  const fields = parseFields(newIssuerSchema, [], call.body);
  if (!fields.ok) return fields;
  const { db, as, keySecrets, now: nowMs, isSandbox, companyDomains } = call;
  if (as.status === "suspended") return refuse({ kind: "organization_suspended" });
  const { issuer, client_id: clientId, client_secret: secret } = fields.value;
  const problem = findIssuerProblem(issuer, isSandbox);
  if (problem !== null) return invalid(`issuer ${problem}`, "issuer");
  if (isPublicIssuer(issuer)) {
    return invalid("issuer can't be a public login provider", "issuer");
  }
  const [first] = keySecrets;
  const hasDomain = (await listDomains(db, as.orgId)).some(({ provenAt }) => provenAt !== null);
  if (companyDomains === "off" || !hasDomain || first === undefined) return refuseWithoutDomain();
  const ids = { orgId: as.orgId, id: mintId("iss_", nowMs) };
  const clientSecret = await encryptText(secret, encryptionPurposeOf(ids), first);
  const row = { ...ids, issuer, clientId, clientSecret, createdAt: nowMs };
  const issuerCheck = await call.reachIssuer(issuerEntryOf(row));
  if (!issuerCheck.ok) return issuerCheck;
  if (!(await storeIssuerDraft(db, row, call.actor))) return refuseWithoutDomain();
  await notifyOwners(call);
  return created(issuerView(call, { ...row, triedAt: null, requiredAt: null }));
}

function refuseWithoutDomain() {
  const message = "First prove that your company owns a domain.";
  return refuse({ kind: "conflict", message, param: null, code: "no_proven_domain" });
}

/**
 * Handles POST /company/issuer/require. The caller must have logged in with the issuer, because a
 * broken issuer would lock out all members.
 */
export async function postCompanyIssuerRequired(call: MemberCall) {
  const fields = parseFields(issuerRequirementSchema, [], call.body);
  if (!fields.ok) return fields;
  const { required } = fields.value;
  if (required && call.realm !== call.as.orgId) {
    const message = "To require the company login, first log in with it yourself.";
    return refuse({ kind: "conflict", message, param: null, code: "not_by_company" });
  }
  if (!(await setIssuerRequired(call.db, call.as.orgId, required, call))) {
    return refuseWithoutIssuer();
  }
  await notifyOwners(call);
  return getCompanyIssuer(call);
}

export async function deleteOwnCompanyIssuer(call: MemberCall) {
  if (!(await removeIssuer(call.db, call.as.orgId, call))) return refuseWithoutIssuer();
  await notifyOwners(call);
  return success({ id: call.as.orgId, deleted: true });
}

function refuseWithoutIssuer() {
  return refuse({
    kind: "not_found",
    message: "This organization has no working company login.",
  });
}

async function notifyOwners(call: MemberCall): Promise<void> {
  call.takeEvents(call.as.orgId);
  await emailOwnersAboutIssuerChange(call, call.as.orgId);
}

export async function emailOwnersAboutIssuerChange(
  { db, mail }: Pick<PeopleServices, "db" | "mail">,
  orgId: string,
): Promise<void> {
  if (mail === null) return;
  for (const { email, organization } of await listOwnersToEmail(db, orgId)) {
    mail(createIssuerSettingsMail(email, organization));
  }
}

export function issuerEntryOf({
  orgId,
  issuer,
  clientId,
}: Pick<CompanyIssuer, "orgId" | "issuer" | "clientId">): IssuerEntry {
  return { id: orgId, kind: "oidc", issuer, client_id: clientId, secret: "", reauth: false };
}

/** Returns the decrypted secret, or null if its KEY_SECRETS entry was removed. */
export function decryptClientSecret(
  row: CompanyIssuer,
  keySecrets: readonly KeySecret[],
): Promise<string | null> {
  return decryptText(row.clientSecret, encryptionPurposeOf(row), keySecrets);
}

export async function reencryptIssuerSecrets(
  db: D1Database,
  keySecrets: readonly KeySecret[],
): Promise<void> {
  for (const row of await listIssuersWithOutdatedSecrets(db, keySecrets[0]?.id ?? "")) {
    const purpose = encryptionPurposeOf(row);
    const reencrypted = await reencryptText(row.clientSecret, purpose, keySecrets);
    if (reencrypted !== null) await storeReencryptedSecret(db, row, reencrypted);
    else logAlert("company_secret_unreadable", { org_id: row.orgId });
  }
}

/**
 * Returns the claimed email addresses in the organization's verified domains. Its identity provider
 * can't confirm other addresses.
 */
export async function listVerifiedAddresses(
  db: D1Database,
  orgId: string,
  claims: Pick<IdentityClaims, "proven">,
): Promise<readonly string[]> {
  const domains = (await listDomains(db, orgId)).filter(({ provenAt }) => provenAt !== null);
  const verifiedDomains = new Set(domains.map(({ domain }) => domain));
  return claims.proven.filter((one) =>
    verifiedDomains.has(one.slice(one.indexOf("@") + 1).toLowerCase()),
  );
}
