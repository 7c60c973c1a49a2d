import * as z from "zod/mini";
import { created } from "../../shared/http/endpoint.ts";
import { parseFields } from "../../shared/http/parse-body.ts";
import { mintConsoleKey } from "../keys/console-key.store.ts";
import { mapConcurrently } from "../../shared/map-concurrently.ts";
import { timestamp } from "../../shared/clock.ts";
import { invalid, refuse, success } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { randomBase62 } from "../../shared/id.ts";
import {
  findJoinableDomain,
  recordDomainCheck,
  listDomainsToCheck,
  insertMemberByDomain,
  listDomains,
  insertDomain,
  markDomainVerified,
  removeDomain,
} from "./company.store.ts";
import type { CompanyDomain } from "./company.store.ts";
import { personalOrganizationRefusal } from "./invitation-handlers.ts";
import { createDomainChangeMail } from "./mail.ts";
import type { MemberCall, PeopleServices } from "./people-call.ts";
import { listMemberships } from "./people.store.ts";
import type { Membership, Person } from "./person.ts";
import { listOwnersToEmail } from "./team.store.ts";
import { readBoundedText } from "../../shared/http/bounded-body.ts";
import { parsePublicUrl } from "../../shared/public-address.ts";

const CONCURRENT_MAX = 6;

export const companyDomainSchema = z.object({ domain: z.string().check(z.maxLength(253)) });

export async function getCompanyDomains(call: MemberCall) {
  const domains = await listDomains(call.db, call.as.orgId);
  return success({ domains: domains.map((one) => companyDomainView(one, call.companyDomains)) });
}

export async function postCompanyDomain(call: MemberCall) {
  const fields = parseFields(companyDomainSchema, [], call.body);
  if (!fields.ok) return fields;
  const parsedDomain = parseCompanyDomain(fields.value.domain);
  if ("problem" in parsedDomain) return invalid(`domain ${parsedDomain.problem}`, "domain");
  const refusal = domainRefusal(call);
  if (refusal !== null) return refusal;
  const { domain } = parsedDomain;
  const { db, as, person, now: createdAt } = call;
  const hasAddressAtDomain =
    person.isEmailProven === 1 && person.email?.toLowerCase().endsWith(`@${domain}`);
  const tenant = hasAddressAtDomain === true ? call.tenant : null;
  const row = { domain, orgId: as.orgId, nonce: randomBase62(43), tenant, createdAt };
  const insertedDomain = await insertDomain(db, row);
  if (insertedDomain !== null) {
    return created(companyDomainView(insertedDomain, call.companyDomains));
  }
  const message = "An organization can't have more than ten domains.";
  return refuse({ kind: "conflict", message, param: null, code: "too_many_domains" });
}

function domainRefusal({ as, companyDomains }: MemberCall): Refusal | null {
  if (as.status === "suspended") return refuse({ kind: "organization_suspended" });
  if (companyDomains === "off") {
    const message = "Joining by domain is disabled in this region.";
    return refuse({ kind: "conflict", message, param: null, code: "company_domains_off" });
  }
  return as.isPersonal === 1 ? personalOrganizationRefusal() : null;
}

export async function postDomainProof(call: MemberCall) {
  const { db, as } = call;
  const own = await findOwnDomain(call);
  if (!own.ok) return own;
  const refusal = domainRefusal(call);
  if (refusal !== null) return refusal;
  const { domain, nonce } = own.value;
  const proof = await checkDomainProof(domain, nonce);
  if (proof !== "there") {
    const reason =
      proof === "away" ? "A DNS resolver did not respond" : "The TXT record was not found";
    const message = `${reason}. Please try again.`;
    return refuse({ kind: "conflict", message, param: null, code: "domain_not_proven" });
  }
  if ((await markDomainVerified(db, own.value, call)) === "taken") {
    const message = "Another organization has already proven this domain.";
    return refuse({ kind: "conflict", message, param: null, code: "domain_taken" });
  }
  call.takeEvents(as.orgId);
  await emailOwnersAboutDomain(call, own.value, "proven");
  return getCompanyDomains(call);
}

export async function deleteCompanyDomain(call: MemberCall) {
  const own = await findOwnDomain(call);
  if (!own.ok) return own;
  const { domain } = own.value;
  await removeDomain(call.db, own.value, call);
  call.takeEvents(call.as.orgId);
  await emailOwnersAboutDomain(call, own.value, "removed");
  return success({ id: domain, deleted: true });
}

export async function emailOwnersAboutDomain(
  { db, mail }: Pick<PeopleServices, "db" | "mail">,
  { orgId, domain }: Pick<CompanyDomain, "orgId" | "domain">,
  change: Parameters<typeof createDomainChangeMail>[1]["what"],
): Promise<void> {
  if (mail === null) return;
  for (const { email, organization } of await listOwnersToEmail(db, orgId)) {
    mail(createDomainChangeMail(email, { organization, domain, what: change }));
  }
}

async function findOwnDomain({ db, as, params }: MemberCall): Promise<Result<CompanyDomain>> {
  const domains = await listDomains(db, as.orgId);
  const found = domains.find(({ domain }) => domain === params["domain"]);
  return found === undefined
    ? refuse({ kind: "not_found", message: "No such domain." })
    : success(found);
}

export function companyDomainView(row: CompanyDomain, mode: PeopleServices["companyDomains"]) {
  const { domain, nonce, provenAt, approvedAt, failedSince, tenant } = row;
  const isOpen =
    provenAt !== null && (mode === "on" || (mode === "approve" && approvedAt !== null));
  return {
    domain,
    record: createDomainProofRecord(domain, nonce),
    proven_at: provenAt === null ? null : timestamp(provenAt),
    approved: mode === "on" || approvedAt !== null,
    lost_since: failedSince === null ? null : timestamp(failedSince),
    joins_by: isOpen ? (["google", ...(tenant === null ? [] : ["entra" as const])] as const) : [],
  };
}

type ReportedCompany = { readonly domain: string | null; readonly tenant: string | null };

/** Returns the typed domain if it lets the person join an organization. */
export async function findJoinableDomainOfPerson(
  services: PeopleServices,
  typedDomain: string,
  reported: ReportedCompany,
): Promise<CompanyDomain | null> {
  const { db, now: nowMs, companyDomains: mode } = services;
  if (mode === "off") return null;
  const domain = typedDomain.trim().toLowerCase().replace(/\.$/, "");
  const found = await findJoinableDomain(db, domain, { nowMs, needsApproval: mode === "approve" });
  if (found === null) return null;
  const isGoogleDomain = reported.domain?.toLowerCase() === found.domain;
  const isEntraTenant = found.tenant !== null && reported.tenant === found.tenant;
  return isGoogleDomain || isEntraTenant ? found : null;
}

export async function findJoinableDomainOfOrganization(
  { db, now: nowMs, companyDomains: mode }: PeopleServices,
  orgId: string,
): Promise<CompanyDomain | null> {
  if (mode === "off") return null;
  for (const { domain } of await listDomains(db, orgId)) {
    const found = await findJoinableDomain(db, domain, {
      nowMs,
      needsApproval: mode === "approve",
    });
    if (found?.orgId === orgId) return found;
  }
  return null;
}

export async function joinOrganizationByDomain(
  services: PeopleServices,
  company: CompanyDomain,
  person: Person,
): Promise<Pick<Membership, "memberId" | "orgId"> | null> {
  const { db, now: nowMs, companyDomains } = services;
  const memberId = crypto.randomUUID();
  const key = await mintConsoleKey(services);
  const needsApproval = companyDomains === "approve";
  const joined = await insertMemberByDomain(db, company, {
    person,
    memberId,
    key,
    nowMs,
    needsApproval,
  });
  if (joined) services.takeEvents(company.orgId);
  const own = await listMemberships(db, person.id);
  return own.find(({ orgId }) => orgId === company.orgId) ?? null;
}

/** Rechecks companies' TXT records. Emails owners when a record goes missing. */
export async function recheckCompanyDomains(
  db: D1Database,
  nowMs: number,
  mail: PeopleServices["mail"] = null,
): Promise<void> {
  const due = await listDomainsToCheck(db, nowMs);
  await mapConcurrently(CONCURRENT_MAX, due, async (one) => {
    const proof = await checkDomainProof(one.domain, one.nonce);
    if (proof === "away") return;
    const isLost = await recordDomainCheck(db, one, { isThere: proof === "there", nowMs });
    if (isLost) await emailOwnersAboutDomain({ db, mail }, one, "lost");
  });
}

/** DNS resolvers. Both must confirm a domain, so an attacker must deceive both. */
const RESOLVERS = ["https://cloudflare-dns.com/dns-query", "https://dns.google/resolve"];
const TIMEOUT_MS = 5000;
const BYTES_MAX = 64 * 1024;
const TXT_TYPE = 16;

const PUBLIC_EMAIL_DOMAINS = new Set(
  `gmail.com googlemail.com outlook.com hotmail.com live.com msn.com yahoo.com ymail.com icloud.com me.com mac.com aol.com
   gmx.de gmx.net gmx.com gmx.at gmx.ch web.de t-online.de freenet.de posteo.de mailbox.org proton.me protonmail.com pm.me
   tutanota.com tuta.io fastmail.com hey.com zoho.com mail.com mail.ru yandex.ru yandex.com qq.com 163.com 126.com
   hotmail.co.uk yahoo.co.uk orange.fr wanadoo.fr free.fr laposte.net libero.it`.split(/\s+/),
);

export function parseCompanyDomain(
  text: string,
): { readonly domain: string } | { readonly problem: string } {
  const domain = text.trim().toLowerCase().replace(/\.$/, "");
  const url = parsePublicUrl(`https://${domain}/`);
  const isPublic = typeof url !== "string" && url.hostname === domain;
  if (!isPublic) return { problem: "must be an internet domain" };
  return PUBLIC_EMAIL_DOMAINS.has(domain) ? { problem: "is a public email provider" } : { domain };
}

export function createDomainProofRecord(domain: string, nonce: string) {
  return { name: `_turnpike-challenge.${domain}`, value: `turnpike-domain-verification=${nonce}` };
}

type ProofResult = "there" | "missing" | "away";

/** Checks whether both resolvers return the TXT record. Never throws. */
export async function checkDomainProof(domain: string, nonce: string): Promise<ProofResult> {
  const { name, value } = createDomainProofRecord(domain, nonce);
  const proofs = await Promise.all(
    RESOLVERS.map(async (resolver): Promise<ProofResult> => {
      const texts = await queryTextRecords(resolver, name).catch(() => null);
      if (texts === null) return "away";
      return texts.includes(value) ? "there" : "missing";
    }),
  );
  if (proofs.includes("away")) return "away";
  return proofs.every((one) => one === "there") ? "there" : "missing";
}

const dnsResponseSchema = z.object({
  Status: z.int(),
  TC: z.boolean(),
  Answer: z.optional(z.array(z.object({ name: z.string(), type: z.int(), data: z.string() }))),
});
const NO_SUCH_NAME = 3;

async function queryTextRecords(resolver: string, name: string): Promise<readonly string[] | null> {
  const response = await fetch(`${resolver}?name=${encodeURIComponent(name)}&type=TXT`, {
    headers: { accept: "application/dns-json" },
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const text = response.status === 200 ? await readBoundedText(response, BYTES_MAX) : null;
  const parsed = text === null ? null : z.safeParse(dnsResponseSchema, JSON.parse(text));
  if (parsed === null || !parsed.success || parsed.data.TC) return null;
  const { Status: status, Answer: records = [] } = parsed.data;
  if (status === NO_SUCH_NAME) return [];
  if (status !== 0) return null;
  const isQueriedName = (recordName: string): boolean =>
    recordName.toLowerCase().replace(/\.$/, "") === name;
  return records
    .filter((one) => one.type === TXT_TYPE && isQueriedName(one.name))
    .map(({ data }) => unquoteText(data));
}

function unquoteText(data: string): string {
  if (!data.startsWith('"')) return data;
  const strings = data.matchAll(/"((?:[^"\\]|\\.)*)"/g);
  return [...strings]
    .map(([, text = ""]) =>
      text.replaceAll(/\\(\d{3}|.)/g, (_, one: string) =>
        one.length === 3 ? String.fromCharCode(Number(one)) : one,
      ),
    )
    .join("");
}
